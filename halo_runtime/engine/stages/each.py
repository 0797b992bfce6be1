"""`|* each(item in list, concurrency: n, onError: …) => call as name`: one call an item, results in item order."""

from __future__ import annotations

from typing import Final

from halo_lang.records import record
from halo_runtime.engine.calls.base import Call, NamespaceWrite, Outcome, Storage
from halo_runtime.engine.effects import NO_ORIGINS
from halo_runtime.engine.expressions import Expression
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.parallel import run_parallel
from halo_runtime.engine.plan import StageInfo
from halo_runtime.engine.stages.items import run_item
from halo_runtime.engine.strand import Strand
from halo_runtime.errors import EachInputError, HaloError, ReplayMiss, StoreError
from halo_runtime.json_types import Json, is_list
from halo_runtime.values import type_name

_DROPPED: Final = object()


@record
class Each:
    """`on_error`: fail (the stage fails), keep (the error stands in the item's place), drop (left out)."""

    info: StageInfo
    name: str
    source: Expression
    concurrency: int
    on_error: str
    call: Call
    storage: Storage

    async def execute(self, frame: Frame, path: str) -> int:
        items = self.source.evaluate(frame)
        if not is_list(items):
            raise EachInputError(
                f"each goes over a list, and {'.'.join(self._source_path())} is {type_name(items)}; "
                "give it a list, or ask the agent before for a JSON array"
            )
        origins = frame.origins_of_all(self.source.paths)

        async def job(index: int, strand: Strand) -> Outcome:
            local = {self.name: items[index], "index": index}
            view = frame.fork(strand, current=items[index], origins=origins, local_values=local)
            return await self._one(view, f"{path}/item{index}", items[index], index)

        outcomes = await run_parallel(
            job, len(items), self.concurrency, frame.strand, lambda: frame.run.all_under(path)
        )
        outcome = _joined(outcomes)
        self.storage.store(frame, outcome)
        frame.flow(outcome.value, outcome.origins)
        return self.info.index + 1

    async def _one(self, frame: Frame, path: str, item: Json, index: int) -> Outcome:
        try:
            return await run_item(frame, self.call, path, self.info.place.line)
        except HaloError as error:
            # What is not kept has not happened, and what a cassette does not have did not fail.
            if self.on_error == "fail" or isinstance(error, StoreError | ReplayMiss):
                raise
            # What stays in the results is public, so it is redacted here as everywhere.
            message = frame.run.secrets.text(error.message)
            if self.on_error == "drop":
                frame.run.warn(frame, f"each left out item {index}: {message}")
                return Outcome(_DROPPED, NO_ORIGINS)
            failure = {"type": type(error).__name__, "message": message, "item": item, "index": index}
            return Outcome({"error": failure}, NO_ORIGINS)

    def _source_path(self) -> tuple[str, ...]:
        return self.source.paths[0] if self.source.paths else ("this value",)


def _joined(outcomes: list[Outcome]) -> Outcome:
    """The items' results as one: lists of values, origins together, what came beside each item in lists too."""
    kept = [outcome for outcome in outcomes if outcome.value is not _DROPPED]
    beside: dict[tuple[str, str], list[NamespaceWrite]] = {}
    for outcome in kept:
        for write in outcome.writes:
            beside.setdefault((write.namespace, write.name), []).append(write)
    writes = tuple(
        NamespaceWrite(*key, [write.value for write in found], NO_ORIGINS.union(*(write.origins for write in found)))
        for key, found in beside.items()
    )
    origins = NO_ORIGINS.union(*(outcome.origins for outcome in kept))
    return Outcome([outcome.value for outcome in kept], origins, writes)
