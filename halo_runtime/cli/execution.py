"""What `halo run` does once its arguments are read: load, prepare, perform, report."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import halo_lang
from halo_lang import Analysis
from halo_lang.catalog.signature import duration_seconds
from halo_lang.nodes import Pipeline
from halo_runtime.cli import reporting
from halo_runtime.cli.answers import AnswersAhead
from halo_runtime.cli.asking import Answering, terminal_for
from halo_runtime.cli.env_file import environment
from halo_runtime.cli.inputs import choose_pipeline, collect, usage_line
from halo_runtime.cli.performing import Job, StoppedError, perform
from halo_runtime.cli.progress import choose_progress
from halo_runtime.cli.sources import read_source, read_text, read_text_or_stdin
from halo_runtime.cli.usage import UsageError
from halo_runtime.errors import HaloError, InputError, Place, ProgramError
from halo_runtime.models.scripted import ScriptedModel

if TYPE_CHECKING:
    from halo_runtime.cli.run import RunOptions


def execute(options: RunOptions) -> int:
    """Run and report; the exit code."""
    try:
        analysis = load(options.file)
    except ProgramError as error:
        return reporting.report_errors(error, as_json=options.as_json)
    try:
        return _execute(options, analysis)
    except HaloError as error:
        return reporting.report_refusal(error, analysis.program.source, as_json=options.as_json)


def load(path: str) -> Analysis:
    """The program of a file, checked. UsageError where it cannot be read, ProgramError where it has errors."""
    source, undecodable = read_source(path)
    if undecodable is not None:
        raise ProgramError([undecodable], source)
    analysis = halo_lang.check(halo_lang.parse(source))
    if not analysis.ok:
        raise ProgramError(analysis.diagnostics, source)
    return analysis


def _execute(options: RunOptions, analysis: Analysis) -> int:
    program = analysis.program
    pipeline = choose_pipeline(program, options.pipeline)
    ahead = AnswersAhead(options.answers, program)
    progress = choose_progress(events=options.events, quiet=options.quiet)
    # With events as JSON lines on stderr there is no room for a question.
    terminal = None if options.no_input or options.events else terminal_for(progress)
    try:
        job = _job(options, analysis, pipeline)
        result = asyncio.run(perform(job, progress, Answering(ahead, terminal)))
    except InputError as error:
        at = program.position(pipeline, pipeline.name.span)
        error.place = error.place or Place(pipeline.name.text, program.source.path, at.line, at.column)
        error.hint = error.hint or usage_line(program, pipeline)
        raise
    except StoppedError:
        return reporting.report_stopped(progress, as_json=options.as_json)
    return reporting.report(result, program.source, progress, ahead.unused, options)


def _job(options: RunOptions, analysis: Analysis, pipeline: Pipeline) -> Job:
    arguments = None if options.input_json is None else read_text_or_stdin(options.input_json)
    return Job(
        analysis,
        pipeline.name.text,
        collect(analysis.program, pipeline, options.inputs, arguments, read_text),
        environment(options.env_file, os.environ),
        model=options.model,
        replies=None if options.replies is None else ScriptedModel(options.replies),
        timeout=_seconds(options.timeout),
    )


def _seconds(duration: str | None) -> float | None:
    if duration is None:
        return None
    seconds = duration_seconds(duration)
    if not seconds or seconds < 0:
        raise UsageError(f"--timeout {duration}: no duration", hint="write 500ms, 30s, 5m, 1h or 1d")
    return seconds
