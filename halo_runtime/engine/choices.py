"""The answers a program knows: the literals that it later compares an answer with (spec 2.6)."""

from __future__ import annotations

from collections.abc import Iterator

from halo_lang import nodes, parse_condition
from halo_lang.diagnostics import Diagnostic
from halo_runtime.json_types import Json
from halo_runtime.values import type_name


def choices_after(
    pipeline: nodes.Pipeline, asked: nodes.YieldStage | nodes.ListenStage, event: tuple[str, ...]
) -> tuple[Json, ...]:
    """Literals compared with the answer in the stages behind `asked`, in order of first mention.

    The answer is known by its `as` name, by `context.data.<Source>.<Event>` (`event`), and as the flowing value as
    long as only gates have come since.
    """
    names = {("context", "data", *event), event} if event else set[tuple[str, ...]]()
    if asked.binding is not None:
        names |= {(asked.binding.text,), ("context", "data", asked.binding.text)}
    flowing = {("context",), ("context", "current")}
    found: dict[tuple[str, Json], Json] = {}
    for stage in pipeline.stages[pipeline.stages.index(asked) + 1 :]:
        for condition in _conditions(stage):
            for literal in _compared(condition, names | flowing):
                found.setdefault((type_name(literal), literal), literal)
        if not isinstance(stage, nodes.GateStage) or stage.call is not None:
            flowing = set[tuple[str, ...]]()
    return tuple(found.values())


def _conditions(stage: nodes.Stage) -> Iterator[nodes.Condition]:
    if isinstance(stage, nodes.GateStage):
        yield stage.condition
    elif isinstance(stage, nodes.BranchStage):
        yield from (arm.condition for arm in stage.arms if arm.condition is not None)
    elif isinstance(stage, nodes.LoopStage):
        condition = parse_condition(stage.condition.value)
        if not isinstance(condition, Diagnostic):
            yield condition


def _compared(condition: nodes.Condition, paths: set[tuple[str, ...]]) -> Iterator[Json]:
    """Literals that a condition compares with one of the paths; without recursion, chains may be long."""
    pending = [condition]
    while pending:
        node = pending.pop()
        if isinstance(node, nodes.And | nodes.Or):
            pending += reversed(node.operands)
        elif isinstance(node, nodes.Not):
            pending.append(node.operand)
        elif isinstance(node, nodes.Comparison) and node.operator in ("==", "!="):
            for path, literal in ((node.left, node.right), (node.right, node.left)):
                if isinstance(path, nodes.Path) and path.segments in paths:
                    yield from _literal(literal)


def _literal(node: nodes.Condition) -> Iterator[Json]:
    if isinstance(node, nodes.String | nodes.Number | nodes.Boolean):
        yield node.value
    elif isinstance(node, nodes.Duration):
        yield node.text
    elif isinstance(node, nodes.Null):
        yield None
