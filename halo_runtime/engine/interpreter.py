"""The walk over a pipeline's stages (spec 2.2): read the flowing value, do the stage, write down, go on."""

from __future__ import annotations

import asyncio

from halo_runtime.engine.controller import (
    PROCEED,
    Command,
    Controller,
    Jump,
    Proceed,
    Replace,
    Skip,
    StagePoint,
    command_from_json,
    command_to_json,
)
from halo_runtime.engine.effects import NO_ORIGINS, Halted, Paused, ending_of
from halo_runtime.engine.events import StageFinished, StageStarted
from halo_runtime.engine.expressions import Scope
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.plan import StagePlan
from halo_runtime.engine.reach import unfinished_calls
from halo_runtime.engine.strand import STEPS_A_BREATH
from halo_runtime.errors import HaloError, RunError
from halo_runtime.json_types import Json


async def walk(frame: Frame) -> None:
    """Run a pipeline's call to its end; the frame's flowing value is its output then.

    Raises what its stages raise: HaloError with its place, Halted, Paused.
    """
    try:
        await _run_in_time(frame)
    except HaloError as error:
        if error.place is None:  # no stage failed but the pipeline: its time is over, its output does not fit
            error.place = frame.plan.place
            error.path = frame.path
        raise


async def _run_in_time(frame: Frame) -> None:
    seconds = frame.plan.directives.timeout
    if seconds is None:
        await _run(frame)
        return
    async with frame.run.time_limit(frame, seconds, f"the pipeline {frame.plan.name}"):
        await _run(frame)


async def _run(frame: Frame) -> None:
    plan, strand = frame.plan, frame.strand
    begin(frame, frame)
    step = _controlled_step if frame.run.controlled else _step
    index, count = 0, len(plan.stages)
    while index < count:
        index = await step(frame, plan.stages[index])
        strand.steps += 1
        if strand.steps % STEPS_A_BREATH == 0:
            await asyncio.sleep(0)
    if plan.output is not None:
        frame.flow(plan.output.check(frame.current), frame.current_origins)


async def _step(frame: Frame, stage: StagePlan) -> int:
    """Do one stage, with its events and its trace entry; the number of the stage that follows."""
    info = stage.info
    run = frame.run
    frame.stage = stage
    frame.stored = {}
    path = frame.visit(info.index)
    before = frame.digest
    reuse = run.effects.reuse
    if reuse is not None:
        reuse.enter(path, frame.plan.name, stage, before)
    if run.emitter.active:
        run.emitter.emit(StageStarted(run.run_id, path, info.kind, info.label, info.place.line))
    try:
        following = await stage.execute(frame, path)
    except BaseException as problem:
        _interrupted(frame, stage, path, before, problem)
        raise
    frame.strand.record(path, info.kind, info.label_json, before, frame.digest, frame.step())
    if reuse is not None:
        reuse.leave(path)
    if run.emitter.active:
        _finished(frame, stage, path, "completed", frame.current)
    return following


def _interrupted(frame: Frame, stage: StagePlan, path: str, before: str, problem: BaseException) -> None:
    """Tell how a stage ended that did not complete; an error learns its place from the innermost stage."""
    if isinstance(problem, HaloError) and problem.place is None:
        problem.place = stage.info.place
        problem.path = path
    if isinstance(problem, Paused) and frame.run.effects.rehearsal:
        frame.run.unfinished += unfinished_calls(frame.plan, stage)
    if isinstance(problem, Halted) and stage.info.kind == "gate":
        frame.strand.record(path, "gate", stage.info.label_json, before, frame.digest, frame.step())
    if frame.run.emitter.active:
        _finished(frame, stage, path, ending_of(problem), None)


def _finished(frame: Frame, stage: StagePlan, path: str, outcome: str, value: Json) -> None:
    run, info = frame.run, stage.info
    redacted = run.redactor.json
    shown = redacted(value)
    stored = {name: shown if kept is value else redacted(kept) for name, kept in frame.stored.items()}
    run.emitter.emit(StageFinished(run.run_id, path, info.kind, info.label, info.place.line, outcome, shown, stored))


def begin(frame: Frame, scope: Scope) -> None:
    """Let flow what flows first: the start value, else the only argument, else the object of all (spec 2.2)."""
    plan, arguments = frame.plan, list(frame.input.values())
    frame.flow(
        arguments[0] if len(arguments) == 1 else dict(frame.input),
        NO_ORIGINS.union(*frame.input_origins.values()),
    )
    if plan.start is not None:
        frame.flow(plan.start.evaluate(scope), frame.origins_of_all(plan.start.paths))


# --- under a debugger ---------------------------------------------------------------------------------------


async def _controlled_step(frame: Frame, stage: StagePlan) -> int:
    """The same step with a controller asked before it, after it, and when it fails."""
    index = stage.info.index
    place = f"{frame.path}/{index}#{frame.visits[index]}"
    command = await _command(frame, stage, f"{place}/before")
    if isinstance(command, Replace | Skip):
        frame.flow(command.value, NO_ORIGINS)
    if isinstance(command, Jump | Skip):
        frame.visit(index)  # when the stage comes again it is asked about anew, under another path
        return command.index if isinstance(command, Jump) else index + 1
    try:
        following = await _step(frame, stage)
    except HaloError as error:
        command = await _command(frame, stage, f"{place}/error", error)
        if isinstance(command, Proceed):
            raise
        following = index + 1
    else:
        command = await _command(frame, stage, f"{place}/after")
    if isinstance(command, Replace | Skip):
        frame.flow(command.value, NO_ORIGINS)
    return command.index if isinstance(command, Jump) else following


async def _command(frame: Frame, stage: StagePlan, path: str, error: HaloError | None = None) -> Command:
    """What the controller says here, or said when the journal was written. Only changes are recorded."""
    run = frame.run
    if run.effects.recorded(path):
        return command_from_json(await run.effects.perform(path, "control", None, _nothing))
    if run.controller is None:
        return PROCEED
    point = StagePoint(
        run.run_id, path.rpartition("/")[0], frame.plan.name, stage.info.index, stage.info.label,
        stage.info.place.line, frame.current, frame.data,
    )  # fmt: skip
    try:
        with frame.standing_still():
            command = await _asked(run.controller, path, point, error)
    except Exception as failure:  # the host's own code; its failure is the run's, at this stage
        raise _misled(stage, f"the debugger failed: {type(failure).__name__}: {failure}") from failure
    if isinstance(command, Jump) and not 0 <= command.index <= len(frame.plan.stages):
        raise _misled(stage, f"the debugger jumped to stage {command.index}, which {frame.plan.name} does not have")
    if not isinstance(command, Proceed):

        async def change() -> Json:
            return command_to_json(command)

        await run.effects.perform(path, "control", None, change)
    return command


async def _asked(controller: Controller, path: str, point: StagePoint, error: HaloError | None) -> Command:
    if error is not None:
        return await controller.on_error(point, error)
    return await (controller.before_stage(point) if path.endswith("/before") else controller.after_stage(point))


def _misled(stage: StagePlan, message: str) -> RunError:
    error = RunError(message)
    error.place = stage.info.place
    return error


async def _nothing() -> Json:
    return None
