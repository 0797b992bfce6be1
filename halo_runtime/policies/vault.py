"""What was redacted in a run, and the placeholders that stand for it (spec 6): `[EMAIL_1]`, `[CREDIT_CARD_2]`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Final

from halo_lang.records import record
from halo_runtime.policies.base import Finding

_BEFORE_NUMBER: Final = re.compile(r"[:\[,]\s*\Z")
_AFTER_NUMBER: Final = re.compile(r"\s*[,}\]]")


@record
class Kept:
    """A value of the vault as it is put back, and the kind of thing it is."""

    kind: str
    shown: str


class Vault:
    """The values of one run by placeholder. The same value has the same placeholder; each kind counts for itself."""

    def __init__(self) -> None:
        self._values: dict[str, Kept] = {}
        self._placeholders: dict[tuple[str, str], str] = {}
        self._adopted: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def placeholder(self, finding: Finding, text: str) -> str:
        """The placeholder of what was found in a text."""
        key = (finding.kind, finding.value)
        found = self._placeholders.get(key)
        if found is None:
            found = self._placeholders[key] = self._next(finding.kind)
            if finding.reversible:
                self._values[found] = Kept(finding.kind, finding.shown or text[finding.start : finding.end])
        return found

    def _next(self, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"[{kind}_{self._counts[kind]}]"

    def redacted(self, text: str, findings: Iterable[Finding], forged: Collection[str] = ()) -> str:
        """The text with a placeholder in the place of each finding; of those that overlap the longest counts.

        In the place of a bare number of JSON it is quoted, so that JSON stays JSON. `forged` are the kinds that will be
        put back: what looks like one of their placeholders in the text does no longer afterwards, as it is nobody's
        that this run knows.
        """
        parts: list[str] = []
        at = 0
        for finding in apart(findings, text):
            told = self.placeholder(finding, text)
            parts += (disguised(text[at : finding.start], forged), f'"{told}"' if _is_number(text, finding) else told)
            at = finding.end
        return "".join((*parts, disguised(text[at:], forged)))

    def adopted(self, text: str, source: str, kinds: Collection[str]) -> str:
        """A text of another run with a placeholder of this one in the place of each of its own, of some kinds.

        What they stand for is not known any more, and no value of this run shall seem to be it. `source` tells which
        run it was: the same placeholder of the same run stays the same.
        """

        def own(found: re.Match[str]) -> str:
            key = (source, found[0])
            if key not in self._adopted:
                self._adopted[key] = self._next(found[1])
            return self._adopted[key]

        return _exact(tuple(sorted(kinds))).sub(own, text) if kinds else text

    @property
    def size(self) -> int:
        """How many values there are to be put back."""
        return len(self._values)

    def restored(self, text: str, size: int, kinds: Collection[str]) -> str:
        """The text with the first `size` values back in the place of their placeholders, of some kinds; others stay.

        What a model writes that no input had is redacted for good: nobody meant it to be there. A placeholder that the
        model has changed a little is known nevertheless: its letters, spaces, a bracket that is missing.
        """
        pattern = _placeholders_of(tuple(sorted(kinds)))
        values = dict(islice(self._values.items(), size))
        is_json = text.lstrip()[:1] in ("{", "[")
        if pattern is None or not values:
            return text

        def value(found: re.Match[str]) -> str:
            kept = values.get(_strict(found))
            if kept is None:
                return found[0]
            return json.dumps(kept.shown, ensure_ascii=False)[1:-1] if is_json else kept.shown

        return pattern.sub(value, text)


def disguised(text: str, kinds: Collection[str]) -> str:
    """The text with what looks like a placeholder of some kinds made to look otherwise: `[EMAIL#1]`."""
    pattern = _placeholders_of(tuple(sorted(kinds)))
    if pattern is None:
        return text
    return pattern.sub(lambda found: f"[{_kind(found)}#{_number(found)}]", text)


@lru_cache(maxsize=64)
def _placeholders_of(kinds: tuple[str, ...]) -> re.Pattern[str] | None:
    r"""Placeholders of some kinds, also as models write them: `[Email 1]`, `<EMAIL_1>`, `EMAIL_1`, `[EMAIL\_1]`.

    Without any bracket only the exact letters are one: `email 1` is ordinary text.
    """
    if not kinds:
        return None
    loose = "|".join(kind.replace("_", r"\\{0,2}[ _-]?") for kind in kinds)
    exact, digits = "|".join(kinds), "[0-9]{1,9}(?![0-9])"
    return re.compile(
        rf"\\{{0,2}}[\[<⟨]\s{{0,2}}(?P<kind>(?i:{loose}))\s{{0,2}}\\{{0,2}}[_\- ]?\s{{0,2}}(?P<number>{digits})"
        r"(?:\s{0,2}\\{0,2}[\]>⟩])?"
        rf"|(?<![\w\[<])(?P<open>(?i:{loose}))\\{{0,2}}_(?P<opened>{digits})\s{{0,2}}\\{{0,2}}[\]>⟩]"
        rf"|(?<![\w\[<])(?P<bare>{exact})_(?P<bared>{digits})(?!\w)"
    )


@lru_cache(maxsize=64)
def _exact(kinds: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\[({'|'.join(kinds)})_[1-9][0-9]{{0,8}}\]")


def _strict(found: re.Match[str]) -> str:
    return f"[{_kind(found)}_{_number(found)}]"


def _kind(found: re.Match[str]) -> str:
    written: str = found["kind"] or found["open"] or found["bare"]
    return re.sub(r"[\\ _-]+", "_", written).upper().replace("CREDITCARD", "CREDIT_CARD")


def _number(found: re.Match[str]) -> int:
    return int(found["number"] or found["opened"] or found["bared"])


def apart(findings: Iterable[Finding], text: str) -> list[Finding]:
    """Findings that do not overlap, in the text's order: the longest of those that do, over all that they cover."""
    joined: list[Finding] = []
    for finding in sorted(findings, key=lambda one: (one.start, -one.end)):
        last = joined[-1] if joined else None
        if last is None or finding.start >= last.end:
            joined.append(finding)
        elif finding.end > last.end:
            longer = last if last.end - last.start >= finding.end - finding.start else finding
            all_of_it = text[last.start : finding.end]
            is_reversible = last.reversible and finding.reversible
            joined[-1] = replace(
                longer, start=last.start, end=finding.end, value=all_of_it, shown=all_of_it, reversible=is_reversible
            )
        elif last.reversible and not finding.reversible:
            joined[-1] = replace(finding, start=last.start, end=last.end, value=text[last.start : last.end])
    return joined


def _is_number(text: str, finding: Finding) -> bool:
    """Whether a finding is a number that JSON has without quotes: `{"card": 4111111111111111}`."""
    if not text[finding.start : finding.end].isdigit() or text.lstrip()[:1] not in ("{", "["):
        return False
    before = text[max(0, finding.start - 20) : finding.start]
    return bool(_BEFORE_NUMBER.search(before) and _AFTER_NUMBER.match(text, finding.end))
