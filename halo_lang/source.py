"""Source text and places in it.

Offsets count code points from 0. Lines and columns count from 1, columns in code points; only ``\\n`` ends a
line, so CRLF and LF count alike (spec 1.1). A byte order mark is dropped before offsets are counted.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

BOM = "\ufeff"


class Span(NamedTuple):
    """A half-open range of offsets. Inside a declaration's nodes it is relative to the declaration's start."""

    start: int
    end: int

    def shifted(self, offset: int) -> Span:
        """The same range seen from `offset` further left."""
        return Span(self.start + offset, self.end + offset)


class Position(NamedTuple):
    """A place for people: line and column from 1, the column in code points."""

    line: int
    column: int


@dataclass(frozen=True)
class Source:
    """The text of one file and the arithmetic of places in it."""

    text: str
    path: str = "<text>"
    had_bom: bool = field(default=False, compare=False)

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line."""
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at != -1:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    def position(self, offset: int) -> Position:
        """Line and column of an offset; the end of the text is a place too."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.line_starts, offset)
        return Position(line, offset - self.line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its line break."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


class SourceDecodeError(ValueError):
    """The bytes are not UTF-8; `offset` is the byte where they stop being so, `prefix` the text before it."""

    def __init__(self, offset: int, prefix: str) -> None:
        super().__init__(f"invalid UTF-8 at byte {offset}")
        self.offset = offset
        self.prefix = prefix


def decode(data: bytes, path: str = "<text>") -> Source:
    """UTF-8 bytes as a Source, without a leading byte order mark.

    Raises SourceDecodeError with the byte offset where the bytes are not UTF-8.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        prefix = data[: error.start].decode("utf-8").removeprefix(BOM)
        raise SourceDecodeError(error.start, prefix) from None
    return Source(text.removeprefix(BOM), path, had_bom=text.startswith(BOM))
