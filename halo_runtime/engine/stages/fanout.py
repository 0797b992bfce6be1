"""`|* { call as name, call } as name`: all items at once, each with the context as it was before the block."""

from __future__ import annotations

from halo_lang.records import record
from halo_runtime.engine.calls.base import Call, Outcome, Storage
from halo_runtime.engine.effects import NO_ORIGINS
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.parallel import run_parallel
from halo_runtime.engine.plan import StageInfo
from halo_runtime.engine.stages.items import run_item
from halo_runtime.engine.strand import Strand


@record
class CompiledItem:
    """`key` is the item's name in the block's result."""

    key: str
    call: Call
    storage: Storage


@record
class FanOut:
    """`|* { … }`: all calls at once on the same value."""

    info: StageInfo
    items: tuple[CompiledItem, ...]
    binding: str | None

    async def execute(self, frame: Frame, path: str) -> int:
        async def job(index: int, strand: Strand) -> Outcome:
            view = frame.fork(strand, current=frame.current, origins=frame.current_origins)
            return await run_item(view, self.items[index].call, f"{path}/arm{index}", self.info.place.line)

        outcomes = await run_parallel(
            job, len(self.items), len(self.items), frame.strand, lambda: frame.run.all_under(path)
        )
        for item, outcome in zip(self.items, outcomes, strict=True):
            item.storage.store(frame, outcome)
        merged = {item.key: outcome.value for item, outcome in zip(self.items, outcomes, strict=True)}
        frame.flow(merged, NO_ORIGINS.union(*(outcome.origins for outcome in outcomes)))
        if self.binding is not None:
            frame.bind(self.binding, merged, frame.current_origins)
        return self.info.index + 1
