"""What `halo run` does once its arguments are read: load, prepare, perform, report."""

from __future__ import annotations

import asyncio
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import halo_lang
from halo_lang import Analysis
from halo_lang.nodes import Pipeline
from halo_runtime.cli import reporting
from halo_runtime.cli.answers import AnswersAhead
from halo_runtime.cli.inputs import choose_pipeline, collect, usage_line
from halo_runtime.cli.output import say, tell, tell_json
from halo_runtime.cli.performing import StoppedError, Work, carry_out
from halo_runtime.cli.progress import Progress, choose_progress
from halo_runtime.cli.project import split_reference
from halo_runtime.cli.settings import seconds_of
from halo_runtime.cli.sources import read_source, read_text, read_text_or_stdin
from halo_runtime.cli.telemetry import exporting
from halo_runtime.cli.usage import UsageError
from halo_runtime.errors import HaloError, InputError, Place, ProgramError
from halo_runtime.json_types import JsonObject
from halo_runtime.results import RunResult
from halo_runtime.store.stored import paths_around

if TYPE_CHECKING:
    from halo_runtime.cli.run import RunOptions
    from halo_runtime.cli.settings import Settings
    from halo_runtime.policies.budgets import OnLimit
    from halo_runtime.preflight import Preflight
    from halo_runtime.runtime import Runtime


def execute(options: RunOptions, settings: Settings) -> int:
    """Run and report; the exit code."""
    try:
        analysis = load(options.file)
    except ProgramError as error:
        return reporting.report_errors(error, as_json=settings.as_json)
    try:
        return _execute(options, settings.in_project(), analysis)
    except HaloError as error:
        return reporting.report_refusal(error, analysis.program.source, as_json=settings.as_json)


def load(path: str) -> Analysis:
    """The program of a file, checked. UsageError where it cannot be read, ProgramError where it has errors."""
    source, undecodable = read_source(path)
    if undecodable is not None:
        raise ProgramError([undecodable], source)
    analysis = halo_lang.check(halo_lang.parse(source))
    if not analysis.ok:
        raise ProgramError(analysis.diagnostics, source)
    return analysis


def _execute(options: RunOptions, settings: Settings, analysis: Analysis) -> int:
    if options.checkpoint is None:
        for name in ("strict", "plan", "reuse_answers"):
            if getattr(options, name):
                flag = f"--{name.replace('_', '-')}"
                raise UsageError(f"{flag} is for continuing a run", hint=f"name it: --checkpoint RUN {flag}")
    if options.on_limit is not None and options.max_spend is None:
        raise UsageError("--on-limit is for --max-spend", hint="say what may be spent: --max-spend USD --on-limit ask")
    progress = choose_progress(events=settings.events, quiet=settings.quiet)
    ahead = AnswersAhead(options.answers, analysis.program)
    if options.checkpoint is not None:
        work = _continuing(options, settings, analysis, progress)
        if work is None:
            return 0
    else:
        work = _running(options, settings, analysis)
    return _perform(settings, analysis, work, progress, ahead)


def _running(options: RunOptions, settings: Settings, analysis: Analysis) -> Work:
    """A run from its beginning."""
    pipeline = choose_pipeline(analysis.program, options.pipeline)
    inputs = _inputs(options, analysis, pipeline)
    timeout = None if options.timeout is None else seconds_of("--timeout", options.timeout)
    max_spend, on_limit = _dollars(options.max_spend), _on_limit(options.on_limit)

    async def work(runtime: Runtime) -> RunResult:
        name, kept = pipeline.name.text, settings.to_keep()
        try:
            return await runtime.run(
                analysis, name, inputs, timeout=timeout, max_spend=max_spend, on_limit=on_limit, keep=options.keep,
                options=kept,
            )  # fmt: skip
        except InputError as error:
            raise _placed(error, analysis, pipeline) from None

    return work


def _perform(settings: Settings, analysis: Analysis, work: Work, progress: Progress, ahead: AnswersAhead) -> int:
    runtime = settings.runtime()
    with exporting(settings, runtime):
        try:
            result = carry_out(work, runtime, settings, progress, ahead)
        except StoppedError:
            return reporting.report_stopped(progress, as_json=settings.as_json)
        return reporting.report(result, analysis.program.source, progress, ahead.unused, settings)


# --- continuing a run ---------------------------------------------------------------------------------------


def _continuing(options: RunOptions, settings: Settings, analysis: Analysis, progress: Progress) -> Work | None:
    """Another run continued as a new one; None where only its plan was asked for."""
    assert options.checkpoint is not None, "asked before"
    reference, at = split_reference(options.checkpoint)
    inputs = _inputs_again(options, analysis)
    if options.plan:
        _show_plan(options, settings, analysis, reference, at, inputs)
        return None
    timeout = None if options.timeout is None else seconds_of("--timeout", options.timeout)
    max_spend, on_limit = _dollars(options.max_spend), _on_limit(options.on_limit)

    def told(preflight: Preflight) -> None:
        if not settings.quiet and not settings.events:
            progress.known = paths_around(preflight.reused).union(preflight.taken)
            say(reporting.continuation(reference, preflight))

    async def work(runtime: Runtime) -> RunResult:
        return await runtime.fork(
            analysis, reference, options.pipeline, inputs, at=at, strict=options.strict,
            reuse_answers=options.reuse_answers, timeout=timeout, max_spend=max_spend, on_limit=on_limit,
            options=settings.to_keep(), told=told,
        )  # fmt: skip

    return work


def _show_plan(
    options: RunOptions, settings: Settings, analysis: Analysis, reference: str, at: int | None, inputs: JsonObject
) -> None:
    runtime = settings.runtime()
    plan = asyncio.run(
        runtime.preflight(analysis, reference, options.pipeline, inputs, at=at, reuse_answers=options.reuse_answers)
    )
    if settings.as_json:
        tell_json(plan.to_json())
    else:
        tell(reporting.plan_table(plan))


def _inputs_again(options: RunOptions, analysis: Analysis) -> JsonObject:
    """The arguments that are given anew; the others stay as they were."""
    if not options.inputs and options.input_json is None:
        return {}
    return _inputs(options, analysis, choose_pipeline(analysis.program, options.pipeline))


# --- arguments ----------------------------------------------------------------------------------------------


def _inputs(options: RunOptions, analysis: Analysis, pipeline: Pipeline) -> JsonObject:
    arguments = None if options.input_json is None else read_text_or_stdin(options.input_json)
    return collect(analysis.program, pipeline, options.inputs, arguments, read_text)


def _placed(error: InputError, analysis: Analysis, pipeline: Pipeline) -> InputError:
    """The error with the pipeline's place, and with what to type."""
    program = analysis.program
    at = program.position(pipeline, pipeline.name.span)
    error.place = error.place or Place(pipeline.name.text, program.source.path, at.line, at.column)
    error.hint = error.hint or usage_line(program, pipeline)
    return error


def _on_limit(given: str | None) -> OnLimit:
    return "ask" if given == "ask" else "fail"


def _dollars(amount: str | None) -> Decimal | None:
    if amount is None:
        return None
    try:
        dollars = Decimal(amount)
    except InvalidOperation:
        dollars = Decimal(-1)
    if not dollars.is_finite() or dollars < 0:
        raise UsageError(f"--max-spend {amount}: no amount of US dollars", hint="write a number such as 0.50")
    return dollars
