"""A text as it is meant: what rules that look for something in it see beside its raw form (spec 6).

Pure functions. Each view knows where in the raw text its characters come from.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from halo_lang.records import record


@record
class View:
    """A text made from a part of the raw one. `places[i]` is the raw offset that its character i came from; the last
    one, behind all characters, is where the part ends. `how` names the disguise: `""` for the raw text itself."""

    text: str
    places: tuple[int, ...] | range
    how: str = ""

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the raw text that characters `start` to `end` came from."""
        return self.places[start], self.places[end - 1] + 1 if end > start else self.places[start]


@record
class Views:
    """All views of a text, the raw one first, the normalised one second where it differs."""

    raw: View
    normal: View
    decoded: tuple[View, ...] = ()

    def __iter__(self) -> Iterator[View]:
        return chain((self.raw,) if self.normal is self.raw else (self.raw, self.normal), self.decoded)


@lru_cache(maxsize=256)
def views_of(text: str) -> Views:
    """The views of a text."""
    raw = View(text, range(len(text) + 1))
    return Views(raw, _normal(raw))


def _normal(view: View) -> View:
    normal = unicodedata.normalize("NFKC", view.text)
    return view if normal == view.text else View(normal, tuple(range(len(normal) + 1)), "normalised")
