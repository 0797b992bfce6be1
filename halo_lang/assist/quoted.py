"""What can stand inside a string: the path of a placeholder, a word that a parameter takes, a loop's condition."""

from __future__ import annotations

import re
from typing import Final

from halo_lang.assist.frames import ARGUMENT_LISTS, FrameKind, Reading, read
from halo_lang.assist.spots import NOTHING, Place, Spot, compared, in_condition, in_model
from halo_lang.records import record
from halo_lang.source import Span

FAR: Final = 1000
"""Words and placeholders that are looked for are shorter."""
_SEGMENT: Final = r"\w++[^\S\n]*+\.[^\S\n]*+"
_PLACEHOLDER_BEFORE: Final = re.compile(rf"\{{\{{[^\S\n]*+((?:{_SEGMENT})*+)\w*+\Z")
_TEMPLATES: Final = frozenset({FrameKind.CALL, FrameKind.YIELD, FrameKind.LIST, FrameKind.UNIT, FrameKind.EACH})


@record
class Quoted:
    """A string around the cursor: the text it is in, where its content starts, its quotes and the cursor."""

    text: str
    start: int
    quote: str
    offset: int

    @property
    def content(self) -> Span:
        """The content, up to the cursor where the string is not closed on its line."""
        line = self.text.find("\n", self.offset)
        end = self.text.find(self.quote, self.offset, line if line != -1 else len(self.text))
        return Span(self.start, end if end != -1 else self.offset)

    @property
    def written(self) -> str:
        """The content in front of the cursor, or the end of it."""
        return self.text[max(self.start, self.offset - FAR) : self.offset]


def in_string(reading: Reading, text: str, base: int, word: Span, offset: int) -> tuple[Place, Span]:
    """What can stand at the cursor in a string of a unit that starts at `base`, and what an item replaces there."""
    string, frame = reading.string, reading.frame
    if string is None:
        return NOTHING, word
    quote = '"""' if string.text.startswith('"""') else string.text[0]
    quoted = Quoted(text, base + string.start + len(quote), quote, offset)
    if frame.kind is FrameKind.LOOP and frame.index == 1:
        return _in_loop(quoted, word)
    if frame.kind is FrameKind.CONDITION:
        return Place(Spot.CHOICE, compared=compared(frame.item)), quoted.content
    if _is_template(reading) and (match := _PLACEHOLDER_BEFORE.search(quoted.written)):
        path = tuple(segment.strip() for segment in match[1].split(".")[:-1])
        return Place(Spot.TEMPLATE, path=path), word
    if quote != '"""' and frame.kind in ARGUMENT_LISTS | {FrameKind.LIST}:
        is_model = frame.kind is FrameKind.SETTINGS and in_model(reading)
        return Place(Spot.MODEL if is_model else Spot.CHOICE), quoted.content
    return NOTHING, Span(offset, offset)


def _in_loop(quoted: Quoted, word: Span) -> tuple[Place, Span]:
    """In a loop's condition, where a string has the other kind of quotes."""
    condition = read(quoted.text[quoted.start : word.start], word.start - quoted.start)
    string, item = condition.string, condition.frame.item
    if string is None:
        found = in_condition(condition, item)
        return Place(found.spot, path=found.path, compared=found.compared, quote=quoted.quote), word
    inner = Quoted(quoted.text, quoted.start + string.start + 1, string.text[0], quoted.offset)
    return Place(Spot.CHOICE, compared=compared(item)), inner.content


def _is_template(reading: Reading) -> bool:
    """Whether placeholders are filled in the string at the cursor."""
    frame = reading.frame
    if reading.keyword == "agent":
        in_modifier = frame.kind is FrameKind.UNIT and bool(frame.item) and frame.item[-1].text == "system"
        return in_modifier or frame.argument in ("system", "role")
    return reading.keyword == "pipeline" and frame.kind in _TEMPLATES
