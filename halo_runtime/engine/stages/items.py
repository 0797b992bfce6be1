"""What arms of a fan-out and items of `each` have in common: events and a trace entry of their own."""

from __future__ import annotations

import json
from functools import lru_cache

from halo_runtime.engine.calls.base import Call, Outcome
from halo_runtime.engine.effects import Paused, ending_of
from halo_runtime.engine.events import StageFinished, StageStarted
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.reach import calls_of_item


async def run_item(frame: Frame, call: Call, path: str, line: int) -> Outcome:
    """Do one arm's or item's call in a frame of its own."""
    run = frame.run
    if run.emitter.active:
        run.emitter.emit(StageStarted(run.run_id, path, "item", call.label, line))
    try:
        outcome = await call.invoke(frame, path)
    except BaseException as problem:
        if isinstance(problem, Paused) and run.effects.rehearsal and frame.stage is not None:
            run.unfinished += calls_of_item(frame.stage, call.label)
        run.emitter.emit(StageFinished(run.run_id, path, "item", call.label, line, ending_of(problem), None))
        raise
    step = frame.step(outcome.value) if run.recording else None
    frame.strand.record(path, "item", _as_json(call.label), frame.digest, run.digest(outcome.value), step)
    if run.emitter.active:
        value = run.redactor.json(outcome.value)
        run.emitter.emit(StageFinished(run.run_id, path, "item", call.label, line, "completed", value))
    return outcome


@lru_cache(maxsize=256)
def _as_json(label: str) -> str:
    return json.dumps(label, ensure_ascii=False)
