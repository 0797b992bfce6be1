"""A journal read back: what happened in a run, folded into its state at any entry of its trace (spec 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from halo_runtime.engine.journal import EffectRecord
from halo_runtime.engine.trace import Chain
from halo_runtime.errors import StoreError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.results import Interrupt
from halo_runtime.store.format import Reading
from halo_runtime.values import digest


@dataclass(frozen=True)
class StoredRun:
    """A run as its journal tells it. `claimed`: a process is at work on it now."""

    path: Path
    reading: Reading
    claimed: bool = False

    def changed(self, change: Callable[[JsonObject], JsonObject]) -> StoredRun:
        """The run with each line of its journal as `change` has it."""
        return StoredRun(
            self.path,
            replace(self.reading, documents=tuple(change(line) for line in self.reading.documents)),
            self.claimed,
        )

    def first_lines(self, count: int) -> StoredRun:
        """The run as it was when its journal had `count` lines."""
        return StoredRun(self.path, replace(self.reading, documents=self.reading.documents[:count]))

    # --- the header ---------------------------------------------------------------------------------------------

    @property
    def header(self) -> JsonObject:
        """The first line: the program, the pipeline, its input, the options it was started with."""
        return self.reading.documents[0]

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.header["runId"]

    @property
    def pipeline(self) -> str:
        """The pipeline that was run."""
        return self.header["pipeline"]

    # --- what happened ------------------------------------------------------------------------------------------

    def lines(self, kind: str) -> Iterator[JsonObject]:
        """The lines of one kind, in order."""
        return (document for document in self.reading.documents if document.get("t") == kind)

    @cached_property
    def records(self) -> tuple[EffectRecord, ...]:
        """The effects that ended, each path once: one that was cancelled may have been done later."""
        found: dict[str, EffectRecord] = {}
        for document in self.lines("effect"):
            found.pop(document["path"], None)
            found[document["path"]] = EffectRecord.from_json(document)
        return tuple(found.values())

    @property
    def aborted(self) -> list[JsonObject]:
        """What calls count for in budgets that were cancelled or cut off by a kill, also where they were made again.

        Each with its `path`.
        """
        found: list[JsonObject] = []
        begun: dict[str, JsonObject] = {}
        for document in self.reading.documents:
            charge = document.get("charge")
            if charge is None:
                continue
            charge = {**charge, "path": document["path"]}
            before = begun.pop(document["path"], None)
            if document["t"] == "booked":
                found += [before] if before is not None else []
                begun[document["path"]] = charge
            elif document["outcome"] == "cancelled":
                found.append(charge)
        return [*found, *begun.values()]

    @cached_property
    def begun(self) -> frozenset[str]:
        """Effects that must not happen twice and had begun."""
        return frozenset(document["path"] for document in self.lines("begun"))

    @property
    def sums(self) -> frozenset[str]:
        """The sums of all lines."""
        return self.reading.sums

    @cached_property
    def stages(self) -> tuple[JsonObject, ...]:
        """The entries of the trace that are stages, in order."""
        return tuple(self.lines("stage"))

    @cached_property
    def paths(self) -> frozenset[str]:
        """The structural paths of everything that has begun, but of the run itself."""
        found = (entry.path for entry in self.records)
        return paths_around([*found, *(document["path"] for document in self.stages)])

    @cached_property
    def closing(self) -> JsonObject | None:
        """How the run stopped; None where it goes on or broke off."""
        last = next((d for d in reversed(self.reading.documents) if d.get("t") not in _AFTERWARDS), None)
        return last if last is not None and last.get("t") == "status" else None

    # --- what came of it ----------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """completed, halted, paused, failed or interrupted; `running` while a process is at work on it."""
        if self.closing is not None and not (self.claimed and self.closing["status"] == "paused"):
            return self.closing["status"]
        return "running" if self.claimed else "interrupted"

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """The open questions of a paused run."""
        if self.closing is None or self.closing["status"] != "paused":
            return ()
        return tuple(Interrupt.from_stored(document) for document in self.closing["interrupts"])

    @property
    def questions(self) -> tuple[Interrupt, ...]:
        """The open questions of a paused run, and of one that broke off those that were put and have no answer."""
        if self.closing is not None and self.closing["status"] != "interrupted":
            return self.interrupts
        ended = {entry.path for entry in self.records if entry.outcome != "cancelled"}
        put = {document["path"]: document for document in self.lines("asked")}
        return tuple(Interrupt.from_stored(document) for path, document in put.items() if path not in ended)

    def expired(self, now: datetime) -> Interrupt | None:
        """The first open question whose time is over."""
        return next((question for question in self.interrupts if question.is_late(now)), None)

    @cached_property
    def trace(self) -> list[JsonObject]:
        """The hash chain, from its start entry to its end if it has one."""
        head = self.header
        entries = Chain(head["programSha256"], self.pipeline, digest(head["input"])).to_json()
        for document in self.stages:
            entry = {name: document[name] for name in _TRACED}
            entries.append({**entry, "prev": entries[-1]["hash"], "hash": document["hash"]})
        if self.closing is not None and self.closing["end"] is not None:
            entries.append(self.closing["end"])
        return entries

    def context(self, seq: int | None = None) -> JsonObject:
        """`context` as it was after an entry of the trace, of the pipeline call that the entry stands in.

        Without `seq` as it is now. Raises StoreError where there is no such entry.
        """
        if seq is not None and not 0 <= seq < len(self.trace):
            raise StoreError(f"{self.run_id} has entries 0 to {len(self.trace) - 1}, not {seq}")
        until = self.stages if seq is None else self.stages[:seq]
        frame = until[-1]["frame"] if seq is not None and until else self.pipeline
        state = _state(until, frame, self.header["input"])
        closing = self.closing if seq is None or seq > len(self.stages) else None
        if closing is not None:
            state["current"] = closing["current"]
        news = [document.get("news", {}) for document in until]
        meta = meta_of([*news, closing["news"]] if closing is not None else news)
        meta["shadow"] = closing["shadow"] if closing is not None else []
        meta["budget"] = closing.get("budget", {}) if closing is not None else {}
        return {**state, "meta": meta, "trace": self.trace if seq is None else self.trace[: seq + 1]}

    def to_json(self, seq: int | None = None, *, now: datetime | None = None) -> JsonObject:
        """The shape of `halo run --json` (spec 8.1). A run whose question has expired by `now` has failed."""
        closing = self.closing if seq is None else None
        context = self.context(seq)
        late = self.expired(now) if now is not None and seq is None else None
        status = self.status
        error = closing["error"] if closing is not None else None
        if late is not None:
            status, error = "failed", _expiry(late)
        ended = status in ("completed", "halted")
        open_now = () if late is not None else self.interrupts
        return {
            "runId": self.run_id,
            "status": status,
            "output": (closing["output"] if closing is not None else context["current"]) if ended else None,
            "error": error,
            "interrupts": [question.to_json() for question in open_now] if seq is None else [],
            "context": context,
        }


def paths_around(paths: Iterable[str]) -> frozenset[str]:
    """Structural paths with all that they stand in, but the run itself."""
    found: set[str] = set()
    for path in paths:
        while "/" in path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]
    return frozenset(found)


_TRACED = ("seq", "path", "kind", "stage", "input_sha256", "output_sha256")
_AFTERWARDS = ("refused", "signal")
"""Lines that may come behind a run's status without its going on."""


def meta_of(news: Iterable[JsonObject]) -> JsonObject:
    """`context.meta` from what each entry added; what was reused has cost nothing."""
    meta: JsonObject = {name: [] for name in ("calls", "violations", "warnings", "events")}
    for added in news:
        for name, lines in added.items():
            meta.setdefault(name, []).extend(lines)  # `embeddings` are there where something was embedded only
    costs = [call["cost"] for call in meta["calls"]]
    tokens = {kind: sum(call["tokens"][kind] for call in meta["calls"]) for kind in ("input", "output", "total")}
    return {"cost": None if None in costs else sum(costs), "tokens": tokens, **meta}


def _state(stages: Iterable[JsonObject], frame: str, arguments: JsonObject) -> JsonObject:
    """Flowing value, arguments and results of one pipeline call after its stages."""
    current: Json = next(iter(arguments.values())) if len(arguments) == 1 else arguments
    data: JsonObject = {}
    for document in stages:
        if document["frame"] != frame or document["kind"] == "item":
            continue
        if "arguments" in document:
            arguments = document["arguments"]
        current = document["current"]
        for name, value in document.get("stored", {}).items():
            namespace, dot, method = name.partition(".")
            if dot and isinstance(data.setdefault(namespace, {}), dict):
                data[namespace][method] = value
            else:
                data[name] = value
    return {"current": current, "input": arguments, "data": data}


def _expiry(question: Interrupt) -> JsonObject:
    return {
        "type": "InterruptExpired",
        "message": f"{question.message!r} was not answered by {question.expires_at}",
        "stage": question.stage,
        "file": None,
        "line": None,
        "column": None,
    }
