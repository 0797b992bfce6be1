"""Formatting as edits of the lines that change, so that cursors, marks and folds elsewhere stay where they are."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final

from lsprotocol import types

from halo_lang.formatter import format_source
from halo_lang.server.view import View
from halo_lang.source import BOM, Source, Span

_COMPARED: Final = 4000
"""Lines between the first and the last difference that are compared one by one; comparing takes up to their square."""


def formatting(view: View, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
    """The edits that give a document its canonical layout, whatever tab size the client suggests."""
    text = view.places.source.text
    start = len(BOM) if text.startswith(BOM) else 0
    after = text[:start] + format_source(Source(text[start:]))
    return [view.edit(span, new) for span, new in differences(text, after)]


def differences(before: str, after: str) -> Iterator[tuple[Span, str]]:
    """Replacements of whole lines that turn one text into the other, in order."""
    # Lines as `splitlines` has them end at more characters than Halo's: no harm, the edits are only finer.
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    front = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    pairs = zip(reversed(old[front:]), reversed(new[front:]), strict=False)
    back = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)) - front)
    starts = list(accumulate(map(len, old), initial=0))
    for first, last, lines in _replaced(old[front : len(old) - back], new[front : len(new) - back]):
        yield Span(starts[front + first], starts[front + last]), "".join(lines)


def _replaced(old: list[str], new: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """Numbers of the first replaced line and the one behind the last, with the lines in their place."""
    if max(len(old), len(new)) > _COMPARED:
        yield 0, len(old), new
        return
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield first, last, new[start:end]
