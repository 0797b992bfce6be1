"""Where a cursor is: what can stand there, in which declaration, stage and argument list.

Nothing here needs the text around the cursor to parse (see `frames`), and only the cursor's own unit is read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from halo_lang.analysis import Analysis
from halo_lang.assist.frames import ARGUMENT_LISTS, Frame, FrameKind, Reading, Token, named_arguments, read
from halo_lang.assist.quoted import FAR, in_string
from halo_lang.assist.spots import DECLARATIONS, NOTHING, Place, behind, in_model
from halo_lang.lexicon import DECLARATION_KEYWORDS, MAX_NESTING
from halo_lang.nodes import Pipeline
from halo_lang.program import Unit
from halo_lang.records import record
from halo_lang.source import Span


@record
class Arguments:
    """An argument list around the cursor, `index` and `argument` being those of the argument that it is in.

    `index` counts as the list's signature does: behind the list of an `each` and the condition of a `loop` from 0 on,
    in an agent's brackets behind the model. It is negative in front of that. `positional` of the arguments in front
    have no name. `given` maps the names of all other arguments, those behind the cursor too, to the first word of
    their values.
    """

    kind: FrameKind
    name: str
    method: str
    index: int
    argument: str
    positional: int
    given: dict[str, str]


@record
class Cursor:
    """A cursor in a program."""

    place: Place
    span: Span
    """The word around the cursor, which a completion replaces: absolute, and within one line."""
    typed: str
    """The part of it in front of the cursor."""
    rest: str
    """The text behind it on its line."""
    unit: Unit
    base: int
    """Where the unit starts."""
    keyword: str
    """The keyword of the declaration around the cursor."""
    name: str
    """The name that it declares."""
    arguments: Arguments | None
    """The innermost argument list."""
    stage: int | None
    """Offset in the unit of the operator of the cursor's stage; None in front of the first."""
    each: Frame | None
    """The brackets of the `each` whose call the cursor is in."""
    in_list: bool
    """Whether the cursor is in a list."""


def locate(analysis: Analysis, offset: int) -> Cursor:
    """What the cursor at an offset is at; an offset outside the text counts as the end that is next to it."""
    text = analysis.program.source.text
    offset = max(0, min(offset, len(text)))
    word = _word(text, offset)
    unit, base = _unit(analysis, word.start)
    reading = _read(unit, word.start - base)
    if in_model(reading) and reading.string is None and not reading.comment:
        word = _around(_MODEL_BEFORE, _MODEL_BEHIND, text, offset)
        reading = _read(unit, word.start - base)
    place, word = _place(reading, text, base, word, offset)
    line_end = text.find("\n", word.end)
    lists = [frame for frame in reading.frames if frame.kind in ARGUMENT_LISTS]
    return Cursor(
        place=place,
        span=word,
        typed=text[word.start : offset],
        rest=text[word.end : line_end if line_end != -1 else len(text)],
        unit=unit,
        base=base,
        keyword=reading.keyword,
        name=_declared_name(reading.head or reading.frames[0].item),
        arguments=_arguments(lists[-1], unit.text, word.end - base) if lists else None,
        stage=reading.operator.start if reading.operator is not None else None,
        each=reading.each,
        in_list=reading.frame.kind is FrameKind.LIST,
    )


def enclosing(analysis: Analysis, offset: int) -> Iterator[Arguments]:
    """The argument lists around an offset, the innermost first."""
    text = analysis.program.source.text
    offset = max(0, min(offset, len(text)))
    unit, base = _unit(analysis, offset)
    reading = _read(unit, offset - base)
    if not reading.comment:
        for frame in reversed(reading.frames[-MAX_NESTING:]):
            if frame.kind in ARGUMENT_LISTS:
                yield _arguments(frame, unit.text, offset - base)


# --- the cursor's word and unit

_WORD_BEFORE: Final = re.compile(r"(?<!\w)\w*+\Z")
_WORD_BEHIND: Final = re.compile(r"\w*+")
_OPERATOR_BEFORE: Final = re.compile(r"(?:\|<?|~)\Z")
_MODEL_BEFORE: Final = re.compile(r"(?<![A-Za-z0-9_.:@/-])[A-Za-z0-9_.:@/-]*+\Z")
_MODEL_BEHIND: Final = re.compile(r"[A-Za-z0-9_.:@/-]*+")


def _word(text: str, offset: int) -> Span:
    """The word around an offset, or what there is of an operator in front of it."""
    word = _around(_WORD_BEFORE, _WORD_BEHIND, text, offset)
    return word if word.start < word.end else Span(_begin(_OPERATOR_BEFORE, text, offset), offset)


def _around(before: re.Pattern[str], behind: re.Pattern[str], text: str, offset: int) -> Span:
    match = behind.match(text, offset)
    return Span(_begin(before, text, offset), match.end() if match else offset)


def _begin(pattern: re.Pattern[str], text: str, offset: int) -> int:
    """Where the match on the line begins that ends at `offset`; `offset` where there is none."""
    start = max(text.rfind("\n", 0, offset) + 1, offset - FAR)
    match = pattern.search(text[start:offset])
    return start + match.start() if match else offset


def _unit(analysis: Analysis, offset: int) -> tuple[Unit, int]:
    """The unit that ends at the offset or holds it, and where it starts.

    At the beginning of a unit that is the one before: what stands in front of the cursor says what can come.
    """
    program = analysis.program
    if not program.units:
        return Unit(""), 0
    number = max(0, bisect_left(program.starts, offset) - 1)
    return program.units[number], program.starts[number]


def _read(unit: Unit, end: int) -> Reading:
    """Read a unit up to `end`: of a pipeline, the head and what follows the last stage that begins before."""
    if not isinstance(unit.declaration, Pipeline):
        return read(unit.text, end)
    stages = unit.declaration.stages
    last = bisect_left(stages, end, key=lambda stage: stage.span.start) - 1
    if last < 1:
        return read(unit.text, end)
    return read(unit.text, end, Span(stages[0].span.start, stages[last].span.start))


def _declared_name(head: Sequence[Token]) -> str:
    keywords = (number for number, token in enumerate(head[:-1]) if token.text in DECLARATION_KEYWORDS)
    number = next(keywords, None)
    return head[number + 1].text if number is not None else ""


# --- what is around it


def _place(reading: Reading, text: str, base: int, word: Span, offset: int) -> tuple[Place, Span]:
    """What can stand at the cursor, and the text that it replaces."""
    if reading.comment:
        return NOTHING, Span(offset, offset)
    if reading.string is not None:
        return in_string(reading, text, base, word, offset)
    place = behind(reading, text[word.start : offset])
    leads = word.start == 0 or text[word.start - 1] == "\n"
    # Whatever is left open above, a word at the very beginning of a line may begin a declaration.
    if leads and DECLARATIONS[0] not in place.words:
        place = replace(place, words=(*place.words, *DECLARATIONS))
    return place, word


_LEADING: Final = {FrameKind.SETTINGS: 1, FrameKind.EACH: 1, FrameKind.LISTEN: 1, FrameKind.LOOP: 2}
"""How many arguments stand in front of those that a signature describes."""


def _arguments(frame: Frame, text: str, end: int) -> Arguments:
    leading = _LEADING.get(frame.kind, 0)
    return Arguments(
        kind=frame.kind,
        name=frame.name,
        method=frame.method,
        index=frame.index - leading,
        argument=frame.argument,
        positional=max(0, frame.index - len(frame.given) - leading),
        given={**frame.given, **named_arguments(text, end)},
    )
