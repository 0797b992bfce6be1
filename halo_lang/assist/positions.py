"""Positions in a text: code points, the units of an encoding, and terminal cells, each told by the others.

Everything in Halo counts code points from 0. Editors count units of UTF-16 (or of another encoding), terminals count
cells. All of that arithmetic is here. Text may hold anything, lone surrogates included.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from typing import NamedTuple
from unicodedata import category, east_asian_width

from halo_lang.source import Source

TAB_SIZE = 4
"""Cells from one tab stop to the next, where nothing else is said."""

MARKS = 4
"""Characters for each cell of a cut text, at most: marks take no cell, and some texts stack hundreds on a letter."""

_ZERO_WIDTH = frozenset(("Mn", "Me", "Cf"))


class Encoding(StrEnum):
    """What columns count in, by the names of the language server protocol: bytes, 16-bit units or code points."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Place(NamedTuple):
    """A place for an editor: line from 0, column from 0 in units of an encoding."""

    line: int
    column: int


# --- units of an encoding -----------------------------------------------------------------------------------


def units(text: str, encoding: Encoding = Encoding.UTF16) -> int:
    """How many units of an encoding a text takes."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    if encoding is Encoding.UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def index_at(text: str, column: int, encoding: Encoding = Encoding.UTF16) -> int:
    """The index of the character that `column` units lead to; a column inside a character leads to that character.

    A column in front of the text is its beginning, one behind it its end.
    """
    if encoding is Encoding.UTF32 or text.isascii():
        return max(0, min(column, len(text)))
    left = column
    for index, character in enumerate(text):
        left -= units(character, encoding)
        if left < 0:
            return index
    return len(text)


def place_of(source: Source, offset: int, encoding: Encoding = Encoding.UTF16) -> Place:
    """Where an offset stands. Offsets outside the text are moved into it, one inside a line break in front of it."""
    line, column = source.position(offset)
    return Place(line - 1, units(_line(source, line)[: column - 1], encoding))


def offset_of(source: Source, place: Place, encoding: Encoding = Encoding.UTF16) -> int:
    """The offset of a place. A column behind the end of its line is that end; so for the lines of the text."""
    if place.line < 0:
        return 0
    if place.line >= len(source.line_starts):
        return len(source.text)
    return source.line_starts[place.line] + index_at(_line(source, place.line + 1), place.column, encoding)


def _line(source: Source, number: int) -> str:
    """A line (from 1) without its break; unlike `Source.line`, every other carriage return stays."""
    start = source.line_starts[number - 1]
    if number == len(source.line_starts):
        return source.text[start:]
    return source.text[start : source.line_starts[number] - 1].removesuffix("\r")


# --- terminal cells -----------------------------------------------------------------------------------------


def cells(text: str) -> int:
    """How many terminal cells a text without tabs takes; marks and joiners take none, wide characters two."""
    return len(text) if text.isascii() else sum(map(_width, text))


def cell_of(line: str, index: int, tab_size: int = TAB_SIZE) -> int:
    """The cell in which the character `index` of a line begins; a tab leads to the next multiple of `tab_size`."""
    left = line[: max(0, index)]
    if "\t" not in left:
        return cells(left)
    cell = 0
    for part in left.split("\t")[:-1]:
        cell += cells(part)
        cell += tab_size - cell % tab_size
    return cell + cells(left[left.rindex("\t") + 1 :])


def index_at_cell(line: str, cell: int, tab_size: int = TAB_SIZE) -> int:
    """The index of the character that covers a cell of a line; the length of the line behind its end.

    Of a character and the marks on it, which share their cells, it is the character.
    """
    end = 0
    for index, character in enumerate(line):
        end += tab_size - end % tab_size if character == "\t" else _width(character)
        if cell < end:
            return index
    return len(line)


def first_cells(text: str, width: int, ellipsis: str = "…") -> str:
    """The text cut to a number of terminal cells at its end."""
    if _fits(text, width):
        return text
    return _as_many_as_fit(text, width - len(ellipsis)) + ellipsis[: max(0, width)]


def last_cells(text: str, width: int, ellipsis: str = "…") -> str:
    """The text cut to a number of terminal cells at its beginning, where no mark is left without its letter."""
    if _fits(text, width):
        return text
    end = _as_many_as_fit(reversed(text), width - len(ellipsis))[::-1]
    start = next((at for at, character in enumerate(end) if _width(character)), len(end))
    return ellipsis[: max(0, width)] + end[start:]


def _fits(text: str, width: int) -> bool:
    return len(text) <= width * MARKS and cells(text) <= width


def _as_many_as_fit(characters: Iterable[str], width: int) -> str:
    found: list[str] = []
    for character in islice(characters, max(0, width) * MARKS):
        width -= _width(character)
        if width < 0:
            break
        found.append(character)
    return "".join(found)


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if category(character) in _ZERO_WIDTH:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
