"""What was redacted in a run, and the placeholders that stand for it (spec 6): `[EMAIL_1]`, `[CREDIT_CARD_2]`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from halo_runtime.policies.base import Finding

_PLACEHOLDER: Final = re.compile(r"\[([A-Z][A-Z_]*)_([1-9][0-9]*)\]")


class Vault:
    """The values of one run by placeholder. The same value has the same placeholder; each kind counts for itself."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._placeholders: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def placeholder(self, kind: str, value: str, shown: str) -> str:
        """The placeholder of a value; `shown` is how it was written where it was found first."""
        found = self._placeholders.get((kind, value))
        if found is None:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            found = self._placeholders[(kind, value)] = f"[{kind}_{self._counts[kind]}]"
            self._values[found] = shown
        return found

    def redacted(self, text: str, findings: Iterable[Finding]) -> str:
        """The text with a placeholder in the place of each finding; of those that overlap the longest counts."""
        parts: list[str] = []
        at = 0
        for finding in _apart(findings):
            parts += (
                text[at : finding.start],
                self.placeholder(finding.kind, finding.value, text[finding.start : finding.end]),
            )
            at = finding.end
        return "".join((*parts, text[at:]))

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self._values)

    def restored(self, text: str, size: int) -> str:
        """The text with the first `size` values back in the place of their placeholders; others stay.

        What a model writes that no input had is redacted for good: nobody meant it to be there.
        """
        values = dict(islice(self._values.items(), size))
        return _PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), text)


def _apart(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that do not overlap, in the text's order: the longest of those that do."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda one: (one.start - one.end, one.start)):
        if all(finding.end <= other.start or other.end <= finding.start for other in kept):
            kept.append(finding)
    return sorted(kept, key=lambda one: one.start)
