"""What a run takes from the run that it continues, with the program as it is now (spec 3.2).

The new run walks its own program. While every stage it comes to is made as it was and gets what it got, results are
taken from the old journal; from the first stage that differs nothing is. Items and arms of one block do not come after
each other, so each is taken as far as it is as it was. Only what is not taken costs anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from halo_lang.records import record
from halo_runtime.engine.approvals import APPROVE, approves
from halo_runtime.engine.journal import TIMEOUT, EffectKind, EffectRecord, is_of_limit
from halo_runtime.json_types import MISSING, Json, Missing

if TYPE_CHECKING:
    from halo_runtime.engine.fingerprints import Fingerprints
    from halo_runtime.engine.plan import StagePlan

_ANSWERS: Final = ("human", "event")
_ITEM: Final = re.compile(r"item\d+")
_Tree: TypeAlias = "dict[str, _Tree]"
"""Paths by their names, the outermost first; an end is a stage that differs."""
_BESIDE: Final = re.compile(r"(item|arm)\d+")
_STAGE: Final = re.compile(r"\d+(#\d+)?|item\d+|arm\d+")
_REPEATED: Final = ("PolicyViolation", "StepLimitError", "SchemaValidationError")
"""Failures that come of what a model said: the same reply would fail again, so it is asked anew."""


@record
class Past:
    """A run that is continued: its records, and the stages that it ended, by path, with their place in the trace.

    `inputs` are the hashes of what flowed into them, `begun` the effects that had begun and have no end. `failed_at` is
    the path of the stage that failed, if one did, `error` the name of its error.
    """

    run_id: str
    records: tuple[EffectRecord, ...]
    stages: dict[str, int]
    inputs: dict[str, str]
    fingerprints: Fingerprints
    begun: frozenset[str] = frozenset()
    completed: bool = False
    failed_at: str | None = None
    error: str | None = None


@record
class Difference:
    """Where a program first differs from the one that a run was made by. `index` counts from 0."""

    path: str
    pipeline: str
    index: int
    label: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"stage {self.index + 1} of {self.pipeline}, `{self.label}` (line {self.line}): {self.reason}"


class Reuse:
    """Decides, effect by effect as the new run walks, what may be taken.

    `at` is the entry of the old trace to go back to, None for its end. `reuse_answers`: questions behind the point
    gone back to, or changed, are not asked anew. `taken` is told of each record that is taken.
    """

    def __init__(
        self,
        past: Past,
        fingerprints: Fingerprints,
        *,
        at: int | None = None,
        reuse_answers: bool = False,
        taken: Callable[[EffectRecord], None] = lambda _: None,
    ) -> None:
        self.past = past
        self.difference: Difference | None = None
        """The first stage that was made otherwise, or got something else, where the old run had been already."""
        self.reused: list[str] = []
        """Paths of stages that came out as they had, nothing done anew."""
        self._fingerprints = fingerprints
        self._at = at
        self._differing: _Tree = {}
        self._reuse_answers = reuse_answers
        self._taken = taken
        self._entered: dict[str, tuple[str, StagePlan]] = {}
        # What was said about a budget holds for the run that it was said to.
        kept = (record for record in _worth_keeping(past) if not is_of_limit(record.path))
        self.records = tuple(record for record in kept if self._reaches(record.path))
        self._by_path = {record.path: record for record in self.records}
        self._asked = {record.path: record for record in past.records if record.kind in _ANSWERS}

    # --- stages -------------------------------------------------------------------------------------------------

    def enter(self, path: str, pipeline: str, stage: StagePlan, input_sha256: str) -> None:
        """A stage begins: see whether it is what it was."""
        if self._is_over(path):
            return
        self._entered[path] = (pipeline, stage)
        index = stage.info.index
        now, before = self._fingerprints.stage(pipeline, index), self.past.fingerprints.stage(pipeline, index)
        reason = None
        if now != before:
            reason = self._fingerprints.difference(self.past.fingerprints, pipeline, index) or "it is another stage"
        elif path in self.past.inputs and self.past.inputs[path] != input_sha256:
            reason = "another value flows into it"
        if reason is not None:
            self._stop(path, reason)

    def leave(self, path: str) -> None:
        """A stage has ended."""
        if not self._is_over(path) and self._reaches(path):
            self.reused.append(path)

    def _stop(self, path: str, reason: str) -> None:
        """Nothing is taken from here on. What the old run had not come to may change freely."""
        node = self._differing
        for name in path.split("/"):
            node = node.setdefault(name, {})
        node.clear()
        pipeline, stage = self._entered[path]
        used = path in self.past.stages or any(_is_inside(record.path, path) for record in self.records)
        if used and self.difference is None:
            info = stage.info
            self.difference = Difference(path, pipeline, info.index, info.label, info.place.line, reason)

    # --- effects ------------------------------------------------------------------------------------------------

    def take(self, path: str, kind: EffectKind, asked: str) -> EffectRecord | None:
        """The old record of an effect that is asked for in the same way; None where it must be done."""
        found = self._by_path.get(path)
        if found is None or self._is_over(path):
            return self._answer_again(path, asked) if kind in _ANSWERS else None
        if found.kind != kind or found.request_sha256 != asked:
            self._stop(self._stage_around(path), "what it asks for changed")
            return None
        self._taken(found)
        return found

    def has(self, path: str) -> bool:
        """Whether there is an old record of an effect that has not been come to, which may fit or not."""
        return path in self._by_path and not self._is_over(path)

    def done_anew(self, path: str) -> None:
        """The new run has an effect of its own at a path: it was not taken, so nothing after it is."""
        if path in self._by_path and not self._is_over(path):
            self._stop(self._stage_around(path), "what it asks for changed")

    def in_doubt(self, path: str) -> bool:
        """Whether an effect of the same stage had begun in the old run, and nothing is known of its end."""
        return path in self.past.begun and not self._is_over(path) and self._reaches(path)

    def former(self, path: str) -> Json | Missing:
        """The answer that the question at a path had in the old run."""
        found = self._asked.get(path)
        return MISSING if found is None or found.outcome != "done" else found.result

    def _is_over(self, path: str) -> bool:
        """Whether something at a path comes after a stage that differs, or is in it.

        Items and arms of one block come after none of each other. Takes as long as the path is deep: each of many
        items may differ.
        """
        if not self._differing:
            return False
        node = self._differing
        for name in path.split("/"):
            if not node:
                return True
            if name not in node or len(node) > 1:
                beside = _BESIDE.fullmatch(name) and _BESIDE.fullmatch(next(iter(node)))
                if name not in node or not beside:
                    return not beside
            node = node[name]
        return True

    def _stage_around(self, path: str) -> str:
        return next(place for place in _places_around(path) if place in self._entered)

    def _answer_again(self, path: str, asked: str) -> EffectRecord | None:
        found = self._asked.get(path) if self._reuse_answers else None
        return found if found is not None and found.outcome == "done" and found.request_sha256 == asked else None

    def _reaches(self, path: str) -> bool:
        """Whether something at a path stands before the point gone back to."""
        if self._at is None:
            return True
        ended = next((place for place in _places_around(path) if place in self.past.stages), None)
        return ended is not None and self.past.stages[ended] <= self._at


def _worth_keeping(past: Past) -> tuple[EffectRecord, ...]:
    """The records that a new run may take: what failed, was refused, cancelled or came too late is done anew."""
    if past.completed:
        return past.records
    unfinished = _unfinished(past)
    over = [entry for entry in past.records if not (entry.was_refused or entry.path.endswith(TIMEOUT))]
    kept = [entry for entry in over if entry.path not in unfinished]
    kept = [entry for entry in kept if not _lets_pass(entry) or _ended(entry.path, past) or _was_made(entry, kept)]
    paths = {record.path for record in kept}
    # A question without an answer is asked anew, and its time begins anew.
    return tuple(r for r in kept if not r.path.endswith("/asked") or r.path.removesuffix("/asked") in paths)


def _lets_pass(entry: EffectRecord) -> bool:
    """Whether a person has let a call of a tool be made; that was said of the call there, and of none made anew."""
    return entry.path.endswith(APPROVE) and entry.kind == "human" and approves(entry.result)


def _was_made(approval: EffectRecord, kept: Sequence[EffectRecord]) -> bool:
    """Whether the call that was let pass is among what may be taken, so that it is not made anew."""
    place = approval.path.removesuffix(APPROVE)
    made = (entry.path for entry in kept if entry.kind == "tool" and entry.outcome == "done")
    return any(path == place or _is_inside(path, place) for path in made)


def _unfinished(past: Past) -> set[str]:
    """Paths of records that belong to work that did not come to its end."""
    drop = {record.path for record in past.records if record.outcome == "cancelled"}
    by_stage: dict[str, list[EffectRecord]] = {}
    for entry in past.records:
        if entry.outcome != "cancelled" and not _ended(entry.path, past):
            by_stage.setdefault(_stage_of(entry.path), []).append(entry)
    for records in by_stage.values():
        drop.update(_failing_tail(records))
    if past.error in _REPEATED and past.failed_at is not None:
        drop.update(_last_request(past.records, past.failed_at, drop))
    return drop


def _ended(path: str, past: Past) -> bool:
    """Whether the stage or item around an effect came to its end. A block may end with items that did not."""
    for place in _places_around(path):
        if place in past.stages:
            return True
        if _ITEM.fullmatch(place.rpartition("/")[2]):
            return False
    return False


def _failing_tail(records: list[EffectRecord]) -> set[str]:
    """The tries that failed and were followed by nothing that went well, with the waiting between them."""
    tail: set[str] = set()
    for entry in reversed(records):
        if entry.outcome == "done" and entry.kind not in ("random", "clock"):
            break
        tail.add(entry.path)
    failed = any(entry.outcome == "failed" for entry in records if entry.path in tail)
    return tail if failed else set()


def _last_request(records: Sequence[EffectRecord], inside: str, dropped: set[str]) -> set[str]:
    """The last model request under a path, and all that came of it; nothing where it was a budget that refused it."""
    asked = [entry for entry in records if _is_inside(entry.path, inside)]
    requests = [entry.path for entry in asked if entry.kind == "model" and entry.path not in dropped]
    if not requests or asked[-1].was_refused:
        return set()
    step = requests[-1].rpartition("/")[0]
    return {entry.path for entry in records if entry.path.startswith(f"{step}/")}


def _stage_of(path: str) -> str:
    """The path of the innermost stage, arm or item that an effect belongs to.

    Stages are numbered (`Main/2`, `Main/2#1`); arms and items of a block stand below their stage.
    """
    return next((place for place in _places_around(path) if _STAGE.fullmatch(place.rpartition("/")[2])), path)


def _places_around(path: str) -> Iterator[str]:
    """The path itself and all that stand around it, the innermost first."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _is_inside(path: str, outer: str) -> bool:
    return path.startswith(f"{outer}/")
