"""Finding personal data and secrets in texts (spec 6): what `Redact(…)`, `Block(PII)` and `Block(Secrets)` look for.

Pure functions in linear time. Each kind of thing has a detector that looks at one view of a text; `find` lets them look
at all views and traces what they find to the raw text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Final

from halo_lang.records import record
from halo_runtime.policies.base import Finding
from halo_runtime.policies.detection.base import Detector
from halo_runtime.policies.detection.sight import sights
from halo_runtime.policies.views import View, views_of


@record
class Kind:
    """What a rule calls a kind of thing: the name of its placeholders, and where its detector is.

    `reversible`: a value may be put back, and kept for that. `numeric`: it has seven digits at least, close together.
    """

    name: str
    detector: str
    reversible: bool = True
    numeric: bool = False
    needs_models: bool = False


_DIGITS: Final = re.compile(r"\d(?:\W{0,4}\d){6}")
_HERE: Final = "halo_runtime.policies.detection"
KINDS: Final = {
    "Secrets": Kind("SECRET", f"{_HERE}.secrets:secrets", reversible=False),
    "Email": Kind("EMAIL", f"{_HERE}.emails:emails"),
    "IBAN": Kind("IBAN", f"{_HERE}.numbers:ibans", numeric=True),
    "CreditCard": Kind("CREDIT_CARD", f"{_HERE}.numbers:cards", numeric=True),
    "SSN": Kind("SSN", f"{_HERE}.numbers:ssns", numeric=True),
    "IP": Kind("IP", f"{_HERE}.addresses:addresses"),
    "Phone": Kind("PHONE", f"{_HERE}.phones:phones", numeric=True),
    "Name": Kind("NAME", f"{_HERE}.ner:names", needs_models=True),
    "Address": Kind("ADDRESS", f"{_HERE}.ner:places", needs_models=True),
}
"""The kinds by the names that rules have for them; of two that find the same place the first counts."""

PERSONAL: Final = ("Email", "IBAN", "CreditCard", "SSN", "IP", "Phone")
"""What `PII` stands for: the kinds that need no models."""


def expanded(kinds: Iterable[str]) -> tuple[str, ...]:
    """Kinds as a rule names them, in the order of `KINDS`, `PII` as what it stands for."""
    named = set(kinds)
    if "PII" in named:
        named |= set(PERSONAL)
    return tuple(name for name in KINDS if name in named)


@lru_cache(maxsize=256)
def find(text: str, kinds: tuple[str, ...]) -> tuple[Finding, ...]:
    """All that is found of some kinds, in offsets of the text. They may overlap.

    It is kept for a while: rules look at a text, and so do those that keep it out of journals and events.
    """
    views = views_of(text)
    seen = tuple(sights(views))
    numeric = [view for view in seen if _DIGITS.search(view.text)]
    found: list[Finding] = []
    for name in kinds:
        kind, detect = KINDS[name], _detector(name)
        there: dict[tuple[int, int], Finding] = {}
        for view in reversed(numeric if kind.numeric else seen):  # what stands in clear has the value that counts
            _look(view, views.decoded, kind, detect, there)
        found += there.values()
    return tuple(found)


def _look(view: View, clear: View, kind: Kind, detect: Detector, there: dict[tuple[int, int], Finding]) -> None:
    """Add what is found in one view to what was found in those that are clearer."""
    known: Sequence[tuple[int, int]] | None = None
    for match in detect(view.text):
        start, end = view.raw_span(match.start, match.end)
        if (start, end) in there:
            continue
        if view is not clear:
            known = sorted(there) if known is None else known
            if _is_misread(start, end, clear, known):
                continue
        shown = " ".join(view.text[match.start : match.end].split())
        there[(start, end)] = Finding(kind.name, start, end, match.value, shown, kind.reversible)


def _is_misread(start: int, end: int, clear: View, known: Sequence[tuple[int, int]]) -> bool:
    """Whether a place cuts something encoded in two (`nann@…` of `\\nann@…`) that is read rightly elsewhere."""
    place = bisect_right(known, (start, end))
    overlaps = any(one[0] < end and start < one[1] for one in known[max(0, place - 2) : place + 2])
    return overlaps and _is_inside(clear.starts, start)


def _is_inside(starts: Sequence[int], place: int) -> bool:
    """Whether a raw offset is none where a character of a view begins."""
    at = bisect_left(starts, place)
    return at == len(starts) or starts[at] != place


_loaded: dict[str, Detector] = {}


def _detector(name: str) -> Detector:
    """A kind's detector, imported when it is first needed."""
    if name not in _loaded:
        module, _, function = KINDS[name].detector.partition(":")
        _loaded[name] = getattr(import_module(module), function)
    return _loaded[name]


def require(kinds: Iterable[str]) -> None:
    """Raises ConfigError with what to install for kinds that cannot be looked for here."""
    for name in kinds:
        if KINDS[name].needs_models:
            from halo_runtime.policies.detection.ner import require as require_models

            require_models(name)
