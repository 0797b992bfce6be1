"""`@retry`: further tries of a model request or a tool call after failures that pass (spec 2.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from halo_runtime.engine.directives import Retry
from halo_runtime.engine.events import RetryScheduled
from halo_runtime.engine.frame import Frame
from halo_runtime.errors import HaloError, ModelError, ServiceError, TimeoutExceeded
from halo_runtime.json_types import Json

Result = TypeVar("Result")

MAXIMUM_WAIT = 600.0
"""Seconds. Exponential waits stop growing here, and who asks for a longer one is not waited for."""

TRY_AGAIN = "this may pass: add @retry(3) to the agent, and it is tried again"
"""What to do about a failure of a model that passes, where the program does not say."""


async def with_retries(
    frame: Frame,
    path: str,
    retry: Retry | None,
    once: Callable[[int], Awaitable[Result]],
    *,
    repeatable: bool = True,
) -> tuple[Result, int]:
    """The result of `once(attempt)`, tried again as `retry` says, and the number of tries.

    The last error is raised, with its `attempt` set. Policy violations and bad requests are never tried again, nor is
    what ran out of time unless it is `repeatable`: it may have had its effect. Whether a service's failure may have
    had one is said by the failure itself.
    """
    attempt = 1
    while True:
        try:
            return await once(attempt), attempt
        except (ServiceError, TimeoutExceeded) as error:
            error.attempt = attempt
            if retry is None and isinstance(error, ModelError) and error.retryable:
                error.hint = error.hint or TRY_AGAIN
            if retry is None or attempt > retry.count or not _passes(error, repeatable):
                raise
            if not await _wait(frame, f"{path}/try{attempt}", retry, error):
                raise
        attempt += 1


def _passes(error: HaloError, repeatable: bool) -> bool:
    return error.retryable if isinstance(error, ServiceError) else repeatable


async def _wait(frame: Frame, path: str, retry: Retry, error: HaloError) -> bool:
    """Wait before the next try. False where that would take too long, or the run's time would be over before."""
    run = frame.run

    async def decide() -> Json:
        asked = error.retry_after
        backoff = min(retry.backoff * 2 ** (error.attempt - 1), MAXIMUM_WAIT)
        wait = backoff * (1 - 0.25 * run.clock.random()) if asked is None else max(0.0, asked)
        return wait if wait <= MAXIMUM_WAIT and (frame.limit is None or wait < frame.limit.remaining()) else None

    # The decision rests on chance and on the clock, so it is an effect, as the waiting is.
    wait = await run.effects.perform(f"{path}/backoff", "random", error.attempt, decide)
    if wait is None:
        error.hint = error.hint or _too_long(error)
        return False
    if run.emitter.active:
        reason = run.redactor.text(error.message)
        run.emitter.emit(RetryScheduled(run.run_id, path, error.attempt + 1, wait, reason))
    await run.effects.perform(f"{path}/wait", "clock", wait, lambda: run.clock.sleep(wait))
    return True


def _too_long(error: HaloError) -> str:
    asked = error.retry_after
    if asked is None:
        return "there was no time left for another try: give the run more"
    return f"the service asks to wait {asked:g} s, which was not done: run again after that"
