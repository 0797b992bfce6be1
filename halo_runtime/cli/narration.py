"""What the events of a run say to people: one line each, and figures that add up. Pure; progress.py shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from halo_lang.excerpt import visible
from halo_runtime.cli.output import money
from halo_runtime.engine.events import (
    ModelResponded,
    PolicyDecided,
    Printed,
    RetryScheduled,
    RunEvent,
    StageFinished,
    StageStarted,
    SystemEvent,
    ToolRequested,
    WarningRaised,
)
from halo_runtime.values import text_of

MAX_PAYLOAD = 200
"""Characters of an event's payload that are shown."""

ITEM = "item"
"""The stage kind of an arm's or item's call; there may be very many."""


@dataclass(slots=True)
class Tally:
    """Figures of a run so far. `running` maps structural paths to labels of stages that have not finished."""

    stages: int = 0
    items: int = 0
    calls: int = 0
    tokens: int = 0
    cost: Decimal | None = Decimal(0)
    running: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, event: RunEvent) -> None:
        """Take the event into account."""
        if isinstance(event, StageStarted):
            self.running[event.path] = event.stage
        elif isinstance(event, StageFinished):
            self.running.pop(event.path, None)
            if event.kind == ITEM:
                self.items += 1
            else:
                self.stages += 1
        elif isinstance(event, ModelResponded) and not _is_unasked(event):
            self._add_call(event)

    def figures(self) -> list[str]:
        """`40 items`, `2 calls`, `120 tokens`, `$0.0012`: those that are not nothing."""
        found = [_counted(self.items, "item"), _counted(self.calls, "call"), _counted(self.tokens, "token")]
        if self.cost is None:
            found.append("cost unknown")
        elif self.cost:
            found.append(money(self.cost))
        return [figure for figure in found if figure]

    def _add_call(self, event: ModelResponded) -> None:
        self.calls += 1
        self.tokens += event.tokens.get("total") or 0
        if event.cost is None and (event.error is None or event.tokens):
            self.cost = None
        elif self.cost is not None and event.cost is not None:
            self.cost += Decimal(event.cost)


def _is_unasked(event: ModelResponded) -> bool:
    """Whether a request was refused before any model was asked."""
    refused = event.error is not None and event.error.get("type") in ("PolicyViolation", "ReplayMiss")
    return refused and not event.tokens


def describe(event: RunEvent) -> str | None:
    """The line that tells people of the event; None for events that need none."""
    write = _LINES.get(type(event))
    return None if write is None else write(event)


def started(event: StageStarted) -> str | None:
    """`line 4: Bot.reply`; single items of a block are not told one by one."""
    return None if event.kind == ITEM else f"line {event.line}: {visible(event.stage)}"


def elapsed(seconds: float) -> str:
    """`0.4 s`, `75 s` as `1 m 15 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} m" if hours else f"{minutes} m {rest} s"


def _printed(event: Printed) -> str:
    text = visible(event.text, keep="\t\n")
    return text if event.level == "print" else f"{event.level}: {text}"


def _warning(event: WarningRaised) -> str:
    place = "" if event.line is None else f"line {event.line}: "
    return f"warning: {place}{visible(event.message)}"


def _retry(event: RetryScheduled) -> str:
    return f"retry {event.attempt} in {elapsed(event.wait_seconds)}: {visible(event.reason)}"


def _stage_finished(event: StageFinished) -> str | None:
    closed = event.kind == "gate" and event.outcome == "halted"
    return f"line {event.line}: the gate did not pass" if closed else None


def _tool(event: ToolRequested) -> str:
    return f"tool {visible(event.tool)}.{visible(event.method)}"


def _policy(event: PolicyDecided) -> str | None:
    if event.action == "allow":
        return None
    return f"policy {visible(event.policy)}: {visible(event.rule)} {event.action} at {event.point}"


def _system_event(event: SystemEvent) -> str:
    payload = visible(text_of(event.payload))
    return f"event {event.name}: {payload if len(payload) <= MAX_PAYLOAD else payload[:MAX_PAYLOAD] + '…'}"


def _counted(count: int, noun: str) -> str:
    return "" if not count else f"{count:,} {noun}{'' if count == 1 else 's'}"


_LINES: dict[type[RunEvent], Callable[[Any], str | None]] = {
    StageFinished: _stage_finished,
    Printed: _printed,
    WarningRaised: _warning,
    RetryScheduled: _retry,
    ToolRequested: _tool,
    PolicyDecided: _policy,
    SystemEvent: _system_event,
}
