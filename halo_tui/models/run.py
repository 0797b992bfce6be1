"""What is known of a run, folded from its events one after another (spec 2.8).

The fold never looks at a clock: the time at which an event arrived is handed in, in seconds from any fixed moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

from halo_lang.assist.positions import cells, last_cells
from halo_lang.excerpt import visible
from halo_runtime.engine.events import (
    InterruptAnswered,
    InterruptOpened,
    ModelRequested,
    ModelResponded,
    PolicyDecided,
    Printed,
    RetryScheduled,
    RunEvent,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
    ToolRequested,
    ToolResponded,
    WarningRaised,
)
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.results import RunResult, error_to_json
from halo_tui.models.calls import Calls
from halo_tui.models.lines import Line, Role, duration, money, one_line

Status: TypeAlias = Literal[
    "idle", "running", "waiting", "completed", "halted", "paused", "failed", "interrupted", "damaged", "replay"
]

STATES: Final[dict[str, tuple[str, Role]]] = {
    "idle": ("○", "dim"),
    "running": ("◐", "busy"),
    "waiting": ("?", "wait"),
    "completed": ("✓", "ok"),
    "halted": ("■", "warning"),
    "paused": ("⏸", "wait"),
    "failed": ("✗", "error"),
    "cancelled": ("⊘", "dim"),
    "interrupted": ("⊘", "warning"),
    "damaged": ("!", "error"),
    "replay": ("▷", "accent"),
}
"""Sign and role of every state of a stage or a run: they differ without colour too."""

MAX_PRINTED: Final = 1_000
"""Printed lines kept; older ones go."""


MIN_TAIL: Final = 8
"""Cells from which on a row shows the end of a text that streams."""


@dataclass(slots=True)
class StageRow:
    """One execution of a stage, arm or item. `started` and `ended` in seconds; a stored run does not tell them."""

    path: str
    kind: str
    label: str
    source_line: int
    started: float | None
    state: str = "running"
    ended: float | None = None
    note: str = ""
    reused: bool = False
    """Whether it was taken from the run that this one continues."""
    children: list[StageRow] = field(default_factory=list["StageRow"])

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.started is not None and self.ended is None

    def line(self, depth: int, now: float, tail: str = "", width: int = 0) -> Line:
        """One row of the list: sign, name, how long, what is noteworthy; then the end of what streams, if it fits."""
        line = self._line(depth, now)
        room = width - sum(cells(text) for text, _ in line) - 2
        if not tail or room < MIN_TAIL:
            return line
        return (*line, ("  ", "text"), (last_cells(visible(" ".join(tail.split()), keep=""), room), "dim"))

    def _line(self, depth: int, now: float) -> Line:
        glyph, role = STATES.get(self.state, STATES["running"])
        return (
            ("  " * depth, "text"),
            (f"{glyph} ", role),
            (one_line(self.label, 40), "dim" if self.state == "cancelled" else "text"),
            (self._taken(now), "dim"),
            ("  reused" if self.reused else "", "ok"),
            (f"  {one_line(self.note, 120)}" if self.note else "", "warning" if self.state != "failed" else "error"),
        )

    def _taken(self, now: float) -> str:
        if self.started is None:
            return ""
        return f"  {duration(max(0.0, (self.ended if self.ended is not None else now) - self.started))}"


@dataclass(slots=True)
class RunView:
    """The state of one run for the screen. `error` is in the shape of spec 8.1."""

    status: Status = "idle"
    run_id: str = ""
    pipeline: str = ""
    on: str = ""
    """What answers the agents, for people: a replies file, a model, the agents' own."""
    path: str = ""
    """The structural path of the run's own pipeline: the stages whose results are the run's stand directly under it."""
    input: JsonObject = field(default_factory=dict[str, Json])
    current: Json = None
    data: JsonObject = field(default_factory=dict[str, Json])
    meta: JsonObject = field(default_factory=dict[str, Json])
    output: Json = None
    error: JsonObject | None = None
    started: float = 0.0
    ended: float | None = None
    tokens: int = 0
    cost: Decimal = Decimal(0)
    printed: deque[str] = field(default_factory=lambda: deque[str](maxlen=MAX_PRINTED))
    warnings: list[str] = field(default_factory=list[str])
    printed_count: int = 0
    """Lines printed, those included that are kept no more."""
    calls: Calls = field(default_factory=Calls)
    """Its agent calls, with the text that streams."""
    open_questions: set[str] = field(default_factory=set[str])
    reused: frozenset[str] = frozenset()
    """Paths of stages that are taken from the run that this one continues."""
    roots: list[StageRow] = field(default_factory=list[StageRow])
    _rows: dict[str, StageRow] = field(default_factory=dict[str, StageRow])
    _namespaces: set[str] = field(default_factory=set[str])

    @property
    def active(self) -> bool:
        """Whether work is going on or an answer is awaited by it."""
        return self.status in ("running", "waiting")

    @property
    def running_lines(self) -> frozenset[int]:
        """Source lines of the stages that run now."""
        return frozenset(row.source_line for row in self._rows.values() if row.active)

    def rows(self) -> Iterator[tuple[int, StageRow]]:
        """All executions with their depth, each below the one it belongs to."""
        stack = [(0, row) for row in reversed(self.roots)]
        while stack:
            depth, row = stack.pop()
            yield depth, row
            stack.extend((depth + 1, child) for child in reversed(row.children))

    def elapsed(self, now: float) -> float:
        """Seconds since the run began, up to its end."""
        return (self.ended if self.ended is not None else now) - self.started if self.started else 0.0

    def apply(self, event: RunEvent, at: float) -> None:
        """Take one event in. Kinds that the screen shows nothing of are passed over."""
        self.calls.take(event)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event, at)

    def conclude(self, result: RunResult, at: float) -> None:
        """Take the result in, which says more than the events and has the last word."""
        context = result.context
        self.status, self.run_id = result.status, result.run_id
        self.output, self.current = result.output, context.current
        self.input, self.data, self.meta = context.input, context.data, context.meta
        self.error = None if result.error is None else error_to_json(result.error)
        self.open_questions = {interrupt.id for interrupt in result.interrupts}
        # Events tell of calls again that an earlier run or process has paid for; the result does not.
        self.tokens, self.cost = figures(context.meta)
        self._end(at)

    def fail(self, error: JsonObject, at: float) -> None:
        """The run could not start, or the engine itself broke."""
        self.status, self.error = "failed", error
        self._end(at)

    def stop(self, at: float) -> None:
        """The run was stopped by hand."""
        self.status = "interrupted"
        self._end(at)

    def summary(self, now: float) -> Line:
        """The run in a few words for the status line."""
        if self.status == "idle":
            return ()
        glyph, role = STATES[self.status]
        shown = [duration(self.elapsed(now))] if self.started else []
        shown += [f"{self.tokens:,} tokens"] if self.tokens else []
        shown += [money(self.cost)] if self.cost else []
        return ((f"{glyph} {self.status}", role), (f"  {' · '.join(shown)} ", "text"))

    def _end(self, at: float) -> None:
        self.ended = at if self.ended is None else self.ended
        self.calls.stop()
        for row in self._rows.values():
            if row.active:
                row.state, row.ended = "paused" if self.status == "paused" else "cancelled", at

    def _begin(self, event: RunStarted, at: float) -> None:
        # A run that goes on after an answer replays from its start, so its rows are made anew.
        self.__init__(
            status="running",
            run_id=event.run_id,
            pipeline=event.pipeline,
            on=self.on,
            reused=self.reused,
            path=event.path,
            input=event.input,
            started=self.started or at,
        )

    def _finish(self, event: RunFinished, at: float) -> None:
        self.status = event.status  # pyright: ignore[reportAttributeAccessIssue] - one of the run's statuses, as text
        self.output, self.error, self.ended = event.output, event.error, at

    def _stage_started(self, event: StageStarted, at: float) -> None:
        reused = event.path.partition("#")[0] in self.reused
        row = StageRow(event.path, event.kind, event.stage, event.line, at, reused=reused)
        parent = self._parent(event.path)
        (self.roots if parent is None else parent.children).append(row)
        self._rows[event.path] = row

    def _stage_finished(self, event: StageFinished, at: float) -> None:
        row = self._rows.get(event.path)
        if row is not None:
            row.state, row.ended = event.outcome, at
        if event.path.rpartition("/")[0] == self.path:
            self._keep(event.stored)
            if event.outcome == "completed":
                self.current = event.value

    def _keep(self, stored: JsonObject) -> None:
        """Put results under their names, as the engine has them: a namespace takes the place of a result alike."""
        for name, value in stored.items():
            namespace, _, within = name.rpartition(".")
            if not namespace:
                self.data[name] = value
                continue
            if namespace not in self._namespaces:
                self._namespaces.add(namespace)
                self.data[namespace] = {}
            self.data[namespace][within] = value

    def _requested(self, event: ModelRequested, _at: float) -> None:
        self._annotate(event.path, f"try {event.attempt}" if event.attempt > 1 else "")

    def _responded(self, event: ModelResponded, _at: float) -> None:
        self.tokens += sum(event.tokens.get(side) or 0 for side in ("input", "output"))
        self.cost += Decimal(event.cost) if event.cost is not None else 0
        if event.error is not None:
            self._annotate(event.path, str(event.error.get("message", "failed")))

    def _tool_requested(self, event: ToolRequested, _at: float) -> None:
        self._annotate(event.path, f"→ {event.tool}.{event.method}")

    def _tool_responded(self, event: ToolResponded, _at: float) -> None:
        failed = event.error is not None and f"{event.tool}.{event.method}: {event.error.get('message', 'failed')}"
        self._annotate(event.path, failed or "")

    def _decided(self, event: PolicyDecided, _at: float) -> None:
        if event.action != "allow":
            self._annotate(event.path, f"{event.policy}: {event.action}")

    def _retry(self, event: RetryScheduled, _at: float) -> None:
        self._annotate(event.path, f"{event.reason}; again in {duration(event.wait_seconds)}")

    def _asked(self, event: InterruptOpened, _at: float) -> None:
        self.open_questions.add(str(event.interrupt["id"]))
        self.status = "waiting"
        self._mark(event.path, "waiting")

    def _answered(self, event: InterruptAnswered, _at: float) -> None:
        self.open_questions.discard(event.interrupt_id)
        self._mark(event.path, "running")
        if not self.open_questions and self.status == "waiting":
            self.status = "running"

    def _warned(self, event: WarningRaised, _at: float) -> None:
        place = f"line {event.line}: " if event.line is not None else ""
        self.warnings.append(f"{place}{event.message}")

    def _printed(self, event: Printed, _at: float) -> None:
        self.printed.append(event.text)
        self.printed_count += 1

    def _annotate(self, path: str, note: str) -> None:
        row = self._rows.get(path) or self._parent(path)
        if row is not None:
            row.note = note

    def _mark(self, path: str, state: str) -> None:
        row = self._rows.get(path) or self._parent(path)
        if row is not None and row.active:
            row.state = state

    def _parent(self, path: str) -> StageRow | None:
        """The stage that encloses a path: effects and items stand below the stage they belong to."""
        while "/" in path:
            path = path.rpartition("/")[0]
            if path in self._rows:
                return self._rows[path]
        return None


def figures(meta: JsonObject) -> tuple[int, Decimal]:
    """Tokens and US dollars of a run's `context.meta`; an unknown cost counts as nothing."""
    tokens, cost = meta.get("tokens", {}), meta.get("cost", 0)
    return tokens.get("total", 0), Decimal(str(cost or 0))


_Handler: TypeAlias = Callable[[RunView, Any, float], None]
_HANDLERS: Final[dict[type[RunEvent], _Handler]] = {
    RunStarted: RunView._begin,  # pyright: ignore[reportPrivateUsage] - the table is part of the class
    RunFinished: RunView._finish,  # pyright: ignore[reportPrivateUsage]
    StageStarted: RunView._stage_started,  # pyright: ignore[reportPrivateUsage]
    StageFinished: RunView._stage_finished,  # pyright: ignore[reportPrivateUsage]
    ModelRequested: RunView._requested,  # pyright: ignore[reportPrivateUsage]
    ModelResponded: RunView._responded,  # pyright: ignore[reportPrivateUsage]
    ToolRequested: RunView._tool_requested,  # pyright: ignore[reportPrivateUsage]
    ToolResponded: RunView._tool_responded,  # pyright: ignore[reportPrivateUsage]
    PolicyDecided: RunView._decided,  # pyright: ignore[reportPrivateUsage]
    RetryScheduled: RunView._retry,  # pyright: ignore[reportPrivateUsage]
    InterruptOpened: RunView._asked,  # pyright: ignore[reportPrivateUsage]
    InterruptAnswered: RunView._answered,  # pyright: ignore[reportPrivateUsage]
    WarningRaised: RunView._warned,  # pyright: ignore[reportPrivateUsage]
    Printed: RunView._printed,  # pyright: ignore[reportPrivateUsage]
}
