"""Stages and arms that no run comes to (HL506)."""

from __future__ import annotations

from collections.abc import Iterator

from halo_lang import nodes
from halo_lang.checks.constants import constant
from halo_lang.checks.walk import loop_condition
from halo_lang.diagnostics import Diagnostic, Related, Severity
from halo_lang.nodes import Arm, Call, Declaration, Pipeline, Stage
from halo_lang.source import Span
from halo_lang.symbols import Scope

_BEHIND_END = "this stage never runs, nor does anything behind it: every run ends before it"


def never_run(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL506: the first stage behind one where every run ends; arms that are never chosen."""
    if not isinstance(declaration, Pipeline) or scope.broken:
        return
    end: Stage | None = None
    for stage in declaration.stages:
        if end is not None:
            yield never_reached(stage, "the run ends here", end.operator)
            return
        told = list(_inside(stage))
        yield from told
        if told and isinstance(stage, nodes.GateStage):
            return
        end = stage if ends_run(stage) else None


def never_reached(stage: Stage, note: str, cause: Span) -> Diagnostic:
    """HL506 at a stage in front of which every run ends, with the reason and its place."""
    return _dead(_BEHIND_END, stage.operator, note, cause)


def ends_run(stage: Stage) -> bool:
    """Whether no run goes on behind a stage: it fails, or halts, whatever the values are."""
    match stage:
        case nodes.PipeStage():
            return _fails(stage.call)
        case nodes.GateStage():
            return constant(stage.condition) is False or (stage.call is not None and _fails(stage.call))
        case nodes.FanOutStage():
            return any(_fails(item.call) for item in stage.items)
        case nodes.BranchStage():
            return is_exhaustive(stage) and all(_fails(arm.call) for arm in chosen_arms(stage))
        case nodes.LoopStage():
            return _always_jumps(stage)
        case _:
            return False


def is_exhaustive(stage: nodes.BranchStage) -> bool:
    """Whether one of the arms is always chosen."""
    return any(_decides(arm) for arm in stage.arms)


def chosen_arms(stage: nodes.BranchStage) -> list[Arm]:
    """The arms of a branch that some run may choose."""
    chosen: list[Arm] = []
    for arm in stage.arms:
        if arm.condition is None or constant(arm.condition) is not False:
            chosen.append(arm)
        if _decides(arm):
            break
    return chosen


def _inside(stage: Stage) -> Iterator[Diagnostic]:
    match stage:
        case nodes.BranchStage():
            yield from _dead_arms(stage)
        case nodes.GateStage() if stage.arrow is not None and constant(stage.condition) is False:
            yield _dead("this call never runs: its gate never opens", stage.arrow)
        case _:
            return


def _dead_arms(stage: nodes.BranchStage) -> Iterator[Diagnostic]:
    decider: Arm | None = None
    for arm in stage.arms:
        if decider is not None:
            yield _dead("this arm is never chosen: an arm before it always is", arm.span, "this one", decider.span)
        elif arm.condition is not None and constant(arm.condition) is False:
            yield _dead("this arm is never chosen: its condition is never true", arm.span)
        # What stands behind an `else` is an error of its own.
        elif arm.condition is None:
            return
        elif _decides(arm):
            decider = arm


def _decides(arm: Arm) -> bool:
    return arm.condition is None or constant(arm.condition) is True


def _always_jumps(stage: nodes.LoopStage) -> bool:
    condition = loop_condition(stage.condition.value)
    return not isinstance(condition, Diagnostic) and constant(condition) is True


def _fails(call: Call) -> bool:
    return call.callee.text == "System" and call.method is not None and call.method.text == "Fail"


def _dead(message: str, span: Span, note: str = "", cause: Span | None = None) -> Diagnostic:
    related = (Related(note, cause),) if cause is not None else ()
    return Diagnostic(
        "HL506", Severity.WARNING, message, span, "remove it, or change what keeps it from running", related
    )
