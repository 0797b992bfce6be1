"""The order of a replay: effects that ran side by side end as they ended, so that what they cause comes out the same.

A replay has all results at hand at once. Without an order the arm that fails would fail before the others have come
as far as they had, and the item whose gate closes would keep others from starting that had started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from halo_runtime.engine.journal import TIMEOUT, Outcome, is_of_limit

PATIENCE = 100
"""Turns of the event loop without any progress after which a replay no longer waits: more than blocks can be nested."""


class Ended(Protocol):
    """An effect that ended, as a journal or a cassette has it."""

    @property
    def path(self) -> str: ...

    @property
    def outcome(self) -> Outcome: ...


class ReplayOrder:
    """Lets recorded effects end in the order of their records.

    Only an order, never a condition: what a record waits for may not come (somebody's answer may have been recorded
    since, and holds a place in `each` now), and then it ends without it.
    """

    def __init__(self, records: Sequence[Ended]) -> None:
        self._cancelled = [record.outcome == "cancelled" for record in records]
        self._places = {record.path: place for place, record in enumerate(records)}
        # A time limit that ran out is not performed, nor is a question about a budget: nobody will come for its record.
        self._come = {place for path, place in self._places.items() if path.endswith(TIMEOUT) or is_of_limit(path)}
        self._first_missing = 0

    async def turn(self, path: str) -> None:
        """Wait until the effect at `path` may end: those before it have, and those that it cancelled have begun."""
        place = self._places.get(path)
        if place is None:
            return
        if self._cancelled[place]:
            self._note(place)
        idle = 0
        while idle < PATIENCE and self._is_early(place):
            before = len(self._come)
            await asyncio.sleep(0)
            idle = idle + 1 if len(self._come) == before else 0
        self._note(place)

    def _is_early(self, place: int) -> bool:
        if self._first_missing < place:
            return True
        behind = place + 1
        while behind < len(self._cancelled) and self._cancelled[behind]:
            if behind not in self._come:
                return True
            behind += 1
        return False

    def _note(self, place: int) -> None:
        self._come.add(place)
        while self._first_missing in self._come:
            self._first_missing += 1
