"""Findings as workflow commands: GitHub's runner turns each into an annotation beside the line it is about."""

from __future__ import annotations

from collections.abc import Sequence

from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.source import Source
from halo_runtime.cli.findings import Report
from halo_runtime.cli.places import repository_path
from halo_runtime.cli.sources import STDIN

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({**{chr(key): value for key, value in _TEXT.items()}, ":": "%3A", ",": "%2C"})


def workflow_commands(reports: Sequence[Report]) -> str:
    """One line a finding; nothing where there is none."""
    return "".join(_command(found, report.source) + "\n" for report in reports for found in report.diagnostics)


def _command(found: Diagnostic, source: Source) -> str:
    properties = {**_place(found, source), "title": found.code}
    written = ",".join(f"{name}={str(value).translate(_PROPERTY)}" for name, value in properties.items())
    message = f"{found.message}\nhint: {found.hint}" if found.hint else found.message
    return f"::{_COMMANDS[found.severity]} {written}::{message.translate(_TEXT)}"


def _place(found: Diagnostic, source: Source) -> dict[str, object]:
    start, end = source.position(found.span.start), source.position(found.span.end)
    file: dict[str, object] = {} if source.path == STDIN else {"file": repository_path(source.path)}
    place = {**file, "line": start.line, "col": start.column, "endLine": end.line}
    # GitHub refuses columns of an annotation that goes over several lines.
    return {**place, "endColumn": end.column} if end.line == start.line else place
