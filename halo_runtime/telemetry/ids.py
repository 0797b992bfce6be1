"""Ids of spans: the root of a run's first part gets ids that follow from the run's id.

So a part that goes on in another process, days later, can link to it with nothing kept anywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256

from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import SpanContext, TraceFlags


def root_context(run_id: str) -> SpanContext:
    """The ids of the root span of a run's first part."""
    digest = sha256(f"halo run {run_id}".encode()).digest()
    trace_id, span_id = int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])
    return SpanContext(trace_id or 1, span_id or 1, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class RunIds(IdGenerator):
    """Random ids, but for a root span that is made inside of `root_of`. For a TracerProvider's `id_generator`."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self._next = threading.local()  # each run is observed from a thread of its own

    @contextmanager
    def root_of(self, run_id: str) -> Generator[None]:
        """Let the span that is made inside be the root of a run's first part."""
        self._next.context = root_context(run_id)
        try:
            yield
        finally:
            self._next.context = None

    def generate_span_id(self) -> int:
        context: SpanContext | None = getattr(self._next, "context", None)
        return self._random.generate_span_id() if context is None else context.span_id

    def generate_trace_id(self) -> int:
        context: SpanContext | None = getattr(self._next, "context", None)
        return self._random.generate_trace_id() if context is None else context.trace_id
