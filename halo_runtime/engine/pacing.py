"""Holding requests to `MaxLatency` and `RateLimit`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from halo_runtime.engine.clock import Clock
from halo_runtime.engine.directives import Directives
from halo_runtime.engine.guards import BoundRule
from halo_runtime.errors import PolicyViolation
from halo_runtime.models.base import Usage
from halo_runtime.policies.pace import MaxLatency, RateLimit

Result = TypeVar("Result")

_BEGUN: Final[dict[tuple[str, RateLimit], deque[float]]] = {}
"""When the latest calls began, for each policy's limit in this process."""


async def in_turn(rules: Sequence[BoundRule], clock: Clock) -> None:
    """Wait until every rate allows one request more, and count it."""
    for bound in rules:
        rule = bound.rule
        if not isinstance(rule, RateLimit):
            continue
        begun = _BEGUN.setdefault((bound.policy, rule), deque(maxlen=rule.count))
        while len(begun) == rule.count and (wait := begun[0] + rule.seconds - clock.monotonic()) > 0:
            await clock.sleep(wait)
        begun.append(clock.monotonic())


async def held_to(rules: Sequence[BoundRule], what: str, work: Awaitable[Result]) -> Result:
    """The result of `work` within the latency that policies allow. Raises PolicyViolation where it takes longer."""
    strictest = _strictest(rules)
    if strictest is None:
        return await work
    seconds, bound = strictest
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await work
    except TimeoutError:
        if not timer.expired():
            raise
        allowed = f"policy {bound.policy}, rule {bound.text} allows"
        late = PolicyViolation(f"{what} took longer than the {seconds:g} s that {allowed}")
        late.usage = Usage()  # the service may have been at work on it, as where a time limit ran out
        raise late from None


def with_latency(rules: Sequence[BoundRule], directives: Directives) -> Directives:
    """Directives whose `@timeout` is no longer than the latency that policies allow."""
    strictest = _strictest(rules)
    if strictest is None or (directives.timeout is not None and directives.timeout <= strictest[0]):
        return directives
    return replace(directives, timeout=strictest[0])


def _strictest(rules: Sequence[BoundRule]) -> tuple[float, BoundRule] | None:
    limits = [(bound.rule.seconds, bound) for bound in rules if isinstance(bound.rule, MaxLatency)]
    return min(limits, key=lambda pair: pair[0], default=None)
