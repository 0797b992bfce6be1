"""`Block(PromptInjection)`: texts that attempt to instruct an agent which is only to work on them (spec 6).

A set of rules with scores, for what is sent and for what tools bring; what the program's author wrote is not judged.
"""

from __future__ import annotations

from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule
from halo_runtime.policies.injection.patterns import FAMILIES
from halo_runtime.policies.injection.score import assess

DEFAULT_THRESHOLD: Final = 0.5
_NAMED: Final = 3
"""How many families a reason names."""


@record
class NoInjection:
    """Blocks texts of a score from `threshold` on, and never one that nothing speaks against."""

    threshold: float = DEFAULT_THRESHOLD
    points: frozenset[Point] = frozenset({"input", "result"})

    def evaluate(self, examined: Examined) -> Decision:
        """Judge a text but for the author's words, which no tool brings."""
        written = examined.call.written if examined.point == "input" else ()
        found = assess(examined.text, written)
        if not found.score or found.score < self.threshold:
            return ALLOW
        attempts = " and ".join(FAMILIES[family] for family in found.families[:_NAMED])
        return Decision(
            "block", f"it looks like an attempt {attempts} (score {found.score:.2f}, threshold {self.threshold:.2f})"
        )


def block_injection(kind: str, args: JsonObject) -> PolicyRule:
    """`Block(PromptInjection, threshold: 0.5)`."""
    threshold = args.get("threshold")
    return NoInjection(DEFAULT_THRESHOLD if threshold is None else threshold)
