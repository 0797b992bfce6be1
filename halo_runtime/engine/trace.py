"""The hash chain over a run's stages (spec 2.7, 12.6): who holds the head hash can prove the whole list.

Entry 0 binds program, pipeline and input; then one entry a stage execution in structural order; a terminal entry with
the status ends a finished run. `hash = SHA-256(prev as 32 bytes ‖ RFC 8785 JSON of the entry without prev and hash)`.
No clock and no run id is in it: the same program, input and replies give the same hashes on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.values import canonical

GENESIS = bytes(32)
"""What the first entry chains to."""

Verdict: TypeAlias = Literal["valid", "open", "cut", "broken"]


class Chain:
    """A growing chain. Entries are kept as small tuples; `to_json` gives them their public shape."""

    def __init__(self, program_sha256: str, pipeline: str, input_sha256: str) -> None:
        self._head = GENESIS
        self._entries: list[tuple[JsonObject | tuple[str, str, str, str, str], str]] = []
        self._add(
            {
                "seq": 0,
                "kind": "start",
                "path": pipeline,
                "stage": pipeline,
                "program_sha256": program_sha256,
                "input_sha256": input_sha256,
            }
        )

    @property
    def length(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    def append(self, path: str, kind: str, label: str, input_sha256: str, output_sha256: str) -> str:
        """Add a stage execution and give its hash. `label` is the stage's text as a JSON string, quotes included."""
        # Written out for speed: this is `canonical` of the entry (tests hold the two together). Paths and kinds hold
        # nothing that JSON escapes.
        rest = (
            f'{{"input_sha256":"{input_sha256}","kind":"{kind}","output_sha256":"{output_sha256}",'
            f'"path":"{path}","seq":{len(self._entries)},"stage":{label}}}'
        )
        digest = sha256(self._head + rest.encode())
        self._head = digest.digest()
        shown = digest.hexdigest()
        self._entries.append(((path, kind, label, input_sha256, output_sha256), shown))
        return shown

    def finish(self, pipeline: str, status: str, output_sha256: str) -> None:
        """Add the terminal entry; nothing may follow."""
        self._add(
            {
                "seq": len(self._entries),
                "kind": "end",
                "path": pipeline,
                "stage": pipeline,
                "status": status,
                "entries": len(self._entries) + 1,
                "output_sha256": output_sha256,
            }
        )

    def _add(self, rest: JsonObject) -> None:
        digest = sha256(self._head + canonical(rest))
        self._head = digest.digest()
        self._entries.append((rest, digest.hexdigest()))

    def to_json(self) -> list[JsonObject]:
        """All entries as `{seq, path, kind, stage, …, prev, hash}`."""
        entries: list[JsonObject] = []
        previous = GENESIS.hex()
        for seq, (content, digest) in enumerate(self._entries):
            rest = content if isinstance(content, dict) else _stage_entry(seq, content)
            entries.append({**rest, "prev": previous, "hash": digest})
            previous = digest
        return entries


def label_text(label: str) -> str:
    """A stage's text from its JSON string; most hold nothing that JSON escapes."""
    return json.loads(label) if "\\" in label else label[1:-1]


def _stage_entry(seq: int, content: tuple[str, str, str, str, str]) -> JsonObject:
    path, kind, label, input_sha256, output_sha256 = content
    return {
        "seq": seq,
        "path": path,
        "kind": kind,
        "stage": label_text(label),
        "input_sha256": input_sha256,
        "output_sha256": output_sha256,
    }


@record
class TraceVerdict:
    """What `verify_trace` found. `at` is the first broken or missing entry's number."""

    status: Verdict
    entries: int
    head: str | None
    at: int | None = None
    reason: str | None = None

    def __bool__(self) -> bool:
        """True for a chain that is whole and ended."""
        return self.status == "valid"

    def __str__(self) -> str:
        return self.status if self.at is None else f"{self.status} at {self.at}"


def verify_trace(trace: Sequence[Json], *, head: str | None = None) -> TraceVerdict:
    """Check a chain: `valid` when whole and ended, `open` when whole but without its end, `broken` at an entry that
    was changed, swapped or renumbered, `cut` where the tail is missing.

    `head` is the last hash as kept elsewhere (the result, the run index); with it a cut-off tail is told from a run
    that still goes on. Never raises: anything that is no trace is broken.
    """
    previous = GENESIS
    ended = False
    for number, entry in enumerate(trace):
        reason = "it stands after the end" if ended else _flaw(entry, number, previous)
        if reason:
            return TraceVerdict("broken", len(trace), None, number, reason)
        previous = bytes.fromhex(entry["hash"])
        ended = entry["kind"] == "end"
    if not trace:
        return TraceVerdict("cut", 0, None, 0, "there is no entry")
    last = trace[-1]["hash"]
    if ended and trace[-1].get("entries") != len(trace):
        return TraceVerdict("broken", len(trace), last, len(trace) - 1, "the terminal entry counts other entries")
    if head is not None and head != last:
        return TraceVerdict("cut", len(trace), last, len(trace), "the head hash kept elsewhere is another one")
    return TraceVerdict("valid" if ended else "open", len(trace), last)


def _flaw(entry: Json, number: int, previous: bytes) -> str | None:
    """Why an entry does not continue the chain, or None."""
    if not is_object(entry) or not isinstance(entry.get("hash"), str):
        return "it is no entry"
    rest: JsonObject = {key: value for key, value in entry.items() if key not in ("prev", "hash")}
    if rest.get("seq") != number or isinstance(rest.get("seq"), bool):
        return f"its number is not {number}"
    if (rest.get("kind") == "start") != (number == 0):
        return "a trace begins with its start entry, and only there"
    if entry.get("prev") != previous.hex():
        return "it does not follow from the entry before"
    if sha256(previous + canonical(rest)).hexdigest() != entry["hash"]:
        return "its content does not match its hash"
    return None
