"""`halo check`: everything that is wrong with programs, without running them."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TextIO

import click

from halo_lang.diagnostics import Diagnostic, Severity, render, to_json
from halo_lang.excerpt import visible
from halo_lang.records import record
from halo_lang.source import Source
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import paint, plural, tell, tell_json
from halo_runtime.cli.sources import diagnose, program_files
from halo_runtime.json_types import JsonObject

MAX_BLOCKS = 100
"""Findings of one file that are shown to people."""


@record
class Report:
    """The findings of one file."""

    source: Source
    diagnostics: tuple[Diagnostic, ...]


@click.command()
@click.argument("paths", metavar="FILE…|DIR", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of text.")
def check(paths: tuple[str, ...], as_json: bool) -> int:
    """Check programs without running them.

    A directory stands for all .halo files below it. Exit code 2 when there are errors, 0 with warnings only.
    """
    reports = [Report(*diagnose(path)) for path in program_files(paths)]
    if as_json:
        tell_json(document(reports))
    else:
        tell(text(reports, sys.stdout))
    return ExitCode.REFUSED if _count(reports)[Severity.ERROR] else ExitCode.COMPLETED


def document(reports: list[Report]) -> JsonObject:
    """The stable shape of `halo check --json` (spec 8.1); also what `run --json` says of a program with errors."""
    counts = _count(reports)
    return {
        "files": [
            {"path": report.source.path, "diagnostics": [to_json(d, report.source) for d in report.diagnostics]}
            for report in reports
        ],
        "errors": counts[Severity.ERROR],
        "warnings": counts[Severity.WARNING],
    }


def text(reports: list[Report], stream: TextIO | None) -> str:
    """For people at `stream`: one block a finding, one line a clean file, and a closing line with the counts."""
    blocks = [block for report in reports for block in _blocks(report, stream)]
    clean = [f"{visible(report.source.path)}: no problems" for report in reports if not report.diagnostics]
    return "\n\n".join([*blocks, *(["\n".join(clean)] if clean else []), summary(reports)])


def summary(reports: list[Report]) -> str:
    """`3 files: 2 errors, 1 warning`, or that there is nothing to say."""
    counts = _count(reports)
    found = [plural(counts[severity], severity.value) for severity in Severity if counts[severity]]
    return f"{plural(len(reports), 'file')}: {', '.join(found) or 'no problems'}"


def _blocks(report: Report, stream: TextIO | None) -> list[str]:
    def painted(severity: str, label: str) -> str:
        return paint(severity, label, stream)

    blocks = [render(diagnostic, report.source, painted) for diagnostic in report.diagnostics[:MAX_BLOCKS]]
    more = len(report.diagnostics) - MAX_BLOCKS
    return [*blocks, f"{visible(report.source.path)}: {more} more (--json lists all)"] if more > 0 else blocks


def _count(reports: list[Report]) -> Counter[Severity]:
    return Counter(diagnostic.severity for report in reports for diagnostic in report.diagnostics)
