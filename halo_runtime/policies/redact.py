"""`Redact(…)`, `Block(PII)` and `Block(Secrets)`: personal data and secrets, taken out or refused (spec 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Finding, Point, PolicyRule
from halo_runtime.policies.detection import KINDS, expanded, find, require

_ALL: Final[frozenset[Point]] = frozenset({"input", "output", "tool", "result"})


@record
class Redact:
    """Replaces what it finds by placeholders. `restore` are the kinds of those that the program and tools get back."""

    kinds: tuple[str, ...]
    restore: frozenset[str] = frozenset()
    points: frozenset[Point] = _ALL

    def evaluate(self, examined: Examined) -> Decision:
        """Name all places. Where nothing is found something may be to be restored nevertheless."""
        findings = find(examined.text, self.kinds)
        if not findings:
            return Decision("allow", restore=self.restore)
        return Decision("redact", f"{_counted(findings)} replaced", findings, self.restore)


@record
class BlockFound:
    """Refuses a text that holds something of its kinds."""

    kinds: tuple[str, ...]
    points: frozenset[Point] = _ALL

    def evaluate(self, examined: Examined) -> Decision:
        """Block where anything is found."""
        findings = find(examined.text, self.kinds)
        return Decision("block", f"the text holds {_counted(findings)}") if findings else ALLOW


def redact(args: JsonObject) -> PolicyRule:
    """`Redact(kinds…, restore: false)`. Raises ConfigError for kinds whose models are not installed."""
    kinds = expanded(args["kinds"])
    require(kinds)
    reversible = frozenset(KINDS[kind].name for kind in kinds if KINDS[kind].reversible)
    return Redact(kinds, reversible if args.get("restore") else frozenset())


def redacted_by(rules: Iterable[PolicyRule]) -> frozenset[str]:
    """The kinds of placeholders that rules give."""
    return frozenset(KINDS[kind].name for rule in rules if isinstance(rule, Redact) for kind in rule.kinds)


def block_found(kind: str, args: JsonObject) -> PolicyRule:
    """`Block(PII)`, `Block(Secrets)`: a part of `Block(…)`."""
    return BlockFound(expanded([kind]))


def _counted(findings: Sequence[Finding]) -> str:
    """What was found, without a word of it: `2 × EMAIL, 1 × IBAN`."""
    places = {(finding.start, finding.end): finding.kind for finding in reversed(findings)}
    return ", ".join(f"{count} × {kind}" for kind, count in sorted(Counter(places.values()).items()))
