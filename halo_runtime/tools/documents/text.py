"""Texts of documents: cut into pieces, searched for words, tables as Markdown (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import ToolError

PASSAGE_CHARS: Final = 500

_BREAKS: Final = ("\n\n", "\n", ". ", " ")
"""Where a piece ends, best first."""


@record
class Passage:
    """A piece of a text that has words that were looked for. `score` is how many of them, and how often, a little."""

    text: str
    score: float


def chunks_of(text: str, size: int, overlap: int) -> Iterator[str]:
    """Pieces of at most `size` characters that cover a text; the first `overlap` of one end the one before.

    They end between paragraphs, lines, sentences or words where one does in their second half. Raises ToolError.
    """
    if overlap >= size:
        raise ToolError(f"overlap ({overlap}) must be less than size ({size})")
    start = 0
    while start < len(text):
        end = _end(text, start, size, overlap)
        yield text[start:end]
        if end == len(text):
            return
        start = end - overlap


def find_passages(text: str, words: Sequence[str]) -> Iterator[Passage]:
    """Pieces of a text that have any of some words in lower case; those with all of them score best."""
    if not any(word in text.casefold() for word in words):
        return
    for piece in chunks_of(text, PASSAGE_CHARS, 0):
        folded = piece.casefold()
        counts = [len(re.findall(rf"(?<!\w){re.escape(word)}", folded)) for word in words]
        present = sum(count > 0 for count in counts)
        if present:
            yield Passage(piece.strip(), present + min(sum(counts), 99) / 100)


def markdown_table(rows: Sequence[Sequence[object]]) -> str:
    """Rows as a table, the first as its head."""
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [f"| {' | '.join([*map(_cell, row), *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return re.sub(r"\s*\n\s*", " ", text.strip()).replace("|", "\\|")


def _end(text: str, start: int, size: int, overlap: int) -> int:
    end = start + size
    if end >= len(text):
        return len(text)
    earliest = start + max(size // 2, overlap + 1)
    for mark in _BREAKS:
        place = text.rfind(mark, earliest - len(mark), end)
        if place >= 0 and place + len(mark) >= earliest:
            return min(place + len(mark), end)
    return end
