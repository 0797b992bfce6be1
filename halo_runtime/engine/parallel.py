"""Several calls at once: who starts, who waits, and how different endings are put together (spec 2.2, 12.2).

Failure wins over halt, halt over pause. A failure cancels the others and waits until they have stopped; after a halt
no new item starts and those that run finish first; a paused item frees its place and the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from halo_runtime.engine.calls.base import Outcome
from halo_runtime.engine.effects import Halted, Paused
from halo_runtime.engine.strand import Strand
from halo_runtime.errors import HaloError
from halo_runtime.results import Interrupt

Result = TypeVar("Result")
Job: TypeAlias = Callable[[int, Strand], Awaitable[Outcome]]
"""Does item `index`, writing down what happens in a strand of its own."""


async def run_parallel(job: Job, count: int, concurrency: int, parent: Strand) -> list[Outcome]:
    """The outcomes of items 0 … count-1 in their order, at most `concurrency` at once.

    Raises the first failure, else Halted of the first halted item, else Paused with all open questions. Whatever the
    ending, the items' strands are absorbed into `parent` in item order.
    """
    batch = _Batch(job, count)
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


async def all_of(jobs: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of all jobs, run side by side, in their order.

    The first failure cancels the others. A pause does not: they end first, or pause too; then Paused is raised with
    all open questions.
    """
    async with _first_failure_only(), asyncio.TaskGroup() as group:
        tasks = [group.create_task(_or_pause(job)) for job in jobs]
    results = [task.result() for task in tasks]
    pauses = [result for result in results if isinstance(result, Paused)]
    if pauses:
        raise Paused(tuple(interrupt for pause in pauses for interrupt in pause.interrupts))
    return [result for result in results if not isinstance(result, Paused)]


async def _or_pause(job: Coroutine[Any, Any, Result]) -> Result | Paused:
    try:
        return await job
    except Paused as pause:
        return pause


@asynccontextmanager
async def _first_failure_only() -> AsyncGenerator[None]:
    """Raise the first of a group's errors alone: it is the cause, the others came of it."""
    try:
        yield
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


class _Batch:
    """Items in progress. Memory grows with results, not with what is still to come."""

    def __init__(self, job: Job, count: int) -> None:
        self._job = job
        self._indexes = iter(range(count))
        self._count = count
        self.outcomes: list[Outcome] = [Outcome(None, frozenset())] * count
        self.strands: list[Strand] = []
        self.halts: dict[int, Halted] = {}
        self.pauses: dict[int, tuple[Interrupt, ...]] = {}

    async def run(self, concurrency: int) -> None:
        async with _first_failure_only(), asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, self._count)):
                group.create_task(self._work())

    async def _work(self) -> None:
        for index in self._indexes:
            strand = Strand()
            self.strands.append(strand)  # items are taken in order, so strands stand in item order
            try:
                self.outcomes[index] = await self._job(index, strand)
            except Halted as halt:
                self.halts[index] = halt
            except Paused as pause:
                self.pauses[index] = pause.interrupts
            if self.halts:
                return
