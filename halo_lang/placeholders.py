"""Placeholders inside strings: `{{path}}`, white space allowed around the path and its dots (spec 2.4).

Any other text between braces is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from halo_lang.lexicon import NAME
from halo_lang.source import Span

_GAP = r"[^\S\n]*+"
_PLACEHOLDER = re.compile(rf"\{{\{{{_GAP}({NAME}(?:{_GAP}\.{_GAP}(?:{NAME}|[0-9]++))*+){_GAP}\}}\}}")
_WORD = re.compile(r"\w++")
_DOT = re.compile(rf"{_GAP}\.{_GAP}")


class Placeholder(NamedTuple):
    """One placeholder of a text: its range in it and the segments of its path."""

    start: int
    end: int
    segments: tuple[str, ...]

    @property
    def is_env(self) -> bool:
        """Whether it names an environment variable: such a one is never filled in."""
        return self.segments[0] == "Env"

    def places(self, text: str) -> list[Span]:
        """Where each segment stands in the text."""
        return [Span(*found.span()) for found in _WORD.finditer(text, self.start, self.end)]


def placeholders(text: str) -> Iterator[Placeholder]:
    """The placeholders of a string's value, in order."""
    for found in _PLACEHOLDER.finditer(text):
        yield Placeholder(found.start(), found.end(), tuple(_DOT.split(found[1])))
