"""Spans on their way to a collector, as the OTEL_* variables say: OTLP over HTTP, in the background, within bounds.

A collector that cannot be reached changes nothing about a run but one line at its end.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter, SpanExportResult

from halo_runtime.errors import ConfigError
from halo_runtime.telemetry.ids import RunIds
from halo_runtime.telemetry.spans import SpanObserver
from halo_runtime.version import __version__

FLUSH_SECONDS: Final = 5.0
"""How long the end of a command waits for a collector that answers slowly, at most."""

GIVE_UP_SECONDS: Final = 1.0
"""The same for one that has already failed to answer: the exporter would go on trying for longer."""

DEFAULT_ENDPOINT: Final = "http://localhost:4318"


class SpanExport:
    """A provider, the observer that makes spans with it, and its end."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        """ConfigError for an exporter or a protocol that is not there."""
        self._trouble = _Trouble()
        self._counted = _Counted(_exporter(env))
        self._where = _endpoint(env)
        given = {} if env.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "halo"}
        self._provider = TracerProvider(
            resource=Resource.create({"service.version": __version__, **given}),
            id_generator=RunIds(),
            shutdown_on_exit=False,  # it would wait for the collector beyond all bounds
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._counted))
        self.observer = SpanObserver(self._provider)

    def close(self) -> str | None:
        """Send what is left, within bounds. What there is to say where not all was sent, else None. Blocking."""
        ending = threading.Thread(target=self._provider.shutdown, name="halo-telemetry", daemon=True)
        ending.start()
        ending.join(GIVE_UP_SECONDS)
        if ending.is_alive() and not self._trouble.seen:
            ending.join(FLUSH_SECONDS - GIVE_UP_SECONDS)
        self._trouble.detach()
        if not ending.is_alive() and not self._counted.failed:
            return None
        return f"not all spans could be sent to {self._where}; is a collector running there? The run is not affected"


def _exporter(env: Mapping[str, str]) -> SpanExporter:
    wanted = env.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if wanted == "none":
        return _Nowhere()
    if wanted == "console":
        import sys

        return ConsoleSpanExporter(out=sys.stderr)
    if wanted != "otlp":
        raise ConfigError(f"OTEL_TRACES_EXPORTER={wanted}: there is otlp, console and none")
    protocol = env.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or env.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol not in (None, "", "http/protobuf"):
        raise ConfigError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: spans are sent as http/protobuf; unset it, or set it to that"
        )
    return OTLPSpanExporter()


def _endpoint(env: Mapping[str, str]) -> str:
    """Where spans go, for people: without a password that stands in the address."""
    variables = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    given = next((env[name] for name in variables if env.get(name)), DEFAULT_ENDPOINT)
    parts = urlsplit(given)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


class _Counted(SpanExporter):
    """An exporter whose failures are counted, and never raise."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self.failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._inner.export(spans)
        except Exception:  # whatever fails on the way to a collector is no matter of the run
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


class _Nowhere(SpanExporter):
    """For OTEL_TRACES_EXPORTER=none."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class _Trouble(logging.Handler):
    """Keeps what the library logs from the terminal, and notes whether it did."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen = False
        self._logger = logging.getLogger("opentelemetry")
        self._logger.addHandler(self)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.seen = True

    def detach(self) -> None:
        """Stop to listen; what comes later is still kept from the terminal."""
        self._logger.removeHandler(self)
        self._logger.addHandler(logging.NullHandler())
