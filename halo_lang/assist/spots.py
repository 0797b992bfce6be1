"""What can stand behind the tokens of an unfinished text: one small function for each kind of brackets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

from halo_lang.assist.frames import OPERATORS, FrameKind, Reading, Token
from halo_lang.lexicon import DECLARATION_KEYWORDS
from halo_lang.records import record


class Spot(StrEnum):
    """The kinds of things that can stand at a cursor, keywords and operators apart."""

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
class Place:
    """What can stand at a cursor: something of the kind that `spot` says, or one of the `words`.

    `path` are the segments in front of it: of a path, the callee of a method, the source of an event. `listed` are
    the names that stand in the same list already, `compared` is the path in a condition that is compared with what is
    to come, `quote` the quotes of the string that a condition is in.
    """

    spot: Spot = Spot.NOTHING
    words: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    quote: str = ""


NOTHING: Final = Place()


def behind(reading: Reading, typed: str) -> Place:
    """What can stand behind the tokens that were read; `typed` is the beginning of it that is there."""
    frame = reading.frame
    if typed[:1].isdigit() and not (frame.item and frame.item[-1].text == "."):
        return NOTHING
    find = _FRAMES.get(frame.kind)
    return find(reading, frame.item) if find is not None else NOTHING


def in_model(reading: Reading) -> bool:
    """Whether a model can stand there, in whose names more than letters and digits count as a word."""
    frame = reading.frame
    in_string = bool(frame.item) and frame.item[0].text.startswith(('"', "'"))
    can_hold = frame.kind is FrameKind.SETTINGS or (frame.kind is FrameKind.DIRECTIVE and frame.name == "shadow")
    return can_hold and frame.index == 0 and not in_string


def compared(item: Sequence[Token]) -> tuple[str, ...]:
    """The path that a string in a condition is compared with."""
    return _segments(item[:-1]) if item and item[-1].text in ("==", "!=") else ()


DECLARATIONS: Final = (*DECLARATION_KEYWORDS, "@")


def _outside(reading: Reading, item: list[Token]) -> Place:
    """Outside of all brackets."""
    if reading.operator is not None:
        return _stage(item) if reading.keyword == "pipeline" else NOTHING
    if item and item[-1].text == "@":
        return Place(Spot.DIRECTIVE, listed=tuple(_directives(item)))
    if reading.keyword:
        keyword = next(number for number, token in enumerate(item) if token.text == reading.keyword)
        return _DECLARED[reading.keyword](item[keyword + 1 :])
    if item and item[0].text == "@":
        return Place(words=("agent", "pipeline", "@"))
    return NOTHING if item else Place(words=DECLARATIONS)


def _directives(item: Sequence[Token]) -> list[str]:
    return [word.text for at, word in pairwise(item) if at.text == "@"]


def _policy(tail: list[Token]) -> Place:
    if len(tail) > 1 and tail[-1].text in (":", "&"):
        return Place(Spot.RULE)
    return Place(words=("&", *DECLARATIONS)) if len(tail) > 2 else NOTHING


def _provider(tail: list[Token]) -> Place:
    if len(tail) == 2 and tail[-1].text == ":":
        return Place(Spot.PROVIDER)
    return Place(words=DECLARATIONS) if len(tail) > 2 else NOTHING


def _schema(tail: list[Token]) -> Place:
    return Place(words=DECLARATIONS) if len(tail) > 1 else NOTHING


def _agent(tail: list[Token]) -> Place:
    if len(tail) < 2:
        return NOTHING
    said = [token.text for token in tail if token.text in ("system", "equips", "requires")]
    last = tail[-1].text
    if last in ("equips", "requires") or (last == "," and said):
        listed = tuple(token.text for token in tail if token.is_word)
        return Place(Spot.TOOL if said[-1] == "equips" else Spot.POLICY, listed=listed)
    if last == "system":
        return NOTHING
    modifiers = tuple(word for word in ("system", "equips", "requires") if word not in said)
    return Place(words=(*modifiers, *DECLARATIONS))


def _pipeline(tail: list[Token]) -> Place:
    colon = next((number for number, token in enumerate(tail) if token.text == ":"), None)
    if colon is None:
        last = tail[-1].text if len(tail) > 1 else ""
        if last in ("->", "<"):
            return Place(Spot.RETURN_TYPE if last == "->" else Spot.TYPE)
        return Place(words=("->",)) if last == "()" else NOTHING
    start = tail[colon + 1 :]
    if not start:
        return Place(Spot.VALUE, OPERATORS)
    if start[-1].text == ".":
        return _path(start)
    return Place(words=(*OPERATORS, *DECLARATIONS))


_DECLARED: Final[dict[str, Callable[[list[Token]], Place]]] = {
    "policy": _policy,
    "tool": _provider,
    "store": _provider,
    "schema": _schema,
    "agent": _agent,
    "pipeline": _pipeline,
}

_BEHIND: Final = (*OPERATORS, *DECLARATIONS)


def _stage(item: list[Token]) -> Place:
    """Behind a stage operator."""
    operator, *tail = item
    if operator.text == "|>":
        return _call(tail)
    if not tail:
        return Place(words=_FORMS.get(operator.text, ()))
    arrow = next((number for number, token in enumerate(tail) if token.text == "=>"), None)
    if arrow is not None:
        return _call(tail[arrow + 1 :])
    if tail[-1].text == "()" and operator.text in _ARROWS:
        return Place(words=_ARROWS[operator.text])
    return _ended(tail)


_FORMS: Final = {"|*": ("each",), "|!": ("yield",), "~>": ("listen",), "|<>": ("loop",)}
_ARROWS: Final = {"|?": ("=>", *_BEHIND), "|*": ("=>",)}
"""What can stand behind the brackets of a gate, which may end there, and of an `each`."""


def _call(tail: list[Token]) -> Place:
    return _open_call(tail) or _ended(tail)


def _ended(tail: list[Token]) -> Place:
    """Behind what may be the whole of a stage."""
    if tail[-1].text in ("()", "{}"):
        return Place(words=("as", *_BEHIND))
    is_bound = len(tail) > 1 and tail[-2].text == "as"
    return Place(words=_BEHIND) if is_bound else NOTHING


def _open_call(tail: list[Token]) -> Place | None:
    """In front of a call's brackets, and at the name behind `as`; None further on."""
    last = tail[-1].text if tail else ""
    if last in ("", "=>"):
        return Place(Spot.CALLEE)
    if last == ".":
        return Place(Spot.METHOD, path=(tail[-2].text,) if len(tail) > 1 else ())
    return NOTHING if last == "as" else None


def _arms(_: Reading, item: list[Token]) -> Place:
    if not item:
        return Place(words=("else",))
    if item[-1].text in ("()", "else") and len(item) == 1:
        return Place(words=("=>",))
    arrow = next((number for number, token in enumerate(item) if token.text == "=>"), None)
    return (_open_call(item[arrow + 1 :]) or NOTHING) if arrow is not None else NOTHING


def _fan_out(_: Reading, item: list[Token]) -> Place:
    found = _open_call(item)
    return found or Place(words=("as",) if item[-1].text == "()" else ())


def _fields(_: Reading, item: list[Token]) -> Place:
    if len(item) > 1 and item[-1].text in (":", "<"):
        return Place(Spot.TYPE)
    return NOTHING


def _settings(reading: Reading, item: list[Token]) -> Place:
    if reading.frame.index:
        return _in_list(reading, item)
    return NOTHING if item else Place(Spot.MODEL)


def _directive(reading: Reading, item: list[Token]) -> Place:
    if reading.frame.name == "shadow" and reading.frame.index == 0 and not item:
        return Place(Spot.SHADOW_TARGET)
    return _in_list(reading, item)


def _in_list(_: Reading, item: list[Token]) -> Place:
    """In an argument list of any kind."""
    if not item:
        return Place(Spot.ARGUMENT)
    if item[-1].text == ".":
        return _path(item)
    return Place(Spot.VALUE) if len(item) == 2 and item[-1].text == ":" else NOTHING


def _list(_: Reading, item: list[Token]) -> Place:
    if not item:
        return Place(Spot.VALUE)
    return _path(item) if item[-1].text == "." else NOTHING


def _each(reading: Reading, item: list[Token]) -> Place:
    if reading.frame.index:
        return _in_list(reading, item)
    if len(item) == 1:
        return Place(words=("in",))
    if len(item) == 2:
        return Place(Spot.VALUE)
    return _path(item) if item and item[-1].text == "." else NOTHING


def _listen(_: Reading, item: list[Token]) -> Place:
    if not item:
        return Place(Spot.SOURCE)
    return Place(Spot.EVENT, path=(item[0].text,)) if len(item) == 2 and item[-1].text == "." else NOTHING


def _loop(reading: Reading, item: list[Token]) -> Place:
    index = reading.frame.index
    if index == 0:
        return NOTHING if item else Place(Spot.LOOP_TARGET)
    return _in_list(reading, item) if index > 1 else NOTHING


def in_condition(_: Reading, item: list[Token]) -> Place:
    """In a gate's or an arm's brackets, or in the string of a loop."""
    last = item[-1].text if item else ""
    if last == ".":
        return _path(item, Spot.OPERAND)
    return Place(Spot.OPERAND, compared=compared(item)) if last in _CONDITION_OPERATORS else NOTHING


_CONDITION_OPERATORS: Final = frozenset({"", "&&", "||", "!", "==", "!=", "<", "<=", ">", ">="})


def _path(item: Sequence[Token], spot: Spot = Spot.VALUE) -> Place:
    """Behind a dot: the segments in front of it."""
    segments = _segments(item[:-1])
    return Place(spot, path=segments) if segments else NOTHING


def _segments(item: Sequence[Token]) -> tuple[str, ...]:
    """The path that the tokens end with."""
    number = len(item) - 1
    segments = [item[number].text] if item and item[number].is_word else []
    while segments and number > 1 and item[number - 1].text == "." and item[number - 2].is_word:
        number -= 2
        segments.append(item[number].text)
    return tuple(reversed(segments))


_FRAMES: Final[dict[FrameKind, Callable[[Reading, list[Token]], Place]]] = {
    FrameKind.UNIT: _outside,
    FrameKind.SETTINGS: _settings,
    FrameKind.FIELDS: _fields,
    FrameKind.PROVIDER: _in_list,
    FrameKind.RULE: _in_list,
    FrameKind.DIRECTIVE: _directive,
    FrameKind.CALL: _in_list,
    FrameKind.CONDITION: in_condition,
    FrameKind.ARMS: _arms,
    FrameKind.FAN_OUT: _fan_out,
    FrameKind.EACH: _each,
    FrameKind.YIELD: _in_list,
    FrameKind.LISTEN: _listen,
    FrameKind.LOOP: _loop,
    FrameKind.LIST: _list,
}
