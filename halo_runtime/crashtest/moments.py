"""The boundaries at which a run can be killed, and the store, log and model that come to them.

They stand around the engine and not in it: what is tested is the engine that everybody runs.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.engine.journal import EffectRecord, StageEntry
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelProvider, ModelReply, ModelRequest, OnDelta
from halo_runtime.redaction import Redactor
from halo_runtime.store.files import Claim, FileRunStore
from halo_runtime.store.runlog import RunLog

Boundary: TypeAlias = Literal["request", "begun", "question", "done", "recorded", "stage", "end", "ended"]
BOUNDARIES: Final[dict[Boundary, str]] = {
    "request": "before the request",
    "begun": "before the effect",
    "question": "before the answer",
    "done": "after the effect, before its record",
    "recorded": "after the record",
    "stage": "after the stage",
    "end": "before the end is recorded",
    "ended": "after the end is recorded",
}
"""In the order in which one effect, its stage and the run come to them."""


@record
class Moment:
    """One boundary that a process came to. `result` is what an effect that is done gave."""

    boundary: Boundary
    path: str
    kind: str = ""
    result: Json = None


class Diary:
    """The moments of the processes that worked on one run, in a file that survives each of them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[Moment]:
        """The moments, in order."""
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        return (Moment(*json.loads(line)) for line in lines)

    def add(self, moment: Moment) -> None:
        """Note one; a killed process has noted all that it came to."""
        line = json.dumps([moment.boundary, moment.path, moment.kind, moment.result]) + "\n"
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line)


class Moments:
    """What a run comes to in this process. The process dies at the moment number `fatal` (from 1), if there is one."""

    def __init__(self, diary: Diary, fatal: int | None) -> None:
        self.diary = diary
        self._fatal = fatal
        self._count = 0

    def reach(self, boundary: Boundary, path: str, kind: str = "", result: Json = None) -> None:
        """Note that a boundary is reached; do not come back from the fatal one."""
        self._count += 1
        self.diary.add(Moment(boundary, path, kind, result))
        if self._count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class MomentsLog(RunLog):
    """A log that comes to the boundaries of what it is told; `moments` is set by the store that makes it."""

    moments: Moments

    def effect(self, record: EffectRecord) -> None:
        """An effect has ended: it is done, then it is recorded."""
        if record.outcome != "cancelled":
            self.moments.reach("done", record.path, record.kind, record.result)
        super().effect(record)
        if record.outcome != "cancelled":
            self.moments.reach("recorded", record.path, record.kind)

    def begun(self, path: str) -> None:
        """An effect that must not happen twice is about to begin."""
        super().begun(path)
        self.moments.reach("begun", path)

    def stage(self, entry: StageEntry, news: JsonObject) -> None:
        """A stage execution has entered the trace."""
        super().stage(entry, news)
        self.moments.reach("stage", entry.path)

    def note(self, kind: str, make: Callable[[], JsonObject]) -> None:
        """Add a line; the last one says how the run stopped."""
        if kind != "status":
            super().note(kind, make)
            return
        self.moments.reach("end", "")
        super().note(kind, make)
        self.moments.reach("ended", "")


class MomentsStore(FileRunStore):
    """A store whose logs come to boundaries. A kill takes nothing from an open file, so nothing is flushed."""

    def __init__(self, root: Path, moments: Moments) -> None:
        super().__init__(root, flush=False)
        self._moments = moments

    def new_log(self, run_id: str, redactor: Redactor, fingerprint: Callable[[str, int], str | None]) -> MomentsLog:
        """A log for a new run."""
        taken = self.mail(run_id).discard
        log = MomentsLog(self._path(run_id), redactor, fingerprint, durable=self._flush, taken=taken)
        log.moments = self._moments
        return log

    def go_on(self, claim: Claim, redactor: Redactor, fingerprint: Callable[[str, int], str | None]) -> MomentsLog:
        """A log that goes on with a claimed run's journal."""
        stored = claim.stored
        log = self.new_log(stored.run_id, redactor, fingerprint)
        hashes = [document["hash"] for document in stored.stages]
        log.go_on(claim.lock, stored.header, stored.reading.good, stored.reading.last_sum, hashes)
        return log


class MomentsModel(ModelProvider):
    """A model whose requests are boundaries."""

    def __init__(self, inner: ModelProvider, moments: Moments) -> None:
        self._inner = inner
        self._moments = moments

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Answer as the model inside does."""
        self._moments.reach("request", f"{request.agent}.{request.method}")
        return await self._inner.complete(request, on_delta)

    def missing(self) -> str | None:
        """What the model inside misses."""
        return self._inner.missing()

    def restore(self, cursors: Sequence[Json]) -> None:
        """Replies that a journal holds already."""
        self._inner.restore(cursors)

    async def close(self) -> None:
        """Close the model inside."""
        await self._inner.close()
