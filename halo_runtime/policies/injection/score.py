"""How sure it is that a text attempts to instruct an agent: a score from 0 to 1, and what speaks for it.

Every view of the text is read. Among places close to each other each family counts with its surest one, and the
families together as independent witnesses do: 1 - (1 - a)(1 - b)…; the score is that of the place where most comes
together. Adding paragraphs to a text does not lower its score, so that nothing is hidden by burying it. Linear in the
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Final

from halo_lang.records import record
from halo_runtime.policies.injection.patterns import Pattern, marks, needs, patterns
from halo_runtime.policies.injection.reading import lowered, readings
from halo_runtime.policies.views import views_of

MENTIONED: Final = 0.5
"""What a place counts for that is quoted and spoken about: not enough alone, enough together with others."""
_MENTIONABLE: Final = frozenset({"override", "persona", "extraction"})
_ABOUT = re.compile(
    r"\b(?:phrases?|sentences?|example (?:is|of|for)|for example|e\.g\.|such as|attacks?|injections?"
    r"|jailbreaks?|filters?|known as)\b|beispiel|\bsatz\b|angriff|exemple|ejemplo|\bfrase"
    r"|esempio|exemplo|пример|фраз|例如|例えば",
    re.IGNORECASE,
)
_QUOTES: Final = frozenset("\"'“”„‘’«»「」『』`")
CLOSE: Final = 600
"""Characters within which places count together."""
_NEAR: Final = 90
"""Characters around a quotation in which it is spoken about."""

Span = tuple[int, int]


@record
class Assessment:
    """The score of a text, and the families that it comes from, the surest first."""

    score: float
    families: tuple[str, ...]


NOTHING: Final = Assessment(0, ())


@record
class _Place:
    family: str
    weight: float
    span: Span
    """In the raw text."""


@lru_cache(maxsize=64)
def assess(text: str, written: tuple[str, ...] = ()) -> Assessment:
    """The assessment of a text but for what of it the program's author wrote; kept for a while, as views are."""
    own = _occurrences(text, written)
    places = sorted(
        (place.span[0], place.family, place.weight * (MENTIONED if _is_mentioned(text, place) else 1))
        for place in set(_places(text))
        if not _is_within(place.span, own)
    )
    most = NOTHING
    last: dict[tuple[str, float], int] = {}
    """Where a family was last seen with a weight."""
    previous = None
    for at, family, weight in places:
        last[family, weight] = at
        if (family, weight) != previous:
            most = max(most, _together(last, at - CLOSE), key=lambda assessment: assessment.score)
        previous = family, weight
    return most


def _together(last: dict[tuple[str, float], int], since: int) -> Assessment:
    """What the places from `since` on say."""
    surest: dict[str, float] = {}
    for (family, weight), at in last.items():
        if at >= since:
            surest[family] = max(weight, surest.get(family, 0))
    score = round(1 - prod(1 - weight for weight in surest.values()), 4)
    return Assessment(score, tuple(sorted(surest, key=lambda family: (-surest[family], family))))


def _places(text: str) -> Iterator[_Place]:
    """All places that speak for an attempt, in all views."""
    for view in views_of(text):
        lower = lowered(view.text)
        for reading in readings(lower):
            for pattern in _possible(frozenset(reading.classes)):
                for found in pattern.expression.finditer(reading.classes):
                    start, end = _extent(reading.starts, reading.ends, found)
                    yield _Place(pattern.family, pattern.weight, view.raw_span(start, end))
        for mark in marks():
            if any(hint in lower for hint in mark.hints):
                for found in mark.expression.finditer(lower):
                    yield _Place(mark.family, mark.weight, view.raw_span(*found.span()))


def _possible(present: frozenset[str]) -> Iterator[Pattern]:
    """The patterns of which all letters that they need are there."""
    missing = {letters for letters in needs() if present.isdisjoint(letters)}
    return (pattern for pattern in patterns() if missing.isdisjoint(pattern.needed))


def _extent(starts: Sequence[int], ends: Sequence[int], found: re.Match[str]) -> Span:
    """From the first to the last character of a place; a reading may run backwards."""
    first, last = found.start(), found.end() - 1
    return min(starts[first], starts[last]), max(ends[first], ends[last])


def _occurrences(text: str, written: tuple[str, ...]) -> list[Span]:
    """Where the author's texts stand, those with nothing but white space between them as one.

    Each counts once for each time that it was written, from the beginning on: a copy of one is not the author's.
    """
    found: list[Span] = []
    after: dict[str, int] = {}
    for own in written:
        at = text.find(own, after.get(own, 0)) if own else -1
        if at >= 0:
            found.append((at, at + len(own)))
            after[own] = at + len(own)
    joined: list[Span] = []
    for start, end in sorted(found):
        if joined and (start <= joined[-1][1] or text[joined[-1][1] : start].isspace()):
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _is_within(span: Span, others: list[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


def _is_mentioned(text: str, place: _Place) -> bool:
    """Whether a place is quoted in a line that speaks about such texts."""
    start, end = place.span
    if place.family not in _MENTIONABLE or _QUOTES.isdisjoint(text[max(0, start - 2) : start]):
        return False
    before = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    after = text[end : end + _NEAR].partition("\n")[0]
    return not _QUOTES.isdisjoint(after) and _ABOUT.search(before + " " + after) is not None
