"""Templates: `{{path}}` inside strings, filled at the moment of a call (spec 2.4).

Filling is one pass: what is filled in is never looked at again. A path that leads nowhere stays as it is written,
and so does `{{Env.…}}`, so that secrets cannot reach a prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from halo_lang.placeholders import placeholders
from halo_lang.records import record
from halo_runtime.json_types import MISSING, Json, Missing
from halo_runtime.values import text_of

Read: TypeAlias = Callable[[tuple[str, ...]], Json | Missing]
"""Gives the value at a path's segments, MISSING where there is none."""


class Hole(NamedTuple):
    """One placeholder: the text before it, its path (None where it is never filled), and itself as written."""

    before: str
    segments: tuple[str, ...] | None
    written: str


@record
class Template:
    """A text cut at its placeholders; `tail` is what follows the last one."""

    holes: tuple[Hole, ...]
    tail: str

    @property
    def is_constant(self) -> bool:
        """Whether there is no placeholder at all."""
        return not self.holes

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths that filling asks for, in order."""
        return tuple(hole.segments for hole in self.holes if hole.segments is not None)

    def fill(self, read: Read) -> str:
        """The text with values in place of the placeholders that lead to one."""
        if not self.holes:
            return self.tail
        parts: list[str] = []
        for before, segments, written in self.holes:
            value = MISSING if segments is None else read(segments)
            parts += (before, written if value is MISSING else text_of(value))
        parts.append(self.tail)
        return "".join(parts)


@lru_cache(maxsize=1024)
def compile_template(text: str) -> Template:
    """Cut `text` at its placeholders. Kept for texts seen lately: a program has few, a run fills them often."""
    holes: list[Hole] = []
    end = 0
    for found in placeholders(text):
        segments = None if found.is_env else found.segments
        holes.append(Hole(text[end : found.start], segments, text[found.start : found.end]))
        end = found.end
    return Template(tuple(holes), text[end:])
