"""What one sequence of stages writes down, and how parallel sequences are put together in structural order.

The root strand feeds the hash chain as it goes. Each arm or item that runs in parallel has a strand of its own, which
its block absorbs in item order when it ends, also when it fails, so that neither trace nor figures depend on who
finished first.
"""

from __future__ import annotations

from halo_runtime.engine.trace import Chain
from halo_runtime.json_types import JsonObject


class Strand:
    """The records of one sequence. `chain` is the run's hash chain in the root strand, None in the others."""

    __slots__ = ("_chain", "_entries", "calls", "events", "shadow", "violations", "warnings")

    def __init__(self, chain: Chain | None = None) -> None:
        self._chain = chain
        self._entries: list[tuple[str, str, str, str, str]] = []
        self.calls: list[JsonObject] = []
        self.violations: list[JsonObject] = []
        self.shadow: list[JsonObject] = []
        self.warnings: list[JsonObject] = []
        self.events: list[JsonObject] = []

    def record(self, path: str, kind: str, label: str, input_sha256: str, output_sha256: str) -> None:
        """Write down a stage execution; `label` is the stage's text as a JSON string."""
        if self._chain is not None:
            self._chain.append(path, kind, label, input_sha256, output_sha256)
        else:
            self._entries.append((path, kind, label, input_sha256, output_sha256))

    def absorb(self, child: Strand) -> None:
        """Append what a parallel sequence wrote down."""
        for entry in child._entries:
            self.record(*entry)
        self.calls += child.calls
        self.violations += child.violations
        self.shadow += child.shadow
        self.warnings += child.warnings
        self.events += child.events
