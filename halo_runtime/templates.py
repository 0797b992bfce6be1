"""Templates: `{{path}}` inside strings, filled at the moment of a call (spec 2.4).

A placeholder is `{{`, a path, `}}`, with white space allowed around the path; any other text between braces is text.
Filling is one pass: what is filled in is never looked at again. A path that leads nowhere stays as it is written,
and so does `{{Env.…}}`, so that secrets cannot reach a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from halo_runtime.json_types import MISSING, Json, Missing
from halo_runtime.values import text_of

Read: TypeAlias = Callable[[tuple[str, ...]], Json | Missing]
"""Gives the value at a path's segments, MISSING where there is none."""

_NAME = r"[^\W\d]\w*+"
_PLACEHOLDER: Final = re.compile(rf"\{{\{{\s*+({_NAME}(?:\.(?:{_NAME}|[0-9]++))*+)\s*+\}}\}}")


class Placeholder(NamedTuple):
    """One `{{…}}`: the text before it, its path, and the placeholder as written."""

    before: str
    segments: tuple[str, ...]
    written: str


@dataclass(frozen=True, slots=True)
class Template:
    """A text cut at its placeholders; `tail` is what follows the last one."""

    placeholders: tuple[Placeholder, ...]
    tail: str

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to fill."""
        return not self.placeholders

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths that filling asks for, in order."""
        return tuple(placeholder.segments for placeholder in self.placeholders if placeholder.segments[0] != "Env")

    def fill(self, read: Read) -> str:
        """The text with values in place of the placeholders that lead to one."""
        if not self.placeholders:
            return self.tail
        parts: list[str] = []
        for before, segments, written in self.placeholders:
            value = MISSING if segments[0] == "Env" else read(segments)
            parts += (before, written if value is MISSING else text_of(value))
        parts.append(self.tail)
        return "".join(parts)


@lru_cache(maxsize=4096)
def compile_template(text: str) -> Template:
    """Cut `text` at its placeholders. Kept for texts seen lately: a program has few, a run fills them often."""
    placeholders: list[Placeholder] = []
    end = 0
    for found in _PLACEHOLDER.finditer(text):
        placeholders.append(Placeholder(text[end : found.start()], tuple(found[1].split(".")), found[0]))
        end = found.end()
    return Template(tuple(placeholders), text[end:])
