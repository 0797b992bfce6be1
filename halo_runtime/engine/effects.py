"""The effect boundary: everything a run gets from outside goes through `Effects.perform` (spec 3).

Model, tool, human, event, clock and random results are recorded under their structural path. Given a journal, the
recorded result is taken and nothing is done: an error is raised again, and what was cancelled waits to be cancelled
again, as it did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Final

from halo_runtime.engine.journal import (
    TIMEOUT,
    EffectKind,
    EffectRecord,
    Journal,
    Outcome,
    error_from_record,
    error_to_record,
)
from halo_runtime.engine.replay import ReplayOrder
from halo_runtime.engine.reuse import Reuse
from halo_runtime.errors import HaloError, ReplayError, TimeoutExceeded
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.redaction import Redactor
from halo_runtime.results import Interrupt
from halo_runtime.values import digest

Origins = frozenset[str]
NO_ORIGINS: Origins = frozenset()
INPUT: Final = "input"
"""Stands among origins for the run's arguments, which no effect has brought."""


class ControlFlow(BaseException):
    """Base of what ends a run without being an error.

    Not an Exception, so that no handler for errors, no `@retry` and no `@correct` can swallow it.
    """


class Halted(ControlFlow):
    """A gate closed; `value` is what flowed there."""

    def __init__(self, value: Json, origins: Origins) -> None:
        super().__init__()
        self.value = value
        self.origins = origins


class Paused(ControlFlow):
    """Questions without an answer, each once; the run can go on when they have one."""

    def __init__(self, interrupts: tuple[Interrupt, ...]) -> None:
        super().__init__()
        # Several calls may wait for one answer.
        self.interrupts = tuple({interrupt.id: interrupt for interrupt in interrupts}.values())


class Unrecorded(Paused):
    """A rehearsal has come to an effect that its journal does not hold: as far as the run is known."""

    def __init__(self) -> None:
        super().__init__(())


class TimeUp(ControlFlow):
    """A replay has come to where the time limit of the pipeline at `path` had run out, with `error`."""

    def __init__(self, path: str, error: HaloError) -> None:
        super().__init__()
        self.path = path
        self.error = error


def ending_of(problem: BaseException) -> str:
    """How something ended that did not complete, in the words of events: failed, halted, paused or cancelled."""
    if isinstance(problem, HaloError):
        return "failed"
    if isinstance(problem, Halted):
        return "halted"
    return "paused" if isinstance(problem, Paused) else "cancelled"


def _nothing() -> JsonObject | None:
    """Most effects are nobody's answer, and count for nothing in budgets."""
    return None


class Effects:
    """Performs effects once and records them in `journal`, errors without secrets.

    Results come without them already: who does the effect knows which parts of it are anybody's text. `reuse` is the
    run that this one continues, whose results are taken where they still fit. `rehearsal`: nothing is done at all.
    """

    def __init__(
        self, journal: Journal, redactor: Redactor, *, edge: Redactor | None = None, reuse: Reuse | None = None,
        rehearsal: bool = False,
    ) -> None:  # fmt: skip
        self.journal = journal
        self.reuse = reuse
        self.rehearsal = rehearsal
        self._redactor = redactor
        self._edge = redactor if edge is None else edge
        self._replaying = reuse is not None or len(journal) > 0
        self._held: list[Callable[[], None]] = []
        self._order = ReplayOrder([*journal, *(reuse.records if reuse is not None else ())])

    @contextmanager
    def during_replay(self, held: AbstractContextManager[None]) -> Generator[None]:
        """Stay in `held` until something is really done, or the body ends: what is only replayed takes no time."""
        with ExitStack() as stack:
            if self._replaying:
                stack.enter_context(held)
                self._held.append(stack.close)
            yield

    def _begin(self) -> None:
        """From here on time passes: something is about to be done that no journal holds."""
        self._replaying = False
        while self._held:
            self._held.pop()()

    def recorded(self, path: str) -> bool:
        """Whether the effect at `path` has ended before, so that performing it does nothing."""
        return self.journal.find(path) is not None

    def is_known(self, path: str) -> bool:
        """Whether there is a record of the effect at `path`, of this run or of the one that it continues."""
        return self.recorded(path) or (self.reuse is not None and self.reuse.has(path))

    def in_doubt(self, path: str) -> bool:
        """Whether the effect at `path` had begun and nothing is known of its end."""
        return self.journal.in_doubt(path) or (self.reuse is not None and self.reuse.in_doubt(path))

    def was_reused(self, path: str) -> bool:
        """Whether the effect at `path` was taken from the run that this one continues."""
        found = self.journal.find(path)
        return found is not None and found.reused

    async def perform(
        self,
        path: str,
        kind: EffectKind,
        request: Json,
        do: Callable[[], Awaitable[Json]],
        *,
        origins: Origins = NO_ORIGINS,
        guards: Origins = NO_ORIGINS,
        answer: Callable[[], JsonObject | None] = _nothing,
        charge: Callable[[], JsonObject | None] = _nothing,
    ) -> Json:
        """The result of the effect at `path`: from the journal if it is there, else from `do()`, then recorded.

        `do` returns a JSON value or raises a HaloError, which is recorded too. A pause leaves no record: the effect
        has not ended. `answer` tells who gave it, for answers, `charge` what it counts for in budgets. Raises
        ReplayError where the journal holds another request at this path.
        """
        asked = digest(self._edge.identity(request))  # a run that goes on has its input without secrets
        record = self.journal.find(path)
        if record is None:
            record = self._reused(path, kind, asked)
        elif self.reuse is not None and not record.reused:
            self.reuse.done_anew(path)
        if record is not None:
            return await self._replay(record, kind, asked)
        if self.rehearsal:
            raise Unrecorded

        def note(outcome: Outcome, result: Json) -> None:
            sources = (tuple(sorted(origins)), tuple(sorted(guards)))
            entry = EffectRecord(path, kind, asked, outcome, result, *sources, answer=answer(), charge=charge())
            self.journal.append(entry)

        self._begin()
        try:
            result = await do()
        except asyncio.CancelledError:
            note("cancelled", None)
            raise
        except HaloError as error:
            self._redactor.clean(error)
            note("failed", error_to_record(error))
            raise
        note("done", result)
        return result

    def _reused(self, path: str, kind: EffectKind, asked: str) -> EffectRecord | None:
        """The record of the run that this one continues, now this one's too; None where it does not fit."""
        found = self.reuse.take(path, kind, asked) if self.reuse is not None else None
        if found is None:
            return None
        record = replace(found, reused=True)
        self.journal.append(record)
        return record

    async def _replay(self, record: EffectRecord, kind: EffectKind, asked: str) -> Json:
        if record.kind != kind or record.request_sha256 != asked:
            raise ReplayError(
                f"the journal holds another {record.kind} effect at {record.path}: "
                "it was made by another program or from other input; run without it"
            )
        await self._order.turn(record.path)
        if record.outcome == "done":
            return record.result
        if record.outcome == "failed":
            raise error_from_record(record.result)
        if limit := self._time_limit_over(record.path):
            raise TimeUp(limit.path.removesuffix(TIMEOUT), error_from_record(limit.result))
        # A sibling's failure cancelled this one, and will again.
        await asyncio.get_running_loop().create_future()
        raise AssertionError("a future that nobody completes was completed")

    async def all_under(self, path: str) -> None:
        """Wait in a replay until what is recorded under `path` has ended (see ReplayOrder)."""
        await self._order.all_under(path)

    def time_ran_out(self, path: str, error: TimeoutExceeded) -> None:
        """Record that the time limit of the pipeline at `path` ran out, so that a replay stops at the same place."""
        place = path + TIMEOUT
        if not self.recorded(place):
            self.journal.append(EffectRecord(place, "clock", digest(None), "failed", error_to_record(error)))

    def _time_limit_over(self, path: str) -> EffectRecord | None:
        """The record of a time limit that ran out around `path`."""
        steps = path.split("/")
        places = ("/".join(steps[:length]) + TIMEOUT for length in range(len(steps), 0, -1))
        return next((record for place in places if (record := self.journal.find(place))), None)
