"""What a check found, as text for people and as the JSON of spec 8.1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from halo_lang.diagnostics import Diagnostic, Severity, render, to_json
from halo_lang.excerpt import visible
from halo_lang.records import record
from halo_lang.source import Source
from halo_runtime.cli.output import paint, plural
from halo_runtime.extras import Lacking, install_line
from halo_runtime.json_types import JsonObject

if TYPE_CHECKING:
    from halo_lang import Analysis
    from halo_runtime.probing import Probe

MAX_BLOCKS = 100
"""Findings of one file that are shown to people."""


@record
class Report:
    """The findings of one file, and the extras that it needs here before it can run.

    `unreached` are the tools whose servers could not be asked for their methods; None where none was asked.
    """

    source: Source
    diagnostics: tuple[Diagnostic, ...]
    lacking: tuple[Lacking, ...] = ()
    analysis: Analysis | None = None
    unreached: tuple[Probe, ...] | None = None


def count(reports: Sequence[Report]) -> Counter[Severity]:
    """How many findings there are of each severity."""
    return Counter(diagnostic.severity for report in reports for diagnostic in report.diagnostics)


def document(reports: Sequence[Report]) -> JsonObject:
    """The stable shape of `halo check --json` (spec 8.1); also what `run --json` says of a program with errors."""
    counts = count(reports)
    return {
        "files": [
            {
                "path": report.source.path,
                "diagnostics": [to_json(d, report.source) for d in report.diagnostics],
                "lacking": [_lacking_json(lacking) for lacking in report.lacking],
                **({} if report.unreached is None else {"unreached": [probe.to_json() for probe in report.unreached]}),
            }
            for report in reports
        ],
        "errors": counts[Severity.ERROR],
        "warnings": counts[Severity.WARNING],
    }


def text(reports: Sequence[Report], stream: TextIO | None, among: Sequence[Report] | None = None) -> str:
    """For people at `stream`: one block a finding, one line a clean file, and a closing line with the counts.

    The counts are those of all reports `among` which these stand, where they are some of many.
    """
    blocks = [block for report in reports for block in _blocks(report, stream)]
    clean = [f"{visible(report.source.path)}: no problems" for report in reports if not report.diagnostics]
    notes = [_note(report, lacking, stream) for report in reports for lacking in report.lacking]
    notes += [_unreached(report, probe, stream) for report in reports for probe in report.unreached or ()]
    closing = summary(reports if among is None else among)
    return "\n\n".join([*blocks, *(["\n".join(lines)] if (lines := [*clean, *notes]) else []), closing])


def summary(reports: Sequence[Report]) -> str:
    """`3 files: 2 errors, 1 warning`, or that there is nothing to say."""
    counts = count(reports)
    found = [plural(counts[severity], severity.value) for severity in Severity if counts[severity]]
    return f"{plural(len(reports), 'file')}: {', '.join(found) or 'no problems'}"


def _note(report: Report, lacking: Lacking, stream: TextIO | None) -> str:
    needed_by = ", ".join(visible(declaration) for declaration in lacking.needed_by)
    verb = "needs" if len(lacking.needed_by) == 1 else "need"
    told = f"{needed_by} {verb} the extra `{lacking.extra}`, which is not installed: {install_line(lacking.extra)}"
    return f"{paint('info', 'note', stream)}: {visible(report.source.path)}: {told}"


def _unreached(report: Report, probe: Probe, stream: TextIO | None) -> str:
    told = f"{visible(probe.part)}: {visible(probe.problem or '')}"
    return f"{paint('error', 'not checked', stream)}: {visible(report.source.path)}: {told}"


def _lacking_json(lacking: Lacking) -> JsonObject:
    return {"extra": lacking.extra, "install": install_line(lacking.extra), "neededBy": [*lacking.needed_by]}


def _blocks(report: Report, stream: TextIO | None) -> list[str]:
    def painted(severity: str, label: str) -> str:
        return paint(severity, label, stream)

    blocks = [render(diagnostic, report.source, painted) for diagnostic in report.diagnostics[:MAX_BLOCKS]]
    more = len(report.diagnostics) - MAX_BLOCKS
    return [*blocks, f"{visible(report.source.path)}: {more} more (--json lists all)"] if more > 0 else blocks
