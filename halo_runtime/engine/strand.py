"""What one sequence of stages writes down, and how parallel sequences are put together in structural order.

The root strand feeds the hash chain, and the recorder of a run that is kept, as it goes. Each arm or item that runs
in parallel has a strand of its own, which its block absorbs in item order when it ends, also when it fails, so that
neither trace nor figures depend on who finished first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

from halo_runtime.engine.journal import Recorder, StageEntry, Step
from halo_runtime.engine.needs import Use
from halo_runtime.engine.trace import Chain
from halo_runtime.json_types import JsonObject

STEPS_A_BREATH: Final = 256
"""Stages after which time limits and signals get their turn: a run that waits for nothing would keep them out."""

_LISTS: Final = ("calls", "violations", "warnings", "events", "embeddings")
"""What grows from stage to stage. Shadows do not belong here: their lines change until the run's end."""

_lists: Final[Callable[[Strand], tuple[list[JsonObject], ...]]] = attrgetter(*_LISTS)


class Strand:
    """The records of one sequence. `chain` is the run's hash chain in the root strand, None in the others.

    `recorder` keeps each trace entry; without one nothing but the chain sees them.
    """

    __slots__ = (
        "_chain",
        "_entries",
        "_told",
        "calls",
        "embeddings",
        "events",
        "raises",
        "recorder",
        "shadow",
        "steps",
        "uses",
        "violations",
        "warnings",
    )

    def __init__(self, chain: Chain | None = None, recorder: Recorder | None = None) -> None:
        self._chain = chain
        self.recorder = recorder
        self._entries: list[tuple[str, str, str, str, str, Step | None]] = []
        self._told = [0] * len(_LISTS)
        self.steps = 0
        """Stage executions that have ended, nested ones too; those of parallel sequences count in theirs."""
        self.calls: list[JsonObject] = []
        self.violations: list[JsonObject] = []
        self.shadow: list[JsonObject] = []
        self.warnings: list[JsonObject] = []
        self.events: list[JsonObject] = []
        self.embeddings: list[JsonObject] = []
        self.uses: dict[str, Use] = {}
        """What the calls of each agent that has budgets have used."""
        self.raises: dict[str, int] = {}
        """How often budgets had been raised when the last call began that is held to them."""

    def record(
        self, path: str, kind: str, label: str, input_sha256: str, output_sha256: str, step: Step | None = None
    ) -> None:
        """Write down a stage execution; `label` is the stage's text as a JSON string."""
        self._append(path, kind, label, input_sha256, output_sha256, step)
        if self.recorder is not None:
            self.recorder.settle()

    def _append(
        self, path: str, kind: str, label: str, input_sha256: str, output_sha256: str, step: Step | None
    ) -> None:
        chain = self._chain
        if chain is None:
            self._entries.append((path, kind, label, input_sha256, output_sha256, step))
            return
        digest = chain.append(path, kind, label, input_sha256, output_sha256)
        if step is not None and self.recorder is not None:
            seq = chain.length - 1
            entry = StageEntry(seq, digest, path, kind, label, input_sha256, output_sha256, step)
            self.recorder.stage(entry, self.news())

    def news(self) -> JsonObject:
        """What the lists of `context.meta` have got since this was asked last; empty ones are left out."""
        lengths = [len(lines) for lines in _lists(self)]
        if lengths == self._told:
            return {}  # as after most stages
        told, self._told = self._told, lengths
        parts = zip(_LISTS, _lists(self), told, strict=True)
        return {name: lines[before:] for name, lines, before in parts if len(lines) > before}

    def use(self, agent: str, use: Use) -> None:
        """A call of an agent has used this of its budgets."""
        before = self.uses.get(agent)
        self.uses[agent] = use if before is None else before.plus(use)

    def raised(self, often: Mapping[str, int]) -> None:
        """A call began when budgets had been raised so often."""
        for budget, count in often.items():
            self.raises[budget] = max(count, self.raises.get(budget, 0))

    def absorb(self, child: Strand, *, final: bool = True) -> None:
        """Append what a parallel sequence wrote down.

        Its trace entries only when `final`: a block that pauses is not over, and what its items have done so far
        enters the trace, in item order, when it is. So the trace of a paused run is the beginning of the finished one.
        """
        self.calls += child.calls
        self.violations += child.violations
        self.shadow += child.shadow
        self.warnings += child.warnings
        self.events += child.events
        self.embeddings += child.embeddings
        for agent, use in child.uses.items():
            self.use(agent, use)
        self.raised(child.raises)
        if final:
            for entry in child._entries:
                self._append(*entry)
