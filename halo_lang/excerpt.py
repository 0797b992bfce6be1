"""How a place in a source text is shown to people: its line, and carets under it.

The one place where source text becomes terminal text: control characters are shown, never obeyed, and a line of
any length stays one readable line.
"""

from __future__ import annotations

from unicodedata import category

from halo_lang.assist.positions import cells
from halo_lang.source import Source, Span

MAX_COLUMNS = 160
"""Longer lines are cut to a window of this many characters around the place."""

_LEFT_OF_PLACE = 60
_JOINERS = "\u200c\u200d"
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"))


def visible(text: str, keep: str = "\t") -> str:
    """Text made safe for a terminal: characters that would act on it stand as escapes, those in `keep` excepted.

    Joiners stay, because scripts and emoji need them; direction marks do not, because they can disguise text.
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep else _shown(c) for c in text)


def excerpt(source: Source, span: Span) -> list[str]:
    """Three lines: a gutter, the source line where `span` starts, carets under what it covers there."""
    start, end = source.position(span.start), source.position(span.end)
    text = source.line(start.line)
    last = end.column - 1 if end.line == start.line else len(text)
    left, marked, right = _window(text, start.column - 1, last)
    gutter = " " * len(str(start.line))
    # A tab keeps its width in the caret line, so that the caret stands under what it points at.
    indent = "".join(c if c == "\t" else " " * cells(visible(c)) for c in left)
    carets = "^" * max(1, cells(visible(marked)))
    return [
        f"{gutter} |",
        f"{start.line} | {visible(left + marked + right)}".rstrip(),
        f"{gutter} | {indent}{carets}",
    ]


def _window(text: str, first: int, last: int) -> tuple[str, str, str]:
    """What stands left of, in and right of the marked range, cut to MAX_COLUMNS."""
    left, marked, right = text[:first], text[first:last], text[last:]
    if len(text) <= MAX_COLUMNS:
        return left, marked, right
    if len(left) > _LEFT_OF_PLACE:
        left = "…" + left[-_LEFT_OF_PLACE:]
    marked = marked[: MAX_COLUMNS - len(left)]
    room = MAX_COLUMNS - len(left) - len(marked)
    return left, marked, right if len(right) <= room else right[:room] + "…"


def _shown(character: str) -> str:
    if character in _JOINERS or category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
