"""`|? (condition)`: true lets the value pass, anything else ends the run as halted (spec 2.2)."""

from __future__ import annotations

from halo_lang.records import record
from halo_runtime.conditions import CompiledCondition, describe
from halo_runtime.engine.effects import Halted
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.plan import StageInfo


@record
class Gate:
    """`|? (cond)`: halts the run when the condition does not hold."""

    info: StageInfo
    condition: CompiledCondition

    async def execute(self, frame: Frame, path: str) -> int:
        if not passes(frame, self.condition):
            raise Halted(frame.current, frame.current_origins | frame.origins_of_all(self.condition.paths))
        return self.info.index + 1


def passes(frame: Frame, condition: CompiledCondition) -> bool:
    """Whether a condition holds now. Unknown does not pass, with a warning; what it read guards what follows."""
    verdict = condition.evaluate(frame.read)
    frame.guard(condition, frame.origins_of_all(condition.paths))
    if verdict.unknown is not None:
        frame.run.warn(
            frame, f"{describe(verdict.unknown)} compares with null or a missing value: unknown, so it does not pass"
        )
    return verdict.passes
