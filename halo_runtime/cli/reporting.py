"""What is said when a run has ended, or has not started: output, error blocks, open questions, exit codes."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from halo_lang.excerpt import visible
from halo_lang.source import Source
from halo_runtime.cli.exit_codes import ExitCode, of_refusal, of_status
from halo_runtime.cli.findings import Report, document, text
from halo_runtime.cli.output import error_block, money, plural, say, tell_json, tell_output
from halo_runtime.cli.progress import Progress
from halo_runtime.cli.questions import open_question
from halo_runtime.errors import HaloError, ProgramError
from halo_runtime.preflight import Preflight, StageVerdict
from halo_runtime.results import RunResult, error_to_json

if TYPE_CHECKING:
    from halo_runtime.cli.settings import Settings


def report_errors(error: ProgramError, *, as_json: bool) -> int:
    """A program with errors: as `halo check` says it."""
    reports = [Report(error.source, error.diagnostics)]
    if as_json:
        tell_json(document(reports))
    else:
        say(text(reports, sys.stderr))
    return ExitCode.REFUSED


def report_refusal(error: HaloError, source: Source | None, *, as_json: bool) -> int:
    """What was not done, and why."""
    if as_json:
        tell_json({"error": error_to_json(error)})
    else:
        say(error_block(error, source))
    return of_refusal(error)


def report_stopped(progress: Progress, *, as_json: bool) -> int:
    """A run that was stopped from outside before it had a result."""
    if as_json:
        tell_json({"error": {"type": "Interrupted", "message": "stopped from outside"}})
    say(progress.summary("interrupted"))
    return ExitCode.INTERRUPTED


def report(result: RunResult, source: Source | None, progress: Progress, unused: list[str], settings: Settings) -> int:
    """A run's result: the output alone on stdout, what else there is to say on stderr."""
    if settings.as_json:
        tell_json(result.to_json())
    elif result.status in ("completed", "halted"):
        tell_output(result.output)
    if not settings.events:
        for block in _blocks(result, source, progress, unused, quiet=settings.quiet):
            say(block)
    return of_status(result.status)


def continuation(reference: str, plan: Preflight) -> str:
    """What is reused of a run that is continued, and where it begins to run anew."""
    reused = sum(stage.verdict == "reused" for stage in plan.stages)
    saved = f", {money(plan.saved)} saved" if plan.saved else ""
    first = next((stage for stage in plan.stages if stage.verdict != "reused"), None)
    begins = "" if first is None else f"; from {_stage(first)} on it runs anew: {visible(first.reason)}"
    return f"continuing {visible(reference)}: {reused} of {len(plan.stages)} stages reused{saved}{begins}"


def plan_table(plan: Preflight) -> str:
    """The preflight for people: a line a stage, and what it comes to."""
    rows = [(f"{stage.verdict}", _stage(stage), money(stage.cost), stage.reason) for stage in plan.stages]
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else [0, 0, 0]
    lines = [
        f"{verdict:<{widths[0]}}  {stage:<{widths[1]}}  {cost:>{widths[2]}}  {visible(reason)}".rstrip()
        for verdict, stage, cost, reason in rows
    ]
    return "\n".join([*lines, f"saved {money(plan.saved)}, paid again {money(plan.again)}"])


def _stage(stage: StageVerdict) -> str:
    place = "" if stage.line is None else f"line {stage.line} "
    return f"{place}`{visible(stage.stage)}`"


def _blocks(
    result: RunResult, source: Source | None, progress: Progress, unused: list[str], *, quiet: bool
) -> list[str]:
    blocks: list[str] = []
    if result.error is not None:
        blocks.append(error_block(result.error, source))
    if result.status == "paused":
        blocks.append(_open_questions(result))
    if result.status == "interrupted" and result.error is None:
        blocks.append(f"note: the run can go on: halo resume {result.run_id}")
    blocks += [f"note: nothing asked for the answer {name}" for name in unused if not quiet]
    if not quiet:
        blocks.append(progress.summary(result.status, _own_figures(result)))
    return blocks


def _own_figures(result: RunResult) -> list[str] | None:
    """What a run that reuses calls of another has cost itself; None for one that does not."""
    meta = result.context.meta
    reused = sum(call.get("reused", False) for call in meta["calls"])
    if not reused:
        return None
    figures = [plural(len(meta["calls"]) - reused, "call"), f"{reused} reused"]
    return [*figures, plural(meta["tokens"]["total"], "token"), money(meta["cost"])]


def _open_questions(result: RunResult) -> str:
    lines = ["paused at:"]
    for interrupt in result.interrupts:
        lines.append(open_question(interrupt))
        if result.error is None:  # with one the run could not be kept, so nothing can answer it
            which = ["--interrupt", interrupt.id] if len(result.interrupts) > 1 else []
            lines.append(f"    {shlex.join(['halo', 'resume', result.run_id, *which, '--answer'])} VALUE")
    return "\n".join(lines)
