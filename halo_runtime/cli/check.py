"""`halo check`: everything that is wrong with programs, without running them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TextIO, TypeAlias

import click

from halo_lang.diagnostics import Severity
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.findings import Report, count, document, text
from halo_runtime.cli.output import emit, json_text
from halo_runtime.cli.sources import STDIN, analyse, program_files, read_source
from halo_runtime.cli.usage import UsageError
from halo_runtime.extras import lacking

Form: TypeAlias = Callable[[Sequence[Report], TextIO | None], str]
"""How reports are written to a stream; each text ends with a line break or is empty."""


def _text(reports: Sequence[Report], stream: TextIO | None) -> str:
    return text(reports, stream) + "\n"


def _json(reports: Sequence[Report], stream: TextIO | None) -> str:
    return json_text(document(reports), stream) + "\n"


def _github(reports: Sequence[Report], _stream: TextIO | None) -> str:
    from halo_runtime.cli.github import workflow_commands  # few ask for it, and it takes its time to load

    return workflow_commands(reports)


def _sarif(reports: Sequence[Report], stream: TextIO | None) -> str:
    from halo_runtime.cli.sarif import log  # reads the texts of all codes, which nothing else of a check needs

    return json_text(log(reports), stream) + "\n"


FORMS: dict[str, Form] = {"text": _text, "json": _json, "github": _github, "sarif": _sarif}

_FORMS = "text (for people, the default), json, github (annotations) or sarif."


@click.command()
@click.argument("paths", metavar="FILE…|DIR|-", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice([*FORMS]), metavar="FORM", help=_FORMS)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--connect", is_flag=True, help="Ask the servers of MCP tools what methods they have, and check calls by it."
)
@click.option("--env-file", metavar="FILE", help="Variables (NAME=value lines) for --connect.")
@click.option("--watch", is_flag=True, help="Check again whenever something changes, until Ctrl-C.")
def check(
    paths: tuple[str, ...], form: str | None, as_json: bool, connect: bool, env_file: str | None, watch: bool
) -> int:
    """Check programs without running them.

    A directory stands for all .halo files below it, - for stdin. Exit code 2 when there are errors, 0 with warnings
    only.
    """
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} cannot go together")
    chosen = "json" if as_json else form or "text"
    if watch and connect:
        raise UsageError("--watch and --connect cannot go together: every change would start the servers again")
    if env_file is not None and not connect:
        raise UsageError("--env-file is for --connect; nothing else in a check reads variables")
    if watch:
        return _watch(paths, chosen)
    reports = _reports(_each_once(paths), connect, env_file)
    emit(sys.stdout, FORMS[chosen](reports, sys.stdout))
    failed = count(reports)[Severity.ERROR] or any(report.unreached for report in reports)
    return ExitCode.REFUSED if failed else ExitCode.COMPLETED


def _reports(paths: Sequence[str], connect: bool, env_file: str | None) -> list[Report]:
    if not connect:
        return [_report(path) for path in paths]
    from halo_runtime.cli.connecting import connected  # a check that asks nobody needs no runtime

    return connected([_report(path) for path in paths], env_file)


def _report(path: str) -> Report:
    source, undecodable = read_source(path)
    if undecodable is not None:
        return Report(source, (undecodable,))
    analysis = analyse(source)
    return Report(source, analysis.diagnostics, tuple(lacking(analysis.program)), analysis)


def _each_once(paths: Sequence[str]) -> list[str]:
    """The files that are meant; stdin first, where it is one of them."""
    return [*([STDIN] if STDIN in paths else []), *program_files(path for path in paths if path != STDIN)]


def _watch(paths: Sequence[str], form: str) -> int:
    from halo_runtime.cli.watching import watch  # the library that watches is not needed to look once

    if STDIN in paths:
        raise UsageError("- (stdin) cannot be watched")
    watch(paths, None if form == "text" else FORMS[form])
    return ExitCode.COMPLETED
