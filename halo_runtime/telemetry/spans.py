"""An observer that makes spans of a run's events: run, stages, agent calls, requests to models, tool calls.

Parent and child follow the structural paths of the events. A run that goes on walks through what its journal has: spans
of that are dropped, so that no request is in two traces; they begin with the first thing that is really done. Each part
of a run (between its pauses) is a trace of its own, linked to the first one.

Times are those at which the observer hears of things, which is at once unless it is kept waiting.
"""

from __future__ import annotations

import os
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanContext, TracerProvider

from halo_runtime.engine.events import RunEvent, RunFinished, RunStarted
from halo_runtime.telemetry import attributes as said
from halo_runtime.telemetry.ids import RunIds, root_context
from halo_runtime.telemetry.parts import PartSpans
from halo_runtime.version import __version__

RUNS_REMEMBERED: Final = 1000
"""Runs whose first part can be linked to, where the provider's ids are random."""


class SpanObserver:
    """An Observer for `Runtime.subscribe` that makes spans with a tracer provider, the global one by default.

    `content` puts messages, replies, arguments and results into them; by default that is asked of
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT. Secrets are taken out of all events before.
    """

    def __init__(self, provider: TracerProvider | None = None, *, content: bool | None = None) -> None:
        provider = provider or trace.get_tracer_provider()
        ids: object = getattr(provider, "id_generator", None)
        self._ids = ids if isinstance(ids, RunIds) else None
        self._tracer = provider.get_tracer("halo", __version__, schema_url=said.SCHEMA_URL)
        self._content = said.wants_content(os.environ) if content is None else content
        self._parts: dict[str, PartSpans] = {}
        self._firsts: dict[str, SpanContext] = {}

    def __call__(self, event: RunEvent) -> None:
        """Take the next event of any run."""
        if isinstance(event, RunStarted):
            root = self._root(event)
            self._parts[event.run_id] = PartSpans(
                self._tracer, root, replays=event.continued or event.forked, content=self._content
            )
        part = self._parts.get(event.run_id)
        if part is None:
            return
        part.take(event)
        if isinstance(event, RunFinished):
            del self._parts[event.run_id]

    def _root(self, event: RunStarted) -> Span:
        """The span of the run, or of the part of it that begins."""
        name, attributes = f"invoke_workflow {event.pipeline}", said.run(event)
        if event.continued:
            first = self._first(event.run_id)
            links = [] if first is None else [Link(first)]
            return self._tracer.start_span(name, links=links, attributes=attributes)
        if self._ids is not None:
            with self._ids.root_of(event.run_id):
                return self._tracer.start_span(name, attributes=attributes)
        root = self._tracer.start_span(name, attributes=attributes)
        while len(self._firsts) >= RUNS_REMEMBERED:
            del self._firsts[next(iter(self._firsts))]
        self._firsts[event.run_id] = root.get_span_context()
        return root

    def _first(self, run_id: str) -> SpanContext | None:
        return self._firsts.get(run_id) if self._ids is None else root_context(run_id)
