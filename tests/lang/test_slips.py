"""One slip is one mistake: it is reported where it was made, and does not bury the rest of the file.

Measured on slips of all kinds all over the example programs. Exceptions are those where the slip makes something else
of what follows: a bracket left open points at its opening, further up, and a declaration that lost its name leaves
those that use it without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from halo_lang import Program, check, parse
from tests.lang.mutations import EXAMPLES, slips

_STRIDE = 37
"""Every so many slips are looked at."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a slip led to: whether the first error is on its line or the next, and how many there are in the
    declaration that it damaged and beyond."""

    near: bool
    inside: int
    beyond: int


def outcomes(text: str) -> list[Outcome]:
    """What some slips in a program lead to, those left out that are none."""
    whole = parse(text)
    found = (_outcome(whole, at, spoilt) for at, spoilt in list(slips(text))[::_STRIDE])
    return [outcome for outcome in found if outcome is not None]


def _outcome(whole: Program, at: int, spoilt: str) -> Outcome | None:
    errors = check(parse(spoilt, whole)).errors
    if not errors:
        return None
    starts = [*whole.starts, len(whole.source.text) + 1]
    damaged = next(number for number, start in enumerate(starts) if start > at) - 1
    first, last = starts[damaged], starts[damaged + 1] + len(spoilt) - len(whole.source.text)
    lines = spoilt.count("\n", 0, errors[0].span.start) - spoilt.count("\n", 0, at)
    inside = sum(first <= one.span.start <= last for one in errors)
    return Outcome(lines in (0, 1), inside, len(errors) - inside)


@pytest.fixture(scope="module")
def all_outcomes() -> list[Outcome]:
    return [outcome for text in EXAMPLES.values() for outcome in outcomes(text)]


def test_the_first_error_is_where_the_slip_is(all_outcomes: list[Outcome]) -> None:
    far = sum(not outcome.near for outcome in all_outcomes)
    assert far <= 0.03 * len(all_outcomes)


def test_a_slip_is_hardly_ever_more_than_one_error_in_its_declaration(all_outcomes: list[Outcome]) -> None:
    assert max(outcome.inside for outcome in all_outcomes) <= 3
    assert sum(outcome.inside > 1 for outcome in all_outcomes) <= 0.03 * len(all_outcomes)


def test_other_declarations_are_not_blamed(all_outcomes: list[Outcome]) -> None:
    assert sum(outcome.beyond > 2 for outcome in all_outcomes) <= 0.005 * len(all_outcomes)
    assert sum(outcome.beyond > 0 for outcome in all_outcomes) <= 0.03 * len(all_outcomes)
