"""Where a cursor is: what kind of thing can stand there, in which declaration, stage and argument list.

Nothing here needs the text around the cursor to parse (see `frames`), and only the cursor's own unit is read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

from halo_lang.analysis import Analysis
from halo_lang.assist.frames import OPERATORS, Frame, FrameKind, Reading, Token, named_arguments, read
from halo_lang.lexicon import DECLARATION_KEYWORDS, NAME
from halo_lang.nodes import Pipeline
from halo_lang.program import Unit
from halo_lang.records import record
from halo_lang.source import Span


class Spot(StrEnum):
    """What can stand at the cursor, beside the words that `Cursor.words` lists."""

    NOTHING = "nothing"
    """A name that is being declared, a number, a comment, plain text."""
    DIRECTIVE = "directive"
    PROVIDER = "provider"
    MODEL = "model"
    RULE = "rule"
    TYPE = "type"
    RETURN_TYPE = "return type"
    TOOL = "tool"
    POLICY = "policy"
    CALLEE = "callee"
    METHOD = "method"
    VALUE = "value"
    ARGUMENT = "argument"
    """An argument: its name, or its value by position."""
    OPERAND = "operand"
    """Of a condition."""
    TEMPLATE = "template"
    """The path in a `{{…}}`."""
    CHOICE = "choice"
    """The text of a string that is an argument."""
    LOOP_TARGET = "loop target"
    SHADOW_TARGET = "shadow target"
    SOURCE = "source"
    EVENT = "event"


@record
class Arguments:
    """The argument list around the cursor, `index` and `argument` being those of the argument that it is in.

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
    """A place in a program. Offsets are absolute, but for `stage`, which counts in the unit."""

    spot: Spot
    span: Span
    """The word around the cursor: what a completion replaces. It lies within one line."""
    typed: str
    """The part of it in front of the cursor."""
    unit: Unit
    path: tuple[str, ...] = ()
    """The segments of a path in front of the word, or the callee of a method, or the source of an event."""
    words: tuple[str, ...] = ()
    """Keywords and operators that can stand here."""
    keyword: str = ""
    """The keyword of the declaration around the cursor."""
    name: str = ""
    """The name that it declares."""
    arguments: Arguments | None = None
    stage: int | None = None
    """Offset of the operator of the cursor's stage; None in front of the first."""
    each: str = ""
    """The name of the item where the cursor is in the call of an `each`."""
    items: tuple[str, ...] = ()
    """The path to the list that such an item is from."""
    in_list: bool = False
    """Whether the cursor is in a list."""
    listed: tuple[str, ...] = ()
    """Names that stand in the same list already."""
    rest: str = ""
    """The text behind the word on its line."""


@record
class _Found:
    spot: Spot = Spot.NOTHING
    words: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()


_NOTHING: Final = _Found()
_WORD_BEFORE: Final = re.compile(r"\w*\Z")
_WORD_BEHIND: Final = re.compile(r"\w*")
_OPERATOR_BEFORE: Final = re.compile(r"(?:\||~|\|<)\Z")
_MODEL_BEFORE: Final = re.compile(r"[A-Za-z0-9_.:@/-]*\Z")
_MODEL_BEHIND: Final = re.compile(r"[A-Za-z0-9_.:@/-]*")
_PLACEHOLDER_BEFORE: Final = re.compile(
    rf"\{{\{{[^\S\n]*((?:{NAME}[^\S\n]*\.[^\S\n]*)?(?:\w+[^\S\n]*\.[^\S\n]*)*)(\w*)\Z"
)
_LINE: Final = 1000
"""Words and placeholders that are looked for are shorter."""


def locate(analysis: Analysis, offset: int) -> Cursor:
    """What the cursor at an offset is at; an offset outside the text counts as the end that is next to it."""
    text = analysis.program.source.text
    offset = max(0, min(offset, len(text)))
    word = _word(text, offset)
    unit, start = _unit(analysis, word.start)
    reading = _read(unit, word.start - start)
    if reading.comment:
        return Cursor(Spot.NOTHING, Span(offset, offset), "", unit)
    if reading.string is not None:
        found, word = _in_string(reading, text, start, word, offset)
    else:
        if _is_in_model(reading):
            word = _model_word(text, offset)
            reading = _read(unit, word.start - start)
        found = _at_word(reading, text[word.start : offset])
    found = _with_declarations(found, reading, text, word)
    return _cursor(found, reading, unit, word, text, offset, start)


def enclosing(analysis: Analysis, offset: int) -> tuple[Arguments, ...]:
    """The argument lists around an offset, the innermost last."""
    text = analysis.program.source.text
    offset = max(0, min(offset, len(text)))
    unit, start = _unit(analysis, offset)
    reading = _read(unit, offset - start)
    if reading.comment:
        return ()
    lists = (frame for frame in reading.frames if frame.kind in ARGUMENT_LISTS)
    return tuple(_arguments(frame, unit.text, offset - start) for frame in lists)


ARGUMENT_LISTS: Final = frozenset(
    {
        FrameKind.CALL,
        FrameKind.PROVIDER,
        FrameKind.SETTINGS,
        FrameKind.RULE,
        FrameKind.DIRECTIVE,
        FrameKind.EACH,
        FrameKind.YIELD,
        FrameKind.LOOP,
        FrameKind.LISTEN,
    }
)
"""The brackets that hold arguments."""


# --- the cursor's word and unit


def _word(text: str, offset: int) -> Span:
    """The word around an offset, or what there is of an operator in front of it."""
    before = _last(_WORD_BEFORE, text, offset)
    behind = _WORD_BEHIND.match(text, offset)
    end = behind.end() if behind else offset
    if before == offset == end:
        before = _last(_OPERATOR_BEFORE, text, offset)
    return Span(before, end)


def _model_word(text: str, offset: int) -> Span:
    behind = _MODEL_BEHIND.match(text, offset)
    return Span(_last(_MODEL_BEFORE, text, offset), behind.end() if behind else offset)


def _last(pattern: re.Pattern[str], text: str, offset: int) -> int:
    """Where the match begins that ends at `offset`, `offset` where there is none."""
    start = max(text.rfind("\n", 0, offset) + 1, offset - _LINE)
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
    stages = unit.declaration.stages if isinstance(unit.declaration, Pipeline) else ()
    last = bisect_left(stages, end, key=lambda stage: stage.span.start) - 1
    if last < 1:
        return read(unit.text, end)
    return read(unit.text, end, Span(stages[0].span.start, stages[last].span.start))


def _cursor(found: _Found, reading: Reading, unit: Unit, word: Span, text: str, offset: int, start: int) -> Cursor:
    lists = [frame for frame in reading.frames if frame.kind in ARGUMENT_LISTS]
    operator = reading.operator
    head = reading.head or reading.frames[0].item
    end = text.find("\n", word.end)
    return Cursor(
        found.spot,
        word,
        text[word.start : offset],
        unit,
        found.path,
        found.words,
        reading.keyword,
        _declared_name(head),
        _arguments(lists[-1], unit.text, word.end - start) if lists else None,
        operator.start if operator is not None else None,
        reading.each.name if reading.each is not None else "",
        reading.each.source if reading.each is not None else (),
        reading.frame.kind is FrameKind.LIST,
        found.listed,
        text[word.end : end if end != -1 else len(text)],
    )


def _declared_name(head: Sequence[Token]) -> str:
    keywords = (number for number, token in enumerate(head[:-1]) if token.text in DECLARATION_KEYWORDS)
    number = next(keywords, None)
    return head[number + 1].text if number is not None else ""


_LEADING: Final = {FrameKind.SETTINGS: 1, FrameKind.EACH: 1, FrameKind.LOOP: 2}
"""How many arguments stand in front of those that a signature describes."""


def _arguments(frame: Frame, text: str, end: int) -> Arguments:
    leading = _LEADING.get(frame.kind, 0)
    behind = named_arguments(text, end)
    behind.pop("", None)
    positional = max(0, frame.index - len(frame.given) - leading)
    return Arguments(
        frame.kind,
        frame.name,
        frame.method,
        frame.index - leading,
        frame.argument,
        positional,
        {**frame.given, **behind},
    )


# --- what can stand behind the tokens


def _at_word(reading: Reading, typed: str) -> _Found:
    frame = reading.frame
    if typed[:1].isdigit() and not (frame.item and frame.item[-1].text == "."):
        return _NOTHING
    return _FRAMES.get(frame.kind, _other)(reading, frame.item)


def _is_in_model(reading: Reading) -> bool:
    frame = reading.frame
    if frame.index or (frame.item and frame.item[0].text.startswith(('"', "'"))):
        return False
    return frame.kind is FrameKind.SETTINGS or (frame.kind is FrameKind.DIRECTIVE and frame.name == "shadow")


def _with_declarations(found: _Found, reading: Reading, text: str, word: Span) -> _Found:
    """Whatever is left open above, a word at the very beginning of a line may begin a declaration."""
    leads = word.start == 0 or text[word.start - 1] == "\n"
    if not leads or reading.string is not None or "agent" in found.words:
        return found
    words = (*found.words, *DECLARATION_KEYWORDS, "@")
    return _Found(found.spot, words, found.path, found.listed)


def _other(_: Reading, __: list[Token]) -> _Found:
    return _NOTHING


_DECLARATIONS: Final = (*DECLARATION_KEYWORDS, "@")


def _unit_level(reading: Reading, item: list[Token]) -> _Found:
    if reading.operator is not None:
        return _stage(item) if reading.keyword == "pipeline" else _NOTHING
    if item and item[-1].text == "@":
        return _Found(Spot.DIRECTIVE, listed=tuple(_directives(item)))
    number = (
        next((n for n, token in enumerate(item) if token.text == reading.keyword), None) if reading.keyword else None
    )
    if number is None:
        words = ("agent", "pipeline", "@") if item and item[0].text == "@" else _DECLARATIONS
        return _Found(words=words if not item or item[0].text == "@" else ())
    return _DECLARED[reading.keyword](item[number + 1 :])


def _directives(item: Sequence[Token]) -> list[str]:
    return [word.text for at, word in pairwise(item) if at.text == "@"]


def _policy(tail: list[Token]) -> _Found:
    if len(tail) > 1 and tail[-1].text in (":", "&"):
        return _Found(Spot.RULE)
    return _Found(words=("&", *_DECLARATIONS)) if len(tail) > 2 else _NOTHING


def _provider(tail: list[Token]) -> _Found:
    if len(tail) == 2 and tail[-1].text == ":":
        return _Found(Spot.PROVIDER)
    return _Found(words=_DECLARATIONS) if len(tail) > 2 else _NOTHING


def _schema(tail: list[Token]) -> _Found:
    return _Found(words=_DECLARATIONS) if len(tail) > 1 else _NOTHING


def _agent(tail: list[Token]) -> _Found:
    if len(tail) < 2:
        return _NOTHING
    said = [token.text for token in tail if token.text in ("system", "equips", "requires")]
    last = tail[-1].text
    if last in ("equips", "requires") or (last == "," and said):
        listed = tuple(token.text for token in tail if token.is_word)
        return _Found(Spot.TOOL if said[-1] == "equips" else Spot.POLICY, listed=listed)
    if last == "system":
        return _NOTHING
    modifiers = tuple(word for word in ("system", "equips", "requires") if word not in said)
    return _Found(words=(*modifiers, *_DECLARATIONS))


def _pipeline(tail: list[Token]) -> _Found:
    colon = next((number for number, token in enumerate(tail) if token.text == ":"), None)
    if colon is None:
        last = tail[-1].text if len(tail) > 1 else ""
        if last in ("->", "<"):
            return _Found(Spot.RETURN_TYPE if last == "->" else Spot.TYPE)
        return _Found(words=("->",)) if last == "()" else _NOTHING
    start = tail[colon + 1 :]
    if not start:
        return _Found(Spot.VALUE, OPERATORS)
    if start[-1].text == ".":
        return _path(start)
    return _Found(words=(*OPERATORS, *_DECLARATIONS))


_DECLARED: Final[dict[str, Callable[[list[Token]], _Found]]] = {
    "policy": _policy,
    "tool": _provider,
    "store": _provider,
    "schema": _schema,
    "agent": _agent,
    "pipeline": _pipeline,
}

_BEHIND: Final = (*OPERATORS, *_DECLARATIONS)


def _stage(item: list[Token]) -> _Found:
    """Behind a stage operator."""
    operator, *tail = item
    if operator.text == "|>":
        return _call(tail)
    if not tail:
        return _Found(words=_FORMS.get(operator.text, ()))
    arrow = next((number for number, token in enumerate(tail) if token.text == "=>"), None)
    if arrow is not None:
        return _call(tail[arrow + 1 :])
    if tail[-1].text == "as":
        return _NOTHING
    if tail[-1].text == "()" and operator.text in ("|?", "|*"):
        return _Found(words=("=>", *_BEHIND) if operator.text == "|?" else ("=>",))
    is_whole = tail[-1].text in ("()", "{}")
    return _Found(words=("as", *_BEHIND) if is_whole else _BEHIND if _is_bound(tail) else ())


_FORMS: Final = {"|*": ("each",), "|!": ("yield",), "~>": ("listen",), "|<>": ("loop",)}


def _call(tail: list[Token]) -> _Found:
    found = _open_call(tail)
    if found is not None:
        return found
    if _is_bound(tail):
        return _Found(words=_BEHIND)
    return _Found(words=("as", *_BEHIND)) if tail[-1].text == "()" else _Found(words=_BEHIND)


def _open_call(tail: list[Token]) -> _Found | None:
    """In front of a call's brackets, and at the name behind `as`; None further on."""
    last = tail[-1].text if tail else ""
    if last in ("", "=>"):
        return _Found(Spot.CALLEE)
    if last == ".":
        return _Found(Spot.METHOD, path=(tail[-2].text,) if len(tail) > 1 else ())
    return _NOTHING if last == "as" else None


def _is_bound(tail: Sequence[Token]) -> bool:
    return len(tail) > 1 and tail[-2].text == "as"


def _arms(_: Reading, item: list[Token]) -> _Found:
    if not item:
        return _Found(words=("else",))
    if item[-1].text in ("()", "else") and len(item) == 1:
        return _Found(words=("=>",))
    arrow = next((number for number, token in enumerate(item) if token.text == "=>"), None)
    return (_open_call(item[arrow + 1 :]) or _NOTHING) if arrow is not None else _NOTHING


def _fan_out(_: Reading, item: list[Token]) -> _Found:
    found = _open_call(item)
    return found or _Found(words=("as",) if item[-1].text == "()" else ())


def _fields(_: Reading, item: list[Token]) -> _Found:
    if len(item) > 1 and item[-1].text in (":", "<"):
        return _Found(Spot.TYPE)
    return _NOTHING


def _settings(reading: Reading, item: list[Token]) -> _Found:
    return _in_list(reading, item) if reading.frame.index else _Found(Spot.MODEL)


def _directive(reading: Reading, item: list[Token]) -> _Found:
    if reading.frame.name == "shadow" and reading.frame.index == 0:
        return _Found(Spot.SHADOW_TARGET)
    return _in_list(reading, item)


def _in_list(_: Reading, item: list[Token]) -> _Found:
    """In an argument list of any kind."""
    if not item:
        return _Found(Spot.ARGUMENT)
    if item[-1].text == ".":
        return _path(item)
    return _Found(Spot.VALUE) if len(item) == 2 and item[-1].text == ":" else _NOTHING


def _list(_: Reading, item: list[Token]) -> _Found:
    if not item:
        return _Found(Spot.VALUE)
    return _path(item) if item[-1].text == "." else _NOTHING


def _each(reading: Reading, item: list[Token]) -> _Found:
    if reading.frame.index:
        return _in_list(reading, item)
    if len(item) == 1:
        return _Found(words=("in",))
    if len(item) == 2:
        return _Found(Spot.VALUE)
    return _path(item) if item and item[-1].text == "." else _NOTHING


def _listen(_: Reading, item: list[Token]) -> _Found:
    if not item:
        return _Found(Spot.SOURCE)
    return _Found(Spot.EVENT, path=(item[0].text,)) if len(item) == 2 and item[-1].text == "." else _NOTHING


def _loop(reading: Reading, item: list[Token]) -> _Found:
    index = reading.frame.index
    if index == 0:
        return _NOTHING if item else _Found(Spot.LOOP_TARGET)
    return _in_list(reading, item) if index > 1 else _NOTHING


def _condition(_: Reading, item: list[Token]) -> _Found:
    last = item[-1].text if item else ""
    if last == ".":
        return _path(item, Spot.OPERAND)
    return _Found(Spot.OPERAND) if last in _CONDITION_OPERATORS else _NOTHING


_CONDITION_OPERATORS: Final = frozenset({"", "&&", "||", "!", "==", "!=", "<", "<=", ">", ">="})


def _path(item: Sequence[Token], spot: Spot = Spot.VALUE) -> _Found:
    """Behind a dot: the segments in front of it."""
    segments: list[str] = []
    number = len(item) - 1
    while number > 0 and item[number].text == "." and item[number - 1].is_word:
        segments.append(item[number - 1].text)
        number -= 2
    return _Found(spot, path=tuple(reversed(segments))) if segments else _NOTHING


_FRAMES: Final[dict[FrameKind, Callable[[Reading, list[Token]], _Found]]] = {
    FrameKind.UNIT: _unit_level,
    FrameKind.SETTINGS: _settings,
    FrameKind.FIELDS: _fields,
    FrameKind.PROVIDER: _in_list,
    FrameKind.RULE: _in_list,
    FrameKind.DIRECTIVE: _directive,
    FrameKind.CALL: _in_list,
    FrameKind.CONDITION: _condition,
    FrameKind.ARMS: _arms,
    FrameKind.FAN_OUT: _fan_out,
    FrameKind.EACH: _each,
    FrameKind.YIELD: _in_list,
    FrameKind.LISTEN: _listen,
    FrameKind.LOOP: _loop,
    FrameKind.LIST: _list,
}


# --- inside a string


def _in_string(reading: Reading, text: str, start: int, word: Span, offset: int) -> tuple[_Found, Span]:
    """What can stand at the cursor in a string, and the word there."""
    string, frame = reading.string, reading.frame
    assert string is not None
    quote = '"""' if string.text.startswith('"""') else string.text[0]
    inside = start + string.start + len(quote)
    if frame.kind is FrameKind.LOOP and frame.index == 1:
        return _condition(reading, read(text[inside : word.start], word.start - inside).frame.item), word
    written = text[max(inside, offset - _LINE) : offset]
    if _is_template(reading) and (match := _PLACEHOLDER_BEFORE.search(written)):
        path = tuple(segment.strip() for segment in match[1].split(".")[:-1])
        return _Found(Spot.TEMPLATE, path=path), word
    if quote != '"""' and frame.kind in ARGUMENT_LISTS | {FrameKind.LIST}:
        return _choice(reading), _content(text, inside, quote, offset)
    return _NOTHING, Span(offset, offset)


def _choice(reading: Reading) -> _Found:
    frame = reading.frame
    is_model = not frame.index and not frame.item and _is_in_model(reading)
    return _Found(Spot.MODEL if is_model and frame.kind is FrameKind.SETTINGS else Spot.CHOICE)


def _content(text: str, inside: int, quote: str, offset: int) -> Span:
    """The content of a string, up to the cursor where it is not closed on its line."""
    line = text.find("\n", offset)
    end = text.find(quote, offset, line if line != -1 else len(text))
    return Span(inside, end if end != -1 else offset)


def _is_template(reading: Reading) -> bool:
    frame = reading.frame
    if reading.keyword == "agent":
        in_modifier = frame.kind is FrameKind.UNIT and bool(frame.item) and frame.item[-1].text == "system"
        return in_modifier or frame.argument in ("system", "role")
    return reading.keyword == "pipeline" and frame.kind in _TEMPLATES


_TEMPLATES: Final = frozenset({FrameKind.CALL, FrameKind.YIELD, FrameKind.LIST, FrameKind.UNIT, FrameKind.EACH})
