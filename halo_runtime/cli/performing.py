"""One run from the command line: work goes in, its result comes out; signals, questions and progress in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from halo_runtime.cli.asking import Answering
from halo_runtime.cli.keyboard import terminal_for
from halo_runtime.cli.output import say
from halo_runtime.cli.progress import TICK_SECONDS, Progress
from halo_runtime.cli.stopping import stoppable
from halo_runtime.results import RunResult
from halo_runtime.runtime import InterruptHandler, Runtime

if TYPE_CHECKING:
    from halo_runtime.cli.answers import AnswersAhead
    from halo_runtime.cli.settings import Settings

Work: TypeAlias = Callable[[Runtime], Awaitable[RunResult]]
"""Runs something, or goes on with it."""

CATCH_UP_SECONDS = 600.0
"""How long the end of a run waits for a slow reader of its narration, at most."""


class StoppedError(Exception):
    """The command was stopped from outside before the run began."""


def carry_out(
    work: Work, runtime: Runtime, settings: Settings, progress: Progress, ahead: AnswersAhead | None = None
) -> RunResult:
    """Do the work as the settings say. Raises as `perform` does."""
    # With events as JSON lines on stderr there is no room for a question.
    terminal = None if settings.no_input or settings.events else terminal_for(progress)
    answering = Answering(ahead, terminal, settings.person, runtime.left_for)
    return asyncio.run(perform(runtime, work, progress, answering))


async def perform(runtime: Runtime, work: Work, progress: Progress, answer: InterruptHandler) -> RunResult:
    """Do the work; questions go to `answer`. A signal stops the run, which ends as `interrupted`.

    Raises StoppedError when it was stopped before it began, and HaloError for what never started.
    """
    runtime.on_interrupt(answer)
    runtime.on_listen(answer)
    runtime.subscribe(progress)
    running = asyncio.ensure_future(work(runtime))

    def stop() -> None:
        progress.close()
        say("stopping; Ctrl-C again ends at once")
        if progress.run_id is None or not runtime.stop(progress.run_id):
            running.cancel()

    try:
        with stoppable(stop):
            async with _ticking(progress):
                return await _told(running, progress)
    except asyncio.CancelledError:
        raise StoppedError from None
    finally:
        await runtime.close()


async def _told(running: asyncio.Future[RunResult], progress: Progress) -> RunResult:
    """The result, once everything that was to be told before it is told."""
    result = await running
    for _ in range(int(CATCH_UP_SECONDS / TICK_SECONDS)):
        if progress.caught_up or progress.run_id is None:
            break
        await asyncio.sleep(TICK_SECONDS)
    return result


@asynccontextmanager
async def _ticking(progress: Progress) -> AsyncGenerator[None]:
    ticker = asyncio.create_task(_tick(progress))
    try:
        yield
    finally:
        ticker.cancel()
        progress.close()


async def _tick(progress: Progress) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        # In a thread: a terminal that is held (Ctrl-S) or slow must not hold the run.
        await asyncio.to_thread(progress.tick)
