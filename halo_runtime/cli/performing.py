"""One run from the command line: a job goes in, its result comes out; signals, questions and progress in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from halo_lang import Analysis
from halo_lang.records import record
from halo_runtime.cli.output import say
from halo_runtime.cli.progress import TICK_SECONDS, Progress
from halo_runtime.cli.stopping import stoppable
from halo_runtime.json_types import JsonObject
from halo_runtime.models.base import ModelProvider
from halo_runtime.results import RunResult
from halo_runtime.runtime import InterruptHandler, Runtime

CATCH_UP_SECONDS = 600.0
"""How long the end of a run waits for a slow reader of its narration, at most."""


@record
class Job:
    """What is to be run. `timeout` in seconds; `model` and `replies` as Runtime takes them."""

    analysis: Analysis
    pipeline: str
    inputs: JsonObject
    env: Mapping[str, str]
    model: str | None = None
    replies: ModelProvider | None = None
    timeout: float | None = None


class StoppedError(Exception):
    """The command was stopped from outside before the run began."""


async def perform(job: Job, progress: Progress, answer: InterruptHandler) -> RunResult:
    """Run the job; questions go to `answer`. A signal stops the run, which ends as `interrupted`.

    Raises StoppedError when it was stopped before it began, and HaloError for what never started.
    """
    runtime = Runtime(env=job.env, model=job.model, replies=job.replies)
    runtime.on_interrupt(answer)
    runtime.on_listen(answer)
    runtime.subscribe(progress)
    work = asyncio.ensure_future(runtime.run(job.analysis, job.pipeline, job.inputs, timeout=job.timeout))

    def stop() -> None:
        progress.close()
        say("stopping; Ctrl-C again ends at once")
        if progress.run_id is None or not runtime.stop(progress.run_id):
            work.cancel()

    try:
        with stoppable(stop):
            async with _ticking(progress):
                return await _told(work, progress)
    except asyncio.CancelledError:
        raise StoppedError from None
    finally:
        await runtime.close()


async def _told(work: asyncio.Future[RunResult], progress: Progress) -> RunResult:
    """The result, once everything that was to be told before it is told."""
    result = await work
    for _ in range(int(CATCH_UP_SECONDS / TICK_SECONDS)):
        if progress.caught_up:
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
        progress.tick()
