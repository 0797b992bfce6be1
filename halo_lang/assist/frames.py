"""The tokens in front of a cursor, nested in their brackets: what is known of a text that is still being typed.

The grammar cannot read such a text, so this does, by the same tokens: brackets open frames, commas separate their
items, and a stage operator that leads its line closes whatever was left open, as it does in `recovery`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from halo_lang.lexicon import COMMENT, DECLARATION_KEYWORDS, GAP, MAX_NESTING, MODEL, NAME, STAGE_OPERATOR, STRING
from halo_lang.source import Span

_TOKEN: Final = re.compile(
    rf"""
      (?P<gap>\s++|{COMMENT})
    | (?P<string>{STRING})
    | (?P<open_string>"{{3}}[\s\S]*+|["'][^\n]*+)
    | (?P<open_comment>/\*[\s\S]*+)
    | (?P<word>(?<=\.)[0-9]++|-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?\w*+|{NAME})
    | (?P<operator>{STAGE_OPERATOR})
    | (?P<open>[(\[{{])
    | (?P<close>[)\]}}])
    | (?P<other>=>|->|&&|\|\||[=!<>]=|[\s\S])
    """,
    re.VERBOSE,
)
_MODEL: Final = re.compile(rf"{GAP}({MODEL})")
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
NOWHERE: Final = Span(-1, -1)
OPERATORS: Final = ("|>", "|?", "|*", "|!", "~>", "|<>")
"""The stage operators."""


class Token(NamedTuple):
    """A token where it starts; a pair of brackets that is closed is one token: `()`, `[]` or `{}`."""

    text: str
    start: int

    @property
    def is_word(self) -> bool:
        """Whether it is a name, a keyword or a number."""
        return self.text[0].isalnum() or self.text[0] == "_"


class FrameKind(StrEnum):
    """What a pair of brackets is for."""

    UNIT = "unit"
    """Outside of all brackets."""
    SETTINGS = "agent"
    FIELDS = "fields"
    """Of a schema, or the parameters of a pipeline."""
    PROVIDER = "provider"
    RULE = "rule"
    DIRECTIVE = "directive"
    CALL = "call"
    CONDITION = "condition"
    ARMS = "arms"
    FAN_OUT = "fan-out"
    EACH = "each"
    YIELD = "yield"
    LISTEN = "listen"
    LOOP = "loop"
    LIST = "list"
    OTHER = "other"


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


@dataclass(slots=True)
class Frame:
    """Brackets that are open at the cursor; the outermost frame is the unit itself.

    `name` and `method` say whose arguments they hold; of an `each` behind its list, `name` is that of an item. `item`
    are the tokens since the last comma; of the unit, since the last stage operator, that one included. `given` maps
    the names of the arguments to the first word of their values.
    """

    kind: FrameKind
    bracket: str = ""
    start: int = 0
    name: str = ""
    method: str = ""
    item: list[Token] = field(default_factory=list[Token])
    index: int = 0
    given: dict[str, str] = field(default_factory=dict[str, str])
    source: tuple[str, ...] = ()
    """The path to the list of an `each`."""

    @property
    def argument(self) -> str:
        """The name in front of the item's value, empty where there is none."""
        named = len(self.item) > 1 and self.item[1].text == ":" and self.item[0].is_word
        return self.item[0].text if named else ""

    def end_item(self) -> None:
        """Take the item in: a comma follows, or the bracket closes."""
        if self.kind is FrameKind.EACH and self.index == 0 and self.item:
            self.name = self.item[0].text
            self.source = tuple(token.text for token in self.item[2:] if token.is_word)
        if name := self.argument:
            self.given[name] = next((token.text for token in self.item[2:] if token.is_word), "")
        self.index += 1
        self.item = []


@dataclass(slots=True)
class Reading:
    """What stands in front of a cursor."""

    frames: list[Frame]
    keyword: str = ""
    """The unit's declaration keyword, as soon as it is read."""
    head: list[Token] = field(default_factory=list[Token])
    """The unit's tokens in front of its first stage operator, when that is behind."""
    each: Frame | None = None
    """The brackets of the `each` that the cursor is behind, in the same stage."""
    string: Token | None = None
    """The string that the cursor is in."""
    comment: bool = False
    """Whether the cursor is in a comment."""

    @property
    def frame(self) -> Frame:
        """The innermost frame."""
        return self.frames[-1]

    @property
    def operator(self) -> Token | None:
        """The operator of the stage that the cursor is in."""
        item = self.frames[0].item
        return item[0] if item and item[0].text in OPERATORS else None


def read(text: str, end: int, skipped: Span = NOWHERE) -> Reading:
    """Read the text of a unit up to `end`, but for `skipped`: whole stages that nothing behind them depends on."""
    reading = Reading([Frame(FrameKind.UNIT)])
    position = 0
    while position < end:
        if position == skipped.start:
            position = skipped.end
        match = _TOKEN.match(text, position, end)
        assert match  # the pattern takes any character
        position = match.end()
        _TAKE[match.lastgroup or ""](reading, match)
        if match.lastgroup == "open" and _starts_with_model(reading.frame):
            position = _model(reading.frame, text, position, end)
    return reading


def named_arguments(text: str, start: int) -> dict[str, str]:
    """The arguments behind `start` up to the closing bracket or next stage, by name, with their first word."""
    frame = Frame(FrameKind.CALL)
    depth = 0
    for match in _TOKEN.finditer(text, start):
        kind, token = match.lastgroup, match[0]
        if kind == "operator" or (kind == "close" and depth == 0):
            break
        depth += {"open": 1, "close": -1}.get(kind or "", 0)
        if depth == 0 and token == ",":
            frame.end_item()
        elif kind != "gap":
            frame.item.append(Token(token, match.start()))
    frame.end_item()
    return frame.given


def callee(item: list[Token]) -> tuple[str, str]:
    """The name and method that an item ends with: `Bot.answer` or `Describe`."""
    if not item or not item[-1].is_word:
        return "", ""
    if len(item) > 2 and item[-2].text == "." and item[-3].is_word:
        return item[-3].text, item[-1].text
    return item[-1].text, ""


# --- one token after the other


def _word(reading: Reading, match: re.Match[str]) -> None:
    text, frame = match[0], reading.frame
    is_declaring = frame.kind is FrameKind.UNIT and text in DECLARATION_KEYWORDS
    if is_declaring and not reading.keyword and not (frame.item and frame.item[-1].text == "@"):
        reading.keyword = text
    _other(reading, match)


def _other(reading: Reading, match: re.Match[str]) -> None:
    frame = reading.frame
    if match[0] == "," and frame.kind is not FrameKind.UNIT:
        frame.end_item()
    else:
        frame.item.append(Token(match[0], match.start()))


def _operator(reading: Reading, match: re.Match[str]) -> None:
    if len(reading.frames) > 1 and not _leads(match):
        reading.frame.item.append(Token(match[0], match.start()))
        return
    del reading.frames[1:]
    unit = reading.frame
    reading.head = reading.head or unit.item
    reading.each = None
    unit.item = [Token(match[0], match.start())]


def _leads(match: re.Match[str]) -> bool:
    """Whether nothing stands in front of it on its line."""
    text, position = match.string, match.start()
    while position and text[position - 1] in " \t\r":
        position -= 1
    return position == 0 or text[position - 1] == "\n"


def _open(reading: Reading, match: re.Match[str]) -> None:
    reading.frames.append(_opened(reading, match[0], match.start()))


def _close(reading: Reading, match: re.Match[str]) -> None:
    """Close the nearest bracket that fits, and what was left open in it; a bracket that closes nothing is left out."""
    frames = reading.frames
    deepest = len(frames) - 1
    near = range(deepest, max(0, deepest - MAX_NESTING), -1)
    depth = next((depth for depth in near if _CLOSING[frames[depth].bracket] == match[0]), None)
    if depth is None:
        return
    frame = frames[depth]
    frame.end_item()
    if frame.kind is FrameKind.EACH:
        reading.each = frame
    del frames[depth:]
    reading.frame.item.append(Token(frame.bracket + match[0], frame.start))


def _string(reading: Reading, match: re.Match[str]) -> None:
    reading.frame.item.append(Token(match[0], match.start()))


def _open_string(reading: Reading, match: re.Match[str]) -> None:
    if match.end() == match.endpos:
        reading.string = Token(match[0], match.start())
    else:
        _string(reading, match)


def _gap(reading: Reading, match: re.Match[str]) -> None:
    if match[0].startswith("//") and match.end() == match.endpos:
        reading.comment = True


def _open_comment(reading: Reading, _: re.Match[str]) -> None:
    reading.comment = True


_TAKE: Final[dict[str, Callable[[Reading, re.Match[str]], None]]] = {
    "gap": _gap,
    "string": _string,
    "open_string": _open_string,
    "open_comment": _open_comment,
    "word": _word,
    "operator": _operator,
    "open": _open,
    "close": _close,
    "other": _other,
}


def _starts_with_model(frame: Frame) -> bool:
    return frame.kind is FrameKind.SETTINGS or (frame.kind is FrameKind.DIRECTIVE and frame.name == "shadow")


def _model(frame: Frame, text: str, position: int, end: int) -> int:
    """Take the model that the brackets begin with as one token; it may hold `//`."""
    match = _MODEL.match(text, position, end)
    if match is None:
        return position
    frame.item.append(Token(match[1], match.start(1)))
    return match.end()


# --- what a bracket is for


def _opened(reading: Reading, bracket: str, start: int) -> Frame:
    parent = reading.frame
    kind = _KINDS.get(parent.kind, _in_arguments)(reading, bracket)
    name, method = callee(parent.item)
    if kind is FrameKind.EACH:
        name, method = "", ""
    return Frame(kind, bracket, start, name, method)


def _in_unit(reading: Reading, bracket: str) -> FrameKind:
    item = reading.frame.item
    if bracket == "(" and len(item) > 1 and item[-2].text == "@":
        return FrameKind.DIRECTIVE
    if reading.keyword == "pipeline":
        return _in_pipeline(reading, bracket)
    return _DECLARED.get((reading.keyword, bracket), FrameKind.OTHER)


def _in_pipeline(reading: Reading, bracket: str) -> FrameKind:
    item = reading.frame.item
    if reading.operator is None:
        in_head = all(token.text != ":" for token in item)
        return FrameKind.FIELDS if in_head and bracket == "(" else FrameKind.LIST
    if len(item) > 1 and item[-1].is_word and bracket == "(":
        return _FORMS.get(item[1].text, FrameKind.CALL) if len(item) == 2 else FrameKind.CALL
    return _BLOCKS.get((item[0].text, bracket), FrameKind.OTHER) if len(item) == 1 else FrameKind.OTHER


def _in_block(reading: Reading, bracket: str) -> FrameKind:
    frame = reading.frame
    if bracket != "(":
        return FrameKind.OTHER
    if frame.item and frame.item[-1].is_word:
        return FrameKind.CALL
    return FrameKind.CONDITION if frame.kind is FrameKind.ARMS else FrameKind.OTHER


def _in_condition(_: Reading, bracket: str) -> FrameKind:
    return FrameKind.CONDITION if bracket == "(" else FrameKind.OTHER


def _in_arguments(reading: Reading, bracket: str) -> FrameKind:
    frame = reading.frame
    if bracket == "[":
        return FrameKind.LIST
    nested = frame.kind is FrameKind.RULE and bracket == "(" and frame.item and frame.item[-1].is_word
    return FrameKind.RULE if nested else FrameKind.OTHER


_DECLARED: Final = {
    ("policy", "("): FrameKind.RULE,
    ("tool", "("): FrameKind.PROVIDER,
    ("store", "("): FrameKind.PROVIDER,
    ("schema", "{"): FrameKind.FIELDS,
    ("agent", "["): FrameKind.SETTINGS,
}
_FORMS: Final = {
    "each": FrameKind.EACH,
    "yield": FrameKind.YIELD,
    "listen": FrameKind.LISTEN,
    "loop": FrameKind.LOOP,
}
_BLOCKS: Final = {
    ("|?", "("): FrameKind.CONDITION,
    ("|?", "{"): FrameKind.ARMS,
    ("|*", "{"): FrameKind.FAN_OUT,
}
_KINDS: Final[dict[FrameKind, Callable[[Reading, str], FrameKind]]] = {
    FrameKind.UNIT: _in_unit,
    FrameKind.ARMS: _in_block,
    FrameKind.FAN_OUT: _in_block,
    FrameKind.CONDITION: _in_condition,
}
