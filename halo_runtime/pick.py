"""`System.Pick`: a field mask over objects and lists, and a cut to a length (spec 12.2).

The shape stays: `labels.name` of an issue is `{"labels": [{"name": …}, …]}`. Lists are mapped over at any depth, also
lists of lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from halo_runtime.json_types import Json
from halo_runtime.values import compact

_Mask: TypeAlias = dict[str, "_Mask | None"]
"""The fields to keep and what to keep of each: None is all of it."""


class Picked(NamedTuple):
    """What was kept, and how many whole items were cut from the end to fit."""

    value: Json
    dropped: int


def pick(value: Json, fields: Iterable[str] | None = None, max_chars: int | None = None) -> Picked:
    """Keep the dotted `fields` of an object or of each item of a list (all of them where `fields` is None).

    A field that is missing is left out; what is no object and no list is kept as it is. With `max_chars`, items are cut
    from the end of a list until its compact JSON has at most that many code points (`[]` may still be longer); other
    values are never cut.
    """
    kept = value if fields is None else _masked(value, _mask(fields))
    if max_chars is None or kept.__class__ is not list:
        return Picked(kept, 0)
    fitting = _fitting(kept, max_chars)
    return Picked(kept[:fitting], len(kept) - fitting)


def _mask(fields: Iterable[str]) -> _Mask:
    mask: _Mask = {}
    for field in fields:
        _add(mask, field.split("."))
    return mask


def _add(mask: _Mask, segments: list[str]) -> None:
    for parent in segments[:-1]:
        inner = mask.setdefault(parent, {})
        if inner is None:
            return  # `labels` next to `labels.name` keeps all of the labels
        mask = inner
    mask[segments[-1]] = None


def _masked(value: Json, mask: _Mask | None) -> Json:
    if mask is None:
        return value
    if value.__class__ is list:
        return [_masked(item, mask) for item in value]
    if value.__class__ is dict:
        return {key: _masked(field, mask[key]) for key, field in value.items() if key in mask}
    return value


def _fitting(items: list[Json], max_chars: int) -> int:
    """How many items from the start fit, each written once: two brackets, and a comma between each two."""
    length = 1
    for count, item in enumerate(items):
        length += len(compact(item)) + 1
        if length > max_chars:
            return count
    return len(items)
