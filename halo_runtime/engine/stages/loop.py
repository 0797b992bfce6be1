"""`|<> loop(Agent, "condition", max: n) as name`: back to the agent's latest stage while the condition holds."""

from __future__ import annotations

from halo_lang.records import record
from halo_runtime.conditions import CompiledCondition
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.plan import StageInfo
from halo_runtime.engine.stages.gate import passes
from halo_runtime.errors import LoopLimitError


@record
class Loop:
    """`target` is the number of the stage to jump to, `limit` the number of jumps allowed."""

    info: StageInfo
    agent: str
    target: int
    condition: CompiledCondition
    text: str
    limit: int
    binding: str | None

    async def execute(self, frame: Frame, path: str) -> int:
        jumps = frame.jumps.pop(self.info.index, 0)
        again = passes(frame, self.condition)
        if again and jumps == self.limit:
            raise LoopLimitError(
                f"after {self.limit} jump(s) back to {self.agent} the condition still holds: {self.text}; "
                "raise max:, or let the loop end in another way"
            )
        if again:
            # Counted only while this loop turns: entered anew, it counts anew.
            jumps += 1
            frame.jumps[self.info.index] = jumps
        if self.binding is not None:
            frame.bind(self.binding, jumps, frame.guards)
        return self.target if again else self.info.index + 1
