"""`MaxLatency(duration)` and `RateLimit(n, per)`: how long a call may take, and how many may be made (spec 6).

They look at no text; the engine holds each request to a model by them (see engine/pacing.py).
"""

from __future__ import annotations

from typing import Final

from halo_lang.catalog.signature import duration_seconds
from halo_lang.records import record
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule

_NOWHERE: Final[frozenset[Point]] = frozenset()


@record
class MaxLatency:
    """A request to a model, and a tool that it chose, may take this many seconds; then it is cancelled."""

    seconds: float
    points: frozenset[Point] = _NOWHERE

    def evaluate(self, examined: Examined) -> Decision:
        """Texts pass."""
        return ALLOW


@record
class RateLimit:
    """At most `count` requests in any `seconds`, over all runs of the process; what is too early waits."""

    count: int
    seconds: float
    points: frozenset[Point] = _NOWHERE

    def evaluate(self, examined: Examined) -> Decision:
        """Texts pass."""
        return ALLOW


def max_latency(args: JsonObject) -> PolicyRule:
    """`MaxLatency(30s)`."""
    return MaxLatency(_seconds("MaxLatency", args["duration"]))


def rate_limit(args: JsonObject) -> PolicyRule:
    """`RateLimit(10, 1m)`."""
    return RateLimit(args["n"], _seconds("RateLimit", args.get("per", "1m")))


def _seconds(rule: str, duration: str) -> float:
    seconds = duration_seconds(duration)
    if not seconds or seconds < 0:
        raise ConfigError(f"{rule}: {duration} is no duration over 0; write 500ms, 30s or 5m")
    return seconds
