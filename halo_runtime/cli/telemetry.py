"""`--otel`: spans of a run go to a collector while the command works; the last of them when it has told its result."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from halo_lang.excerpt import visible
from halo_runtime.cli.output import paint, say
from halo_runtime.cli.usage import UsageError
from halo_runtime.extras import install_line

if TYPE_CHECKING:
    from halo_runtime.cli.settings import Settings
    from halo_runtime.runtime import Runtime
    from halo_runtime.telemetry.export import SpanExport


@contextmanager
def exporting(settings: Settings, runtime: Runtime) -> Generator[None]:
    """Export spans of what runs inside, where the settings say so. UsageError where the library is missing."""
    if not settings.otel:
        yield
        return
    export = _opened()
    runtime.subscribe(export.observer)
    try:
        yield
    finally:
        trouble = export.close()
        if trouble is not None and not (settings.quiet or settings.events):
            say(f"{paint('warning', 'warning', sys.stderr)}: --otel: {visible(runtime.redactor.text(trouble))}")


def _opened() -> SpanExport:
    try:
        from halo_runtime.telemetry.export import SpanExport  # takes its time to load, and may not be there
    except ImportError:
        raise UsageError("--otel: OpenTelemetry is not installed", hint=install_line("otel")) from None
    return SpanExport()
