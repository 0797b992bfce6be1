"""Templates: `{{path}}` inside strings, filled at the moment of a call (spec 2.4).

Filling is one pass: what is filled in is never looked at again. A path that leads nowhere stays as it is written,
and so does `{{Env.…}}`, so that secrets cannot reach a prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Self, TypeAlias

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


class WrittenText(str):
    """A text of the program that remembers what was filled into it, for tools that run texts as code.

    `written` are the program's own words, one more than the `filled` values that stand between them. It is an
    ordinary text to everybody else. A text that is none of these was not written by the program.
    """

    __slots__ = ("filled", "written")

    def __new__(cls, written: tuple[str, ...], filled: tuple[str, ...] = ()) -> Self:
        between = (*filled, "")
        text = super().__new__(cls, "".join(part for pair in zip(written, between, strict=True) for part in pair))
        text.written = written
        text.filled = filled
        return text

    written: tuple[str, ...]
    filled: tuple[str, ...]

    @property
    def is_value(self) -> bool:
        """Whether all of it is one value: the program wrote nothing but a placeholder or a path."""
        return self.written == ("", "")


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
        return "".join(self._parts(read)) if self.holes else self.tail

    def fill_apart(self, read: Read) -> WrittenText:
        """The same text, which still knows what of it was filled in."""
        parts = self._parts(read)
        return WrittenText(tuple(parts[::2]), tuple(parts[1::2]))

    def _parts(self, read: Read) -> list[str]:
        """What is written and what is filled in, in turn; the first and the last are written."""
        parts: list[str] = []
        for before, segments, written in self.holes:
            value = MISSING if segments is None else read(segments)
            parts += (before, written if value is MISSING else text_of(value))
        parts.append(self.tail)
        return parts


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
