"""Textual's document with exact line ends, and with sizes that cost nothing per key."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Size
from textual.widgets.text_area import Document, EditResult, Location, WrappedDocument

from textual._cells import cell_len  # isort: skip

Splice = Callable[[int, int, int], None]
"""Told of each edit: first line, lines removed, lines inserted."""


class Buffer(Document):
    """Lines that rejoin to the text they were made from, byte for byte.

    The stock document splits at form feeds and Unicode separators too, and joins mixed line ends into one kind. Here
    only a line feed ends a line, with the carriage return before it when all lines end so; any other stays in its line.
    """

    def __init__(self, text: str) -> None:
        super().__init__("")
        self._newline = "\r\n" if 0 < text.count("\n") == text.count("\r\n") else "\n"
        self._lines = text.split(self._newline)
        self._widths: list[int] | None = None
        self._tab_width = 0
        self._text: str | None = text
        self.on_splice: Splice | None = None

    @property
    def text(self) -> str:
        """The whole text, joined at most once an edit: Textual asks for it for every row it draws."""
        if self._text is None:
            self._text = self._newline.join(self._lines)
        return self._text

    def get_size(self, tab_width: int) -> Size:
        """Width of the longest line and number of lines; only edited lines are measured again."""
        if self._widths is None or tab_width != self._tab_width:
            self._tab_width = tab_width
            self._widths = [self._width(line) for line in self._lines]
        return Size(max(self._widths, default=0), len(self._lines))

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        """Replace the text between two places; a line feed in `text` (CRLF too where lines end so) breaks a line."""
        (top, left), (bottom, right) = sorted((start, end))
        replaced = self.get_text_range((top, left), (bottom, right))
        lines = self._lines
        before = lines[top][:left] if top < len(lines) else ""
        after = lines[bottom][right:] if bottom < len(lines) else ""
        inserted = self._split(text)
        place = (top + len(inserted) - 1, len(inserted[-1]) + (len(before) if len(inserted) == 1 else 0))
        inserted[0] = before + inserted[0]
        inserted[-1] += after
        self._splice(top, min(bottom + 1, len(lines)) - top, inserted)
        return EditResult(place, replaced)

    def _split(self, text: str) -> list[str]:
        return (text.replace("\r\n", "\n") if self._newline == "\r\n" else text).split("\n")

    def _splice(self, top: int, removed: int, inserted: list[str]) -> None:
        self._lines[top : top + removed] = inserted
        self._text = None
        if self._widths is not None:
            self._widths[top : top + removed] = [self._width(line) for line in inserted]
        if self.on_splice is not None:
            self.on_splice(top, removed, len(inserted))

    def _width(self, line: str) -> int:
        return cell_len(line.expandtabs(self._tab_width))


class Unwrapped(WrappedDocument):
    """Every line is one row. The stock class finds that out by measuring all lines, at each change of size anew."""

    @property
    def height(self) -> int:
        return len(self._offset_to_line_info)

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        self._width = 0
        self._tab_width = tab_width or self._tab_width
        self._fit()

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        self._fit()

    def _fit(self) -> None:
        """Have as many rows as there are lines; what a row holds depends on its number alone."""
        known, count = len(self._wrap_offsets), self.document.line_count
        for table in (self._wrap_offsets, self._offset_to_line_info, self._line_index_to_offsets):
            del table[count:]
        self._wrap_offsets.extend([] for _ in range(known, count))
        self._offset_to_line_info.extend((line, 0) for line in range(known, count))
        self._line_index_to_offsets.extend([line] for line in range(known, count))
