"""Whether a journal is what its run wrote: its lines, its trace, and the seal that the run left elsewhere."""

from __future__ import annotations

from typing import Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.engine.trace import verify_trace
from halo_runtime.json_types import JsonObject
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.stored import StoredRun

Status: TypeAlias = Literal["valid", "open", "torn", "cut", "broken"]


@record
class JournalVerdict:
    """What was found. `at` is the first entry of the trace that is missing or not what was written."""

    status: Status
    entries: int
    head: str | None
    at: int | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return self.status if self.at is None else f"{self.status} at {self.at}"

    def to_json(self) -> JsonObject:
        """The shape of spec 12.6."""
        return {
            "status": str(self),
            "entries": self.entries,
            "head": self.head,
            "brokenAt": self.at,
            "reason": self.reason,
        }


def verify_journal(store: FileRunStore, reference: str) -> JournalVerdict:
    """Check a run's journal as far as it can be read. Raises UnknownRun, StoreError for what is no journal."""
    path, reading = store.read(reference)
    if not reading.documents:
        return JournalVerdict("broken", 0, None, 0, f"line 1: {reading.reason or 'it is not whole'}")
    stored = StoredRun(path, reading)
    trace = stored.trace
    last = trace[-1]["hash"]
    if reading.broken_line is not None:
        reason = f"line {reading.broken_line}: {reading.reason}"
        return JournalVerdict("broken", len(trace), last, len(trace), reason)
    chain = verify_trace(trace)
    if chain.status in ("broken", "cut"):
        return JournalVerdict("broken", len(trace), chain.head, chain.at, chain.reason)
    if reading.torn:
        return JournalVerdict("torn", len(trace), last, None, "half a line stands at its end; it is left out")
    seal = store.seal(stored.run_id)
    if seal is not None and _is_cut(stored, seal.entries, seal.last_sum, seal.status):
        reason = f"the run wrote {seal.entries} entries and was {seal.status}"
        return JournalVerdict("cut", len(trace), last, len(trace), reason)
    return JournalVerdict("valid" if chain.status == "valid" else "open", len(trace), last)


def _is_cut(stored: StoredRun, entries: int, last_sum: str, status: str) -> bool:
    """Whether something that the run had written when it stopped is missing now."""
    if status in ("completed", "halted", "failed") and stored.closing is None:
        return True
    return len(stored.trace) < entries or last_sum not in stored.sums
