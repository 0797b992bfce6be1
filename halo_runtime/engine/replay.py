"""The order of a replay: what was cancelled must come as far as it had come when it was cancelled.

Effects that ran side by side ended in some order, and what failed or ran out of time cancelled the others in the
middle. A replay has all results at hand at once, so without an order the one that fails would fail before the others
have begun. Journals without cancelled effects need no order, and pay nothing for it.
"""

from __future__ import annotations

import asyncio

from halo_runtime.engine.journal import Journal

PATIENCE = 100
"""Turns of the event loop without any progress after which a replay no longer waits: more than blocks can be nested."""


class ReplayOrder:
    """Lets recorded effects end in the order of their journal.

    Only an order, never a condition: what the records wait for may not come (the program may ask for it later, or
    somebody's answer was recorded since), and then they go on without it.
    """

    def __init__(self, journal: Journal) -> None:
        records = [record for record in journal if not record.path.endswith("/timeout")]
        cancelled = [record.outcome == "cancelled" for record in records]
        self._places = {record.path: place for place, record in enumerate(records)} if any(cancelled) else {}
        self._ends = _ends_of_runs(cancelled)
        self._asked: set[int] = set()
        self._first_unasked = 0

    async def turn(self, path: str) -> None:
        """Wait until what ended before the effect at `path`, and what it cancelled, has been asked for."""
        place = self._places.get(path)
        if place is None:
            return
        self._ask(place)
        idle = 0
        while self._first_unasked <= self._ends[place] and idle < PATIENCE:
            before = len(self._asked)
            await asyncio.sleep(0)
            idle = idle + 1 if len(self._asked) == before else 0

    def _ask(self, place: int) -> None:
        self._asked.add(place)
        while self._first_unasked in self._asked:
            self._first_unasked += 1


def _ends_of_runs(cancelled: list[bool]) -> list[int]:
    """For each place the last of the cancelled effects that follow right behind it, else the place itself."""
    ends = list(range(len(cancelled)))
    for place in reversed(range(len(cancelled) - 1)):
        if cancelled[place + 1]:
            ends[place] = ends[place + 1]
    return ends
