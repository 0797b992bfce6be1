"""Rows as objects, within bounds (spec 5: a result is cut where all can see it)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.prompts import cut

MAX_CELL: Final = 100_000
"""Characters of a text, or bytes, that one field may have."""
MAX_RESULT: Final = 1_000_000
"""Characters and bytes that all of them may have, more or less."""
NOTE: Final = "[cut]"
"""The name of the only field in the entry behind rows that were cut."""

_SMALL: Final = 8
_PLAIN: Final = frozenset([int, float, bool, type(None)])


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """The columns' names, further ones of the same name with a number: `id`, `id_2`."""
    taken: set[str] = set(names)
    found: dict[str, None] = {}
    for name in names:
        number, wanted = 1, name
        while wanted in found or (number > 1 and wanted in taken):
            number += 1
            wanted = f"{name}_{number}"
        found[wanted] = None
    return tuple(found)


class Rows:
    """Collects rows up to the limits; `add` says whether there is room for more."""

    def __init__(
        self, max_rows: int, advice: str = "use limit and offset, or raise maxRows in the declaration"
    ) -> None:
        self._max = max_rows
        self._advice = advice
        self._rows: list[Json] = []
        self._size = 0
        self._note = ""

    def add(self, names: Sequence[str], cells: Sequence[Json]) -> bool:
        """Take a row, or note that it is one too many and give False."""
        if len(self._rows) >= self._max:
            self._note = f"[… more than {self._max:,} rows; {self._advice}]"
            return False
        row: JsonObject = {}
        for name, cell in zip(names, cells, strict=True):
            if cell.__class__ in _PLAIN:  # most are; a row must cost no more than a few microseconds
                row[name] = cell
                self._size += _SMALL
            else:
                row[name] = bounded = _bounded(cell)
                self._size += _size(bounded)
        if self._rows and self._size > MAX_RESULT:
            kept = f"{len(self._rows):,}"
            self._note = f"[… more rows behind the first {kept}, over {MAX_RESULT:,} characters; ask for less]"
            return False
        self._rows.append(row)
        return True

    def result(self) -> list[Json]:
        """The rows, and behind them the note that says what is missing."""
        return [*self._rows, {NOTE: self._note}] if self._note else self._rows


def _bounded(cell: Json) -> Json:
    if isinstance(cell, str):
        return cut(cell, MAX_CELL)
    if isinstance(cell, bytes):
        return cell if len(cell) <= MAX_CELL else f"[{len(cell):,} bytes, over {MAX_CELL:,}; ask for a part of them]"
    if (is_list(cell) or is_object(cell)) and _size(cell) > MAX_RESULT:
        return f"[a value of over {MAX_RESULT:,} characters; ask for a part of it]"
    return cell


def _size(cell: Json) -> int:
    """About how long a value is as JSON."""
    if isinstance(cell, str | bytes):
        return len(cell)
    total, waiting = 0, [cell]
    while waiting:
        value = waiting.pop()
        if is_list(value):
            waiting.extend(value)
        elif is_object(value):
            waiting.extend(value.values())
            total += sum(map(len, value))
        total += len(value) if isinstance(value, str) else _SMALL
    return total
