"""`|? { (condition) => call, else => call } as name`: the first true arm's result, else the value unchanged."""

from __future__ import annotations

from halo_lang.records import record
from halo_runtime.conditions import CompiledCondition
from halo_runtime.engine.calls.base import Call, Storage
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.plan import StageInfo
from halo_runtime.engine.stages.gate import passes


@record
class CompiledArm:
    """`condition` None is `else`."""

    condition: CompiledCondition | None
    call: Call
    storage: Storage


@record
class Branch:
    """`|? { (cond) => Call(), else => Call() }`: the first arm that holds."""

    info: StageInfo
    arms: tuple[CompiledArm, ...]
    binding: str | None

    async def execute(self, frame: Frame, path: str) -> int:
        for number, arm in enumerate(self.arms):
            if arm.condition is None or passes(frame, arm.condition):
                outcome = await arm.call.invoke(frame, f"{path}/arm{number}")
                arm.storage.store(frame, outcome)
                frame.flow(outcome.value, outcome.origins)
                break
        if self.binding is not None:
            frame.bind(self.binding, frame.current, frame.current_origins)
        return self.info.index + 1
