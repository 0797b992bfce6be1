"""What continuing a run with the program as it is now would reuse, run anew and pay again (spec 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final, Literal, TypeAlias

from halo_lang.nodes import Call
from halo_lang.records import record
from halo_runtime.engine.budgets import charges
from halo_runtime.engine.execution import Order
from halo_runtime.engine.fingerprints import Fingerprints
from halo_runtime.engine.journal import EffectRecord
from halo_runtime.engine.needs import Use
from halo_runtime.engine.plan import Plan, StagePlan
from halo_runtime.engine.reach import Reach, reach_of
from halo_runtime.engine.reuse import Difference, Reuse
from halo_runtime.json_types import JsonObject
from halo_runtime.results import RunResult
from halo_runtime.store.stored import StoredRun

Verdict: TypeAlias = Literal["reused", "edited after use", "re-run", "new", "gone", "question orphaned"]
"""`re-run`: it is what it was and runs again, because something before it does."""

_QUESTIONS: Final = ("yield", "listen")


@record
class StageVerdict:
    """One stage of the pipeline. `seq` is its entry in the old trace, `cost` in USD what its calls cost then.

    `taken` is how much of that is not paid again: of a stage that was not ended, or is edited further in, a part.
    """

    seq: int | None
    stage: str
    line: int | None
    verdict: Verdict
    reason: str
    cost: float | None
    taken: float | None = 0.0


@record
class Preflight:
    """A verdict a stage. `saved` and `again` in USD: what is not paid again and what is; None where it is unknown."""

    stages: tuple[StageVerdict, ...]
    saved: float | None
    again: float | None
    reused: tuple[str, ...] = ()
    """Structural paths of the stage executions that are reused, nested ones too."""
    taken: tuple[str, ...] = ()
    """Structural paths of the effects that are taken from the old journal."""

    def to_json(self) -> JsonObject:
        """The shape of spec 12.6."""
        names = ("seq", "stage", "line", "verdict", "reason", "cost")
        stages = [{name: getattr(stage, name) for name in names} for stage in self.stages]
        return {"stages": stages, "saved": self.saved, "again": self.again}


@record
class Walked:
    """How far a journal carries a program: what came of it, and the calls that were still to be done."""

    result: RunResult
    unfinished: tuple[Call, ...]

    def left(self, plan: Plan) -> Reach:
        """What is needed to do them."""
        return reach_of(plan.program, self.unfinished)


class Rehearsal:
    """A program walked against the journal of a run that it is to continue. `at` is the entry gone back to."""

    def __init__(
        self, stored: StoredRun, plan: Plan, order: Order, reuse: Reuse, walked: Walked, at: int | None
    ) -> None:
        self.order = replace(order, spent=tuple(charges(order.journal)))
        self.left = walked.left(plan)
        self.difference: Difference | None = reuse.difference
        self._stored = stored
        self._plan = plan
        self._reuse = reuse
        self._walked = walked
        self._at = at

    @property
    def is_whole(self) -> bool:
        """Whether the run is over and would come out as it did, so that there is nothing to do."""
        ended = self._stored.status == "completed" and self._walked.result.status == "completed"
        return ended and self._at is None and self.difference is None

    @property
    def reached(self) -> int:
        """The last entry of the old trace up to which the new run is the same."""
        stages = self._reuse.past.stages
        return max((stages[path] for path in self._reuse.reused if path in stages), default=0)

    @cached_property
    def preflight(self) -> Preflight:
        """The verdicts."""
        stages = tuple(self._verdicts())
        return Preflight(
            stages,
            saved=_total(stage.taken for stage in stages),
            again=_total(_left(stage) for stage in stages if stage.verdict in ("edited after use", "re-run")),
            reused=tuple(self._reuse.reused),
            taken=tuple(entry.path for entry in self.order.journal if entry.reused),
        )

    def _verdicts(self) -> Iterator[StageVerdict]:
        name = self.order.pipeline
        before = self._reuse.past.fingerprints
        now = Fingerprints(self._plan)
        for tag, olds, news in _aligned(before.all(name), now.all(name)):
            if tag == "equal":
                for old, new in zip(olds, news, strict=True):
                    yield self._paired(old, new, changed=False, reason=None)
            else:
                yield from self._edited(olds, news, now)

    def _edited(self, olds: range, news: range, now: Fingerprints) -> Iterator[StageVerdict]:
        """Verdicts where the programs differ: stages that are called alike are versions of each other."""
        name, before = self.order.pipeline, self._reuse.past.fingerprints
        labels = [stage.info.label for stage in before.stages(name)]
        alike = _aligned([labels[old] for old in olds], [self._stages[new].info.label for new in news])
        for tag, there, here in alike:
            pairs = list(zip(olds[there.start : there.stop], news[here.start : here.stop], strict=False))
            if tag == "replace" and any(self._asks(old) != (self._kind(new) in _QUESTIONS) for old, new in pairs):
                pairs = []
            for old, new in pairs:
                reason = now.difference(before, name, new) if old == new else None
                yield self._paired(old, new, changed=True, reason=reason)
            yield from (self._new(new) for new in news[here.start + len(pairs) : here.stop])
            rest = olds[there.start + len(pairs) : there.stop]
            yield from (gone for old in rest if (gone := self._gone(old)) is not None)

    def _asks(self, old: int) -> bool:
        return self._reuse.past.fingerprints.stages(self.order.pipeline)[old].info.kind in _QUESTIONS

    def _kind(self, new: int) -> str:
        return self._stages[new].info.kind

    def _paired(self, old: int, new: int, *, changed: bool, reason: str | None) -> StageVerdict:
        entries = self._entries(old)
        if not entries and not self._was_begun(old):
            return self._new(new)
        path = f"{self.order.pipeline}/{new}"
        inner = self.difference if self.difference and self.difference.path.startswith(f"{path}/") else None
        if changed or inner is not None:
            why = str(inner) if inner is not None else reason or "it was edited"
            return self._verdict(new, "edited after use", why, old)
        if entries and all(entry["path"] in self._reuse.reused for entry in entries):
            return self._verdict(new, "reused", "nothing that it rests on changed", old)
        return self._verdict(new, "re-run", self._why_again(path), old)

    def _why_again(self, path: str) -> str:
        if self.difference is not None and self.difference.path.partition("#")[0] == path:
            return self.difference.reason
        if self.difference is not None:
            return f"it comes after stage {self.difference.index + 1}, which differs"
        return "it did not come to its end" if self._at is None else f"it comes after entry {self._at}"

    def _new(self, index: int) -> StageVerdict:
        return self._verdict(index, "new", "the run has not been there", None)

    def _gone(self, index: int) -> StageVerdict | None:
        """A stage that the program no longer has; None where the run had not come to it."""
        entries = self._entries(index)
        if not entries and not self._was_begun(index):
            return None
        old = self._reuse.past.fingerprints.stages(self.order.pipeline)[index].info
        orphaned = self._asks(index)
        reason = "its question was asked and is asked no more" if orphaned else "the program no longer has it"
        verdict: Verdict = "question orphaned" if orphaned else "gone"
        return StageVerdict(_last(entries), old.label, None, verdict, reason, self._cost(index))

    def _verdict(self, index: int, verdict: Verdict, reason: str, old: int | None) -> StageVerdict:
        info = self._stages[index].info
        seq = None if old is None else _last(self._entries(old))
        cost = 0.0 if old is None else self._cost(old)
        taken = cost if verdict == "reused" else self._taken(index)
        return StageVerdict(seq, info.label, info.place.line, verdict, reason, cost, taken)

    @property
    def _stages(self) -> tuple[StagePlan, ...]:
        return self._plan.pipeline(self.order.pipeline).stages

    def _entries(self, index: int) -> list[JsonObject]:
        """The old trace's entries of a stage of the pipeline itself, one for each time it ran."""
        path = f"{self.order.pipeline}/{index}"
        return [document for document in self._stored.stages if document["path"].partition("#")[0] == path]

    def _was_begun(self, index: int) -> bool:
        """Whether the old run has begun a stage, and perhaps not ended it."""
        paths = tuple(f"{self.order.pipeline}/{index}{mark}" for mark in "/#")
        open_now = (question.path for question in self._stored.interrupts)
        known = (entry.path for entry in self._stored.records)
        return any(path.startswith(paths) for group in (known, open_now) for path in group)

    def _cost(self, index: int) -> float | None:
        """What a stage's calls cost, those of pipelines nested in it included.

        Of times that it has not ended the trace knows nothing yet, or a part; there the journal's records tell.
        """
        ended = {entry["path"] for entry in self._entries(index)}
        stages = (document for document in self._stored.stages if _outermost(document["path"]) in ended)
        calls = [call["cost"] for document in stages for call in document.get("news", {}).get("calls", ())]
        place = f"{self.order.pipeline}/{index}"
        open_ = (entry for entry in self._stored.records if _outermost(entry.path) not in ended)
        return _total([*calls, *_spent_in(place, open_)])

    def _taken(self, index: int) -> float | None:
        """What the calls cost that a stage takes from the old journal."""
        taken = (entry for entry in self.order.journal if entry.reused)
        return _total(_spent_in(f"{self.order.pipeline}/{index}", taken))


def _outermost(path: str) -> str:
    """The time that a stage of the pipeline itself ran, around what stands at a path."""
    return "/".join(path.split("/", 2)[:2])


def _spent_in(place: str, records: Iterable[EffectRecord]) -> Iterator[float | None]:
    """What each of the calls at a stage has cost, all times that it ran."""
    for charge in charges(entry for entry in records if _outermost(entry.path).partition("#")[0] == place):
        usd = Use.from_json(charge).usd
        yield None if usd is None else float(usd)


def _left(stage: StageVerdict) -> float | None:
    """What of a stage's cost is paid again."""
    return None if stage.cost is None or stage.taken is None else max(0.0, stage.cost - stage.taken)


def _aligned(before: list[str], now: list[str]) -> Iterator[tuple[str, range, range]]:
    """Where two lists are equal, and where they differ: the places in both, in order."""
    for tag, *places in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        yield tag, range(places[0], places[1]), range(places[2], places[3])


def _last(entries: list[JsonObject]) -> int | None:
    return entries[-1]["seq"] if entries else None


def _total(costs: Iterable[float | None]) -> float | None:
    """The sum; None where a part is unknown."""
    known = list(costs)
    return None if any(cost is None for cost in known) else sum(cost for cost in known if cost is not None)
