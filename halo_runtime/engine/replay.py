"""The order of a replay: effects that ran side by side end as they ended, so that what they cause comes out the same.

A replay has all results at hand at once. Without an order the arm that fails would stop the others before they have
come as far as they had, and the item whose gate closes would keep others from starting that had started.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Protocol

from halo_runtime.engine.journal import SHADOW, TIMEOUT, Outcome, is_of_limit

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
        self._sorted: list[str] | None = None
        self._missing: dict[str, list[int]] = {}
        """The places of what is recorded under a path, without those that have come at the list's end."""

    async def turn(self, path: str) -> None:
        """Wait until the effect at `path` may end: those before it have, and what was cancelled with it has begun."""
        place = self._places.get(path)
        if place is None:
            return
        if self._cancelled[place]:
            self._note(place)
        await self._while(lambda: self._is_early(place))
        self._note(place)

    async def all_under(self, path: str) -> None:
        """Wait until what is recorded under `path` has ended, and what was cancelled there has begun.

        A failure takes a moment until it stops its siblings, and what came in that moment is in the record.
        """
        await self._while(lambda: self._lacks_under(path))

    async def _while(self, waits: Callable[[], bool]) -> None:
        idle = 0
        while idle < PATIENCE and waits():
            before = len(self._come)
            await asyncio.sleep(0)
            idle = idle + 1 if len(self._come) == before else 0

    def _is_early(self, place: int) -> bool:
        if self._first_missing < place:
            return True
        behind = place + 1 if self._cancelled[place] else len(self._cancelled)
        while behind < len(self._cancelled) and self._cancelled[behind]:
            if behind not in self._come:
                return True
            behind += 1
        return False

    def _lacks_under(self, path: str) -> bool:
        places = self._missing.get(path)
        if places is None:
            places = self._missing[path] = self._places_under(path)
        while places and places[-1] in self._come:
            places.pop()
        return bool(places)

    def _places_under(self, path: str) -> list[int]:
        """Where the records under a path stand, but for those of shadows: nothing that happens there stops them."""
        if self._sorted is None:
            self._sorted = sorted(self._places)
        first, behind = (bisect_left(self._sorted, path + end) for end in ("/", chr(ord("/") + 1)))
        return [self._places[one] for one in self._sorted[first:behind] if SHADOW not in one]

    def _note(self, place: int) -> None:
        self._come.add(place)
        while self._first_missing in self._come:
            self._first_missing += 1
