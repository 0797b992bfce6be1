"""What is said when a run has ended, or has not started: output, error blocks, open questions, exit codes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from halo_lang.source import Source
from halo_runtime.cli.asking import open_question
from halo_runtime.cli.exit_codes import ExitCode, of_status
from halo_runtime.cli.findings import Report, document, text
from halo_runtime.cli.output import error_block, say, tell_json, tell_output
from halo_runtime.cli.progress import Progress
from halo_runtime.errors import HaloError, ProgramError
from halo_runtime.results import RunResult, error_to_json

if TYPE_CHECKING:
    from halo_runtime.cli.run import RunOptions


NO_JOURNAL = "this version keeps no journal on disk"


def report_errors(error: ProgramError, *, as_json: bool) -> int:
    """A program with errors: as `halo check` says it."""
    reports = [Report(error.source, error.diagnostics)]
    if as_json:
        tell_json(document(reports))
    else:
        say(text(reports, sys.stderr))
    return ExitCode.REFUSED


def report_refusal(error: HaloError, source: Source, *, as_json: bool) -> int:
    """What never started, and why."""
    if as_json:
        tell_json({"error": error_to_json(error)})
    else:
        say(error_block(error, source))
    return ExitCode.REFUSED


def report_stopped(progress: Progress, *, as_json: bool) -> int:
    """A run that was stopped from outside before it had a result."""
    if as_json:
        tell_json({"error": {"type": "Interrupted", "message": "stopped from outside"}})
    say(progress.summary("interrupted"))
    return ExitCode.INTERRUPTED


def report(result: RunResult, source: Source, progress: Progress, unused: list[str], options: RunOptions) -> int:
    """A run's result: the output alone on stdout, what else there is to say on stderr."""
    if options.as_json:
        tell_json(result.to_json())
    elif result.status in ("completed", "halted"):
        tell_output(result.output)
    if not options.events:
        for block in _blocks(result, source, progress, unused, quiet=options.quiet):
            say(block)
    return of_status(result.status)


def _blocks(result: RunResult, source: Source, progress: Progress, unused: list[str], *, quiet: bool) -> list[str]:
    blocks: list[str] = []
    if result.error is not None:
        blocks.append(error_block(result.error, source))
    if result.status == "paused":
        blocks.append(_open_questions(result))
    if result.status == "interrupted":
        blocks.append(f"note: {NO_JOURNAL}: the run cannot be continued, --json shows what it had done")
    blocks += [f"note: nothing asked for the answer {name}" for name in unused if not quiet]
    if not quiet:
        blocks.append(progress.summary(result.status))
    return blocks


def _open_questions(result: RunResult) -> str:
    lines = ["paused at:", *(open_question(interrupt) for interrupt in result.interrupts)]
    lines.append(f"  {NO_JOURNAL}: run again with the answers, or on a terminal to be asked")
    return "\n".join(lines)
