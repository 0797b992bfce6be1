"""What `halo crashtest` does: read its arguments, show each boundary as it is tried, sum up."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from halo_lang import Analysis
from halo_lang.excerpt import visible
from halo_lang.nodes import Agent, Provider
from halo_lang.records import record
from halo_runtime.arguments import check_arguments
from halo_runtime.cli import reporting
from halo_runtime.cli.answers import AnswersAhead
from halo_runtime.cli.env_file import environment
from halo_runtime.cli.execution import load
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.inputs import choose_pipeline, collect
from halo_runtime.cli.output import emit, is_screen, money, plural, tell, tell_json
from halo_runtime.cli.sources import read_text, read_text_or_stdin
from halo_runtime.cli.usage import UsageError
from halo_runtime.crashtest.matrix import Killed, Matrix, Undisturbed
from halo_runtime.crashtest.moments import BOUNDARIES
from halo_runtime.crashtest.processes import ChildError
from halo_runtime.crashtest.subject import Subject
from halo_runtime.errors import HaloError, ProgramError
from halo_runtime.json_types import JsonObject
from halo_runtime.models.script import Script

_HEADS = ("", "killed", "at", "effects", "cost", "holds")


@record
class Asked:
    """The command's arguments as they were given."""

    file: str
    pipeline: str | None
    inputs: tuple[str, ...]
    input_json: str | None
    answers: tuple[str, ...]
    replies: str | None
    env_file: str | None


def crash_everywhere(asked: Asked, *, as_json: bool) -> int:
    """Try every boundary, and say what holds; the exit code."""
    try:
        analysis = load(asked.file)
    except ProgramError as error:
        return reporting.report_errors(error, as_json=as_json)
    try:
        subject = _subject(asked, analysis)
    except HaloError as error:
        return reporting.report_refusal(error, analysis.program.source, as_json=as_json)
    with Matrix(subject) as matrix:
        try:
            right = matrix.undisturbed()
        except ChildError as failure:
            raise UsageError(f"the run cannot be tried: {failure}") from None
        boundaries = [*_shown(matrix.killed(right), len(right.moments))]
    if as_json:
        tell_json(_document(subject, right, boundaries))
    else:
        tell(_table(right, boundaries))
    return ExitCode.FAILED if any(one.problems for one in boundaries) else ExitCode.COMPLETED


def _subject(asked: Asked, analysis: Analysis) -> Subject:
    program = analysis.program
    pipeline = choose_pipeline(program, asked.pipeline)
    if asked.replies is None and any(isinstance(declaration, Agent) for declaration in program.declarations):
        raise UsageError(
            "the program has agents, and is run many times", hint="give it prepared replies: --replies FILE"
        )
    given = None if asked.input_json is None else read_text_or_stdin(asked.input_json)
    inputs = collect(program, pipeline, asked.inputs, given, read_text)
    return Subject(
        source=program.source,
        pipeline=pipeline.name.text,
        inputs=check_arguments(pipeline.name.text, [one.name.text for one in pipeline.params], inputs),
        replies=None if asked.replies is None else Script.load(asked.replies),
        env=environment(asked.env_file, os.environ),
        answers=AnswersAhead(asked.answers, program).take,
        needs_files=any(isinstance(declaration, Provider) for declaration in program.declarations),
    )


def _shown(boundaries: Iterable[Killed], count: int) -> Iterable[Killed]:
    """Tell on a terminal how far it has come."""
    for one in boundaries:
        if is_screen(sys.stderr):
            emit(sys.stderr, f"\r\x1b[2Kboundary {one.number} of {count}")
        yield one
    if is_screen(sys.stderr):
        emit(sys.stderr, "\r\x1b[2K")


def _document(subject: Subject, right: Undisturbed, boundaries: list[Killed]) -> JsonObject:
    return {
        "file": subject.source.path,
        "pipeline": subject.pipeline,
        "holds": not any(one.problems for one in boundaries),
        "undisturbed": right.outcome | {"effects": right.done},
        "boundaries": [one.to_json() for one in boundaries],
    }


def _table(right: Undisturbed, boundaries: list[Killed]) -> str:
    rows = [_HEADS, *(_row(one, right) for one in boundaries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    wrong = [one for one in boundaries if one.problems]
    lines += [f"{one.number}: {visible(problem)}" for one in wrong for problem in one.problems]
    return "\n".join([*lines, _sum(right, boundaries, wrong)])


def _row(one: Killed, right: Undisturbed) -> tuple[str, ...]:
    """A cell for each of the heads."""
    boundary, path = BOUNDARIES[one.moment.boundary], visible(one.moment.path)
    cost = money((one.outcome or {}).get("cost"))
    return str(one.number), boundary, path, _effects(one, right), cost, "no" if one.problems else "yes"


def _effects(one: Killed, right: Undisturbed) -> str:
    """How many effects were done, and what that means where it is not as many as undisturbed."""
    again = [f"{len(one.again)} again"] if one.again else []
    doubt = ["in doubt: asked"] if one.asked else []
    return ", ".join([f"{one.done} of {right.done}", *again, *doubt])


def _sum(right: Undisturbed, boundaries: list[Killed], wrong: list[Killed]) -> str:
    what = f"{right.outcome['status']}, {plural(right.done, 'effect')}, {money(right.outcome['cost'])}"
    count = plural(len(boundaries), "boundary")
    if wrong:
        return f"{len(wrong)} of {count} do not hold (undisturbed: {what})"
    further = "; its questions are answered with --answer" if right.outcome["status"] == "paused" else ""
    return f"{count}, all hold: each run ended as the one that nobody killed ({what}{further})"
