"""Places as the protocol counts them: lines from 0, columns in the units that client and server agreed on.

A line also ends at a `\\r` that stands alone (the protocol's rule, not Halo's), so lines are counted here; what a
column is in a line's text is `assist.positions`' business.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final

from lsprotocol import types

from halo_lang.assist.positions import Encoding, index_at, units
from halo_lang.source import Source, Span

_LINE_END: Final = re.compile(r"\r\n?|\n")


class Places:
    """The places of one version of a text in one encoding. Any position gives an offset: what is outside is clamped."""

    def __init__(self, source: Source, encoding: Encoding) -> None:
        self.source = source
        self.encoding = encoding

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line."""
        text = self.source.text
        if "\r" not in text or text.count("\r") == text.count("\r\n"):
            return self.source.line_starts
        return [0, *(end.end() for end in _LINE_END.finditer(text))]

    def line(self, number: int) -> str:
        """The text of a line (from 0) without its line break."""
        starts = self.line_starts
        end = starts[number + 1] if number + 1 < len(starts) else len(self.source.text)
        return self.source.text[starts[number] : end].rstrip("\r\n")

    def offset(self, position: types.Position) -> int:
        """The offset of a position; behind the end of a line it is that end, behind the last line the text's."""
        if position.line >= len(self.line_starts):
            return len(self.source.text)
        number = max(0, position.line)
        line = self.line(number)
        return self.line_starts[number] + index_at(line, position.character, self.encoding)

    def position(self, offset: int) -> types.Position:
        """The position of an offset. Between the two characters of a line break it is the end of the line."""
        number = bisect_right(self.line_starts, offset) - 1
        start = self.line_starts[number]
        line = self.line(number)
        return types.Position(number, units(line[: offset - start], self.encoding))

    def span(self, range_: types.Range) -> Span:
        """A range as offsets, its ends in order however the client gave them."""
        ends = sorted((self.offset(range_.start), self.offset(range_.end)))
        return Span(ends[0], ends[1])

    def range(self, span: Span) -> types.Range:
        """Offsets as a range."""
        return types.Range(self.position(span.start), self.position(span.end))
