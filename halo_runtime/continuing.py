"""Between a store and the engine: what a run leaves in its header, and a stored run made ready to go on."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import halo_lang
from halo_lang import Program
from halo_lang.records import record
from halo_lang.source import Source, decode
from halo_runtime.engine.clock import iso
from halo_runtime.engine.execution import Order
from halo_runtime.engine.fingerprints import Fingerprints
from halo_runtime.engine.journal import EffectRecord, Journal
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.reuse import Past
from halo_runtime.errors import RunRefused, StoreError
from halo_runtime.json_types import JsonObject
from halo_runtime.results import Context, RunResult
from halo_runtime.store.format import FORMAT
from halo_runtime.store.runlog import RunLog
from halo_runtime.store.stored import StoredRun
from halo_runtime.values import digest
from halo_runtime.version import __version__


@record
class Origin:
    """The run that another one continues, and the entry of its trace up to which it is the same.

    `lines` is how long its journal was then, `at` and `reuse_answers` are how it is continued (see Reuse): enough for
    the new run to go on with taking results after it has stopped.
    """

    parent: str
    forked_at: int
    lines: int
    at: int | None
    reuse_answers: bool

    def to_json(self) -> JsonObject:
        """What a journal keeps of it beside `parent` and `forkedAt`."""
        return {"lines": self.lines, "at": self.at, "reuseAnswers": self.reuse_answers}


def header(order: Order, plan: Plan, options: JsonObject, now: datetime, origin: Origin | None) -> JsonObject:
    """The first line of a run's journal: everything that is needed to go on with it, and nothing secret."""
    source = order.program.source
    return {
        "format": FORMAT,
        "halo": __version__,
        "runId": order.run_id,
        "pipeline": order.pipeline,
        "file": os.path.abspath(source.path),  # noqa: PTH100 - a name for people; links stay as they are written
        "program": source.text,
        "programSha256": plan.program_sha256,
        "input": order.inputs,
        "timeout": order.timeout,
        "maxSpend": None if order.max_spend is None else str(order.max_spend),
        "onLimit": order.on_limit,
        "options": options,
        "startedAt": iso(now),
        "parent": None if origin is None else origin.parent,
        "forkedAt": None if origin is None else origin.forked_at,
        "fork": None if origin is None else origin.to_json(),
    }


def program_of(stored: StoredRun) -> Program:
    """The program that a run was made by. Raises StoreError where this Halo no longer takes it."""
    text, path = _text_of(stored.header), stored.header["file"]
    program = _parsed(text, path)
    if stored.header["halo"] == __version__ and _is_whole(text, stored.header):
        return program  # it ran, so this Halo has checked it
    first = next(iter(halo_lang.check(program).errors), None)
    if first is not None:
        raise StoreError(f"{stored.path}: the program of the run has errors to this halo: {first.code} {first.message}")
    return program


def refuse_incomplete(stored: StoredRun) -> None:
    """Raises StoreError for a run whose program is not whole: a secret stood in its text, and its file has changed."""
    if not _is_whole(_text_of(stored.header), stored.header):
        raise StoreError(
            f"{stored.path}: the program of the run held a value that is secret, so the journal does not have all of "
            f"it, and {stored.header['file']} is not what it was; continue it as a new run with: "
            f"halo run FILE --checkpoint {stored.run_id}"
        )


def _text_of(header: JsonObject) -> str:
    """The text of a run's program: as the journal has it, or where a secret was taken out there, as its file has it."""
    text, path = header["program"], header["file"]
    if not _is_whole(text, header):
        with suppress(OSError, ValueError):
            found = decode(Path(path).read_bytes(), path).text
            return found if _is_whole(found, header) else text
    return text


def _is_whole(text: str, header: JsonObject) -> bool:
    return digest(text) == header["programSha256"]


@lru_cache(maxsize=16)
def _parsed(text: str, path: str) -> Program:
    return halo_lang.parse(Source(text, path))


def revealed(stored: StoredRun, memory: JsonObject) -> StoredRun:
    """A stored run with what is kept out of its journal (see policies/edge.py)."""
    from halo_runtime.policies import edge

    return stored.changed(lambda line: edge.revealed(line, memory))


def lost(stored: StoredRun) -> JsonObject | None:
    """What is left to know of a run whose marks stand for nothing any more: how they end. None where it has none."""
    if "⟨" not in str(stored.reading.documents):
        return None
    from halo_runtime.policies import edge

    end = edge.end_in(list(stored.reading.documents))
    return None if end is None else {"end": end, "values": {}, "counts": {}}


def refuse_marked(order: Order) -> None:
    """Raises RunRefused where personal data is missing in a run's input that was kept out of its journal."""
    if "⟨" not in str(order.inputs):
        return
    from halo_runtime.policies import edge

    names = [name for name, value in order.inputs.items() if edge.end_in(value) is not None]
    if names:
        given = " ".join(f"-i {name}=…" for name in names)
        raise RunRefused(
            "the run's policies keep personal data out of its journal, and what was kept apart of it is gone; "
            f"give it again in a new run: halo run FILE --checkpoint RUN {given}"
        )


def order_of(stored: StoredRun, program: Program, recorder: RunLog | None) -> Order:
    """A stored run as an order to go on with it; what was cancelled is to be done again."""
    kept = [entry for entry in stored.records if entry.outcome != "cancelled"]
    closing, max_spend = stored.closing, stored.header.get("maxSpend")
    return Order(
        program=program,
        pipeline=stored.pipeline,
        inputs=stored.header["input"],
        run_id=stored.run_id,
        journal=Journal(kept, begun=stored.begun, aborted=stored.aborted, recorder=recorder),
        timeout=stored.header["timeout"],
        max_spend=None if max_spend is None else Decimal(max_spend),
        on_limit=stored.header.get("onLimit", "fail"),
        time_left={} if closing is None else closing["timeLeft"],
    )


def past_of(stored: StoredRun, plan: Plan) -> Past:
    """A stored run as something that another one continues."""
    closing = stored.closing
    records = tuple(entry for entry in stored.records if not _has_marks(entry))
    ended = {entry.path for entry in records if entry.outcome != "cancelled"}
    error = closing["error"] if closing is not None else None
    return Past(
        run_id=stored.run_id,
        records=records,
        stages={document["path"]: document["seq"] for document in stored.stages},
        inputs={document["path"]: document["input_sha256"] for document in stored.stages},
        fingerprints=Fingerprints(plan),
        begun=stored.begun - ended,
        completed=stored.status == "completed",
        failed_at=closing["failedAt"] if closing is not None else None,
        error=error["type"] if error is not None else None,
    )


def _has_marks(entry: EffectRecord) -> bool:
    """Whether a result lacks personal data that is gone: it cannot be taken by another run."""
    if "⟨" not in str(entry.result):
        return False
    from halo_runtime.policies import edge

    return edge.end_in(entry.result) is not None


def result_of(stored: StoredRun) -> RunResult:
    """A completed or paused run as it stands."""
    document = stored.to_json()
    context, status = Context(**document["context"]), document["status"]
    return RunResult(stored.run_id, status, document["output"], context, interrupts=stored.interrupts)
