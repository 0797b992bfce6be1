"""`|> call as name`: the call's result flows on."""

from __future__ import annotations

from halo_lang.records import record
from halo_runtime.engine.calls.base import Call, Storage
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.plan import StageInfo


@record
class Pipe:
    """`|> Call()`: the result flows on."""

    info: StageInfo
    call: Call
    storage: Storage

    async def execute(self, frame: Frame, path: str) -> int:
        outcome = await self.call.invoke(frame, path)
        self.storage.store(frame, outcome)
        frame.flow(outcome.value, outcome.origins)
        return self.info.index + 1
