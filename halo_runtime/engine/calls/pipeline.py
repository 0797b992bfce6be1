"""A pipeline called as a stage: arguments of its own, results of its own, the run's figures shared (spec 2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from halo_lang.records import record
from halo_runtime.engine.calls.base import Outcome
from halo_runtime.engine.expressions import Expression
from halo_runtime.engine.frame import Frame
from halo_runtime.errors import RecursionLimitError

if TYPE_CHECKING:
    from halo_runtime.engine.plan import Plan

MAXIMUM_DEPTH = 64
"""Pipelines that may stand inside each other (spec 2.5)."""


@record
class PipelineCall:
    """`Name(arguments)`, arguments by parameter name."""

    label: str
    arguments: Mapping[str, Expression]
    plan: Plan

    async def invoke(self, frame: Frame, path: str) -> Outcome:
        from halo_runtime.engine.interpreter import walk  # the two call each other

        if frame.depth >= MAXIMUM_DEPTH:
            raise RecursionLimitError(
                f"{self.label} is called more than {MAXIMUM_DEPTH} pipelines deep; does it call itself without an end?"
            )
        inner = Frame(
            frame.run,
            self.plan.pipeline(self.label),
            f"{path}/{self.label}",
            frame.strand,
            {name: expression.evaluate(frame) for name, expression in self.arguments.items()},
            {name: frame.origins_of_all(expression.paths) for name, expression in self.arguments.items()},
            depth=frame.depth + 1,
            limit=frame.limit,
            guards=frame.guards,
            directives=frame.directives,
        )
        await walk(inner)
        return Outcome(inner.current, inner.current_origins)
