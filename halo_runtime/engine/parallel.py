"""Several calls at once: who starts, who waits, and how different endings are put together (spec 2.2, 12.2).

Failure wins over halt, halt over pause. After a failure or a halt no new item starts: a failure cancels the others and
waits until they have stopped, with a halt those that run finish first. A paused item frees its place and the others go
on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from halo_runtime.engine.calls.base import Outcome
from halo_runtime.engine.effects import Halted, Paused
from halo_runtime.engine.strand import STEPS_A_BREATH, Strand
from halo_runtime.errors import HaloError
from halo_runtime.results import Interrupt

Result = TypeVar("Result")
Job: TypeAlias = Callable[[int, Strand], Awaitable[Outcome]]
"""Does item `index`, writing down what happens in a strand of its own."""
BeforeStop: TypeAlias = Callable[[], Awaitable[None]]
"""Waits until a failure may cancel the others: a replay lets them come first as far as they had come."""


async def run_parallel(
    job: Job, count: int, concurrency: int, parent: Strand, before_stop: BeforeStop
) -> list[Outcome]:
    """The outcomes of items 0 … count-1 in their order, at most `concurrency` at once.

    Raises the first failure, else Halted of the first halted item, else Paused with all open questions. Whatever the
    ending, the items' strands are absorbed into `parent` in item order.
    """
    batch = _Batch(job, count, before_stop)
    final = False
    try:
        await batch.run(concurrency)
        final = not batch.pauses or bool(batch.halts)
    except HaloError:
        final = True
        raise
    finally:
        for strand in batch.strands:
            parent.absorb(strand, final=final)
    if batch.halts:
        raise batch.halts[min(batch.halts)]
    if batch.pauses:
        raise Paused(tuple(interrupt for index in sorted(batch.pauses) for interrupt in batch.pauses[index]))
    return batch.outcomes


async def all_of(jobs: Iterable[Coroutine[Any, Any, Result]], before_stop: BeforeStop) -> list[Result]:
    """The results of all jobs, run side by side, in their order.

    The first failure cancels the others. A pause does not: they end first, or pause too; then Paused is raised with
    all open questions.
    """
    failures = _Failures(before_stop)
    async with _first_failure_only(), asyncio.TaskGroup() as group:
        tasks = [group.create_task(_or_pause(job, failures)) for job in jobs]
    results = [task.result() for task in tasks]
    pauses = [result for result in results if isinstance(result, Paused)]
    if pauses:
        raise Paused(tuple(interrupt for pause in pauses for interrupt in pause.interrupts))
    return [result for result in results if not isinstance(result, Paused)]


async def _or_pause(job: Coroutine[Any, Any, Result], failures: _Failures) -> Result | Paused:
    try:
        return await job
    except Paused as pause:
        return pause
    except HaloError:
        await failures.in_turn()
        raise


class _Failures:
    """The failures of calls that run side by side: they are raised in the order in which they came."""

    def __init__(self, before_stop: BeforeStop) -> None:
        self._before_stop = before_stop
        self._first: asyncio.Event | None = None

    @property
    def come(self) -> bool:
        """Whether there is one, so that nothing new needs to begin."""
        return self._first is not None

    async def in_turn(self) -> None:
        """Wait until a failure that has come now may cancel the others."""
        if self._first is not None:
            await self._first.wait()
            return
        self._first = asyncio.Event()
        await self._before_stop()
        self._first.set()


@asynccontextmanager
async def _first_failure_only() -> AsyncGenerator[None]:
    """Raise the first of a group's errors alone: it is the cause, the others came of it."""
    try:
        yield
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


class _Batch:
    """Items in progress. Memory grows with results, not with what is still to come."""

    def __init__(self, job: Job, count: int, before_stop: BeforeStop) -> None:
        self._job = job
        self._indexes = iter(range(count))
        self._count = count
        self._failures = _Failures(before_stop)
        self.outcomes: list[Outcome] = [Outcome(None, frozenset())] * count
        self.strands: list[Strand] = []
        self.halts: dict[int, Halted] = {}
        self.pauses: dict[int, tuple[Interrupt, ...]] = {}

    async def run(self, concurrency: int) -> None:
        async with _first_failure_only(), asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, self._count)):
                group.create_task(self._work())

    async def _work(self) -> None:
        steps = 0
        for index in self._indexes:
            strand = Strand()
            self.strands.append(strand)  # items are taken in order, so strands stand in item order
            try:
                self.outcomes[index] = await self._job(index, strand)
            except Halted as halt:
                self.halts[index] = halt
            except Paused as pause:
                self.pauses[index] = pause.interrupts
            except HaloError:
                await self._failures.in_turn()
                raise
            if self.halts or self._failures.come:
                return
            steps += 1 + strand.steps
            if steps >= STEPS_A_BREATH:
                # Between items, never on the way to an item's end: a failure elsewhere would leave it undone there.
                steps = 0
                await asyncio.sleep(0)
                if self._failures.come:
                    return
