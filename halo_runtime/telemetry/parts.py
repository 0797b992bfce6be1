"""The spans of one part of a run, from its events: parents by structural path, nothing of what is only told again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeAlias

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from halo_runtime.engine.events import (
    CANCELLED,
    AgentFinished,
    AgentStarted,
    InterruptAnswered,
    InterruptOpened,
    ModelDelta,
    ModelRequested,
    ModelResponded,
    PolicyDecided,
    RetryScheduled,
    RunEvent,
    RunFinished,
    StageFinished,
    StageStarted,
    ToolRequested,
    ToolResponded,
)
from halo_runtime.json_types import JsonObject
from halo_runtime.telemetry import attributes as said

_Key: TypeAlias = tuple[str, str]
"""What a span is of (stage, agent, model, tool) and its structural path."""


class PartSpans:
    """A part of a run between pauses: its `root` span and those inside it.

    `replays`: what comes first is only told again; spans that end before anything is really done are dropped. A span
    ends after all that are inside it, so one that is kept never lies in one that is dropped.
    """

    def __init__(self, tracer: Tracer, root: Span, *, replays: bool, content: bool) -> None:
        self._tracer = tracer
        self._root = root
        self._content = content
        self._live = not replays
        self._open: dict[_Key, Span] = {}
        self._asked_at: dict[str, float] = {}  # by path: requests whose reply has not begun, on time.monotonic's clock

    def take(self, event: RunEvent) -> None:
        """Take the next event of the part."""
        handle = _HANDLERS.get(type(event))
        if handle is not None:
            handle(self, event)

    def run_finished(self, event: RunFinished) -> None:
        """The last event."""
        self._live = True
        for key in reversed(list(self._open)):
            self._end(key, "cancelled", None)
        self._finish(self._root, event.status, event.error)

    # --- stages and agents --------------------------------------------------------------------------------------

    def stage_started(self, event: StageStarted) -> None:
        """A stage, arm or item begins."""
        self._start(("stage", event.path), event.stage, said.stage(event))

    def stage_finished(self, event: StageFinished) -> None:
        """It has ended."""
        self._live = self._live or event.outcome == "paused"  # a stage pauses where the run has come to
        self._end_inside(event.path)
        self._end(("stage", event.path), event.outcome, None)

    def agent_started(self, event: AgentStarted) -> None:
        """An agent's call begins."""
        self._start(("agent", event.path), f"invoke_agent {event.agent}", said.agent(event))

    def agent_finished(self, event: AgentFinished) -> None:
        """It has ended."""
        self._end_inside(event.path)
        self._end(("agent", event.path), event.outcome, event.error)

    # --- models and tools ---------------------------------------------------------------------------------------

    def model_requested(self, event: ModelRequested) -> None:
        """A request goes out."""
        attributes = {**said.request(event), **(said.request_content(event) if self._content else {})}
        name = f"chat {said.request_model(event.model)}"
        self._start(("model", event.path), name, attributes, SpanKind.CLIENT)
        self._asked_at[event.path] = time.monotonic()

    def model_delta(self, event: ModelDelta) -> None:
        """The reply begins."""
        asked_at = self._asked_at.pop(event.path, None)
        span = self._open.get(("model", event.path))
        if asked_at is not None and span is not None:
            span.set_attribute("gen_ai.response.time_to_first_chunk", time.monotonic() - asked_at)

    def model_responded(self, event: ModelResponded) -> None:
        """The reply is there, or the request failed."""
        self._asked_at.pop(event.path, None)
        attributes = {**said.response(event), **(said.response_content(event) if self._content else {})}
        self._answered(("model", event.path), attributes, event.error, reused=event.reused)

    def tool_requested(self, event: ToolRequested) -> None:
        """A tool is called."""
        attributes = {**said.tool(event), **(said.tool_content(event) if self._content else {})}
        self._start(("tool", event.path), f"execute_tool {event.tool}_{event.method}", attributes)

    def tool_responded(self, event: ToolResponded) -> None:
        """It has answered, or failed."""
        attributes: said.Attributes = said.result_content(event) if self._content else {}
        self._answered(("tool", event.path), attributes, event.error, reused=event.reused)

    def _answered(self, key: _Key, attributes: said.Attributes, error: JsonObject | None, *, reused: bool) -> None:
        if reused:
            self._open.pop(key, None)
            return
        self._live = True
        span = self._open.get(key)
        if span is not None:
            span.set_attributes(attributes)
        if error is not None and error["type"] == CANCELLED["type"]:
            self._end(key, "cancelled", None)
        else:
            self._end(key, "completed" if error is None else "failed", error)

    # --- events inside spans ------------------------------------------------------------------------------------

    def retry(self, event: RetryScheduled) -> None:
        """A call waits to be tried again."""
        self._around(event.path).add_event("halo.retry", said.retry(event))

    def policy(self, event: PolicyDecided) -> None:
        """A rule has decided."""
        if event.action != "allow":
            self._around(event.path).add_event("halo.policy", said.policy(event))

    def question(self, event: InterruptOpened) -> None:
        """A question is open."""
        self._root.add_event("halo.interrupt.opened", said.question(event, content=self._content))

    def answer(self, event: InterruptAnswered) -> None:
        """It has its answer."""
        self._root.add_event("halo.interrupt.answered", said.answer(event, content=self._content))

    # --- spans --------------------------------------------------------------------------------------------------

    def _start(self, key: _Key, name: str, attributes: said.Attributes, kind: SpanKind = SpanKind.INTERNAL) -> None:
        parent = trace.set_span_in_context(self._around(key[1]))
        self._open[key] = self._tracer.start_span(name, parent, kind=kind, attributes=attributes)

    def _end_inside(self, path: str) -> None:
        """End requests and calls that were cancelled where nothing told of their end."""
        inside = f"{path}/"
        for key in [key for key in self._open if key[0] in ("model", "tool") and key[1].startswith(inside)]:
            self._asked_at.pop(key[1], None)
            self._end(key, "cancelled", None)

    def _end(self, key: _Key, outcome: str, error: JsonObject | None) -> None:
        """End a span. One that is not ended is never exported: so it goes with what was only told again."""
        span = self._open.pop(key, None)
        if span is not None and self._live:
            self._finish(span, outcome, error)

    def _finish(self, span: Span, outcome: str, error: JsonObject | None) -> None:
        span.set_attribute("halo.outcome", outcome)
        if error is not None:
            span.set_attribute("error.type", error["type"])
        if outcome == "failed":
            text = None if error is None else said.error_text(error, content=self._content)
            span.set_status(Status(StatusCode.ERROR, text))
        span.end()

    def _around(self, path: str) -> Span:
        """The innermost span of a stage or an agent's call that a path lies in."""
        while path:
            for kind in ("agent", "stage"):
                found = self._open.get((kind, path))
                if found is not None:
                    return found
            path = path.rpartition("/")[0]
        return self._root


_HANDLERS: Final[dict[type[RunEvent], Callable[[PartSpans, RunEvent], None]]] = {
    RunFinished: PartSpans.run_finished,
    StageStarted: PartSpans.stage_started,
    StageFinished: PartSpans.stage_finished,
    AgentStarted: PartSpans.agent_started,
    AgentFinished: PartSpans.agent_finished,
    ModelRequested: PartSpans.model_requested,
    ModelDelta: PartSpans.model_delta,
    ModelResponded: PartSpans.model_responded,
    ToolRequested: PartSpans.tool_requested,
    ToolResponded: PartSpans.tool_responded,
    PolicyDecided: PartSpans.policy,
    RetryScheduled: PartSpans.retry,
    InterruptOpened: PartSpans.question,
    InterruptAnswered: PartSpans.answer,
}  # pyright: ignore[reportAssignmentType] - each takes the event of its key
