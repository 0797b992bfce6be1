"""What is said when a cassette has no answer: which call it is, and how it differs from what was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from halo_runtime.cassettes.format import Entry, Kind, name_of
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing, is_list, is_object

_FIELDS_SHOWN: Final = 3
_COMPARED: Final = 500
"""So many recorded requests of one call are compared at most; the nearest of them is near enough."""

_EXCERPT: Final = 40
"""Characters of a value that are shown on either side."""


def why(kind: Kind, request: JsonObject, same: int, entries: Sequence[Entry], cassette: str) -> str:
    """Why `cassette` does not answer a request that `same` recorded ones are equal to, all of them used up."""
    name = name_of(kind, request)
    if same:
        count = "once" if same == 1 else f"{same} times"
        return f"{name}: {cassette} has this request {count} only, and it is made once more"
    alike = [entry for entry in entries if entry.name == name]
    if not alike:
        known = sorted({entry.name for entry in entries})
        there = f"only of {', '.join(known)}" if known else "of nothing"
        return f"{name}: {cassette} has no request of it, {there}"
    nearest, differences = min(
        ((entry, _differences(entry.exchange().request, request)) for entry in alike[:_COMPARED]),
        key=lambda found: (len(found[1]), -_agreement(found[1])),
    )
    shown = "; ".join(f"{field} {_contrast(*values)}" for field, values in list(differences.items())[:_FIELDS_SHOWN])
    more = len(differences) - _FIELDS_SHOWN
    rest = f"; {more} further {'field differs' if more == 1 else 'fields differ'}" if more > 0 else ""
    return f"{name}: {cassette} has no answer to this request; in the nearest one (line {nearest.number}) {shown}{rest}"


def _differences(recorded: JsonObject, asked: JsonObject) -> dict[str, tuple[Json | Missing, Json | Missing]]:
    """The fields that differ: where they stand (`messages.1.content`) → recorded and asked value."""
    before, now = dict(_leaves(recorded)), dict(_leaves(asked))
    pairs = {place: (before.get(place, MISSING), now.get(place, MISSING)) for place in [*now, *before]}
    return {place: pair for place, pair in pairs.items() if not _equal(*pair)}


def _leaves(value: Json, place: str = "") -> Iterator[tuple[str, Json]]:
    items = value.items() if is_object(value) else enumerate(value) if is_list(value) else None
    if not items:
        yield place, value
        return
    for key, item in items:
        yield from _leaves(item, f"{place}.{key}" if place else str(key))


def _equal(first: Json | Missing, second: Json | Missing) -> bool:
    return isinstance(first, bool) == isinstance(second, bool) and first == second


def _agreement(differences: dict[str, tuple[Json | Missing, Json | Missing]]) -> int:
    """How many characters the differing texts have in common at their beginnings."""
    return sum(_common(*values) for values in differences.values())


def _common(first: Json | Missing, second: Json | Missing) -> int:
    if not (isinstance(first, str) and isinstance(second, str)):
        return 0
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))


def _contrast(recorded: Json | Missing, asked: Json | Missing) -> str:
    if isinstance(recorded, Missing):
        return f"was not there, and is {_shown(asked, 0)}"
    if isinstance(asked, Missing):
        return f"was {_shown(recorded, 0)}, and is not there"
    at = _common(recorded, asked)
    return f"was {_shown(recorded, at)}, and is {_shown(asked, at)}"


def _shown(value: Json | Missing, at: int) -> str:
    """A value on one line, around its character `at` where it is a longer text."""
    if not isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False) if not isinstance(value, Missing) else ""
        return text if len(text) <= 2 * _EXCERPT else f"{text[: 2 * _EXCERPT]}…"
    start, end = max(0, at - _EXCERPT), at + _EXCERPT
    middle = json.dumps(value[start:end], ensure_ascii=False)[1:-1]
    return f'"{"…" if start else ""}{middle}{"…" if end < len(value) else ""}"'
