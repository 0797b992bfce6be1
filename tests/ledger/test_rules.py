"""What is refused, in which words (seed 000, spec 7.1): all problems of a call at once, and nothing is stored."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.ledger import EventRefused, Ledger
from tests.ledger.support import step

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"
ABOUT = "about must be the id of one of the agent's own act events"
UNKNOWN = "unknown event id(s) {} for agent '{}'; call halo_trace to see the ids of your earlier events"
ACT = {"kind": "act", "trigger": "self", "form": "silence"}
REVISE = {"kind": "revise", "target": "a rule", "made_by": "user", "governance": "none"}


def problems(**fields: Any) -> tuple[str, ...]:
    """What a call is refused for, beside e1 (observe) and e2 (act) of demo and e3 (act) of other."""
    with Ledger.in_memory() as ledger:
        step(ledger, "observe")
        step(ledger, "act", 1)
        step(ledger, "act", agent="other")
        try:
            ledger.log(**{"kind": "observe", "summary": "a", "agent": "demo", "session": "s1", **fields})
        except EventRefused as refusal:
            assert len(ledger.events().events) == 3
            return refusal.problems
        assert len(ledger.events().events) == 4
        return ()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"summary": "  \n"}, "summary must not be empty"),
        ({"summary": None}, "summary must not be empty"),
        ({"summary": "x" * 501}, "summary must have at most 500 characters, not 501"),
        ({"summary": 7}, "summary must be a text"),
        ({"summary": "a\x00b"}, "summary must be Unicode text without control characters"),
        ({"summary": "\ud800"}, "summary must be Unicode text without control characters"),
        ({"summary": f"key {KEY}"}, "summary looks as if it held a secret; say what happened without it"),
        ({"agent": " "}, "agent must not be empty"),
        ({"agent": "a\nb"}, "agent must be Unicode text without control characters"),
        ({"session": "s" * 201}, "session must have at most 200 characters, not 201"),
        ({"session": KEY}, "session looks as if it held a secret; say what happened without it"),
        ({"uses": ["e42"]}, UNKNOWN.format("e42", "demo")),
        ({"uses": ["e42", "e1", "e9"]}, UNKNOWN.format("e42, e9", "demo")),
        ({"uses": ["e3"]}, UNKNOWN.format("e3", "demo")),
        ({"uses": ["e4"]}, UNKNOWN.format("e4", "demo")),
        ({"uses": ["e1", "e1"]}, "uses names e1 more than once"),
        ({"uses": "e1"}, 'uses must be a list of event ids, such as ["e3", "e7"]'),
        ({"uses": [1]}, 'uses must be a list of event ids, such as ["e3", "e7"]'),
        ({"uses": ["e01"]}, 'uses must be a list of event ids, such as ["e3", "e7"]'),
        ({"uses": ["e1'; DROP TABLE events --"]}, 'uses must be a list of event ids, such as ["e3", "e7"]'),
        ({"uses": [f"e{n}" for n in range(1, 1002)]}, "uses must have at most 1000 ids, not 1001"),
        ({"kind": "outcome"}, ABOUT),
        ({"kind": "outcome", "about": "e1"}, ABOUT),
        ({"kind": "outcome", "about": "e3"}, ABOUT),
        ({"kind": "outcome", "about": "e42"}, ABOUT),
        ({"kind": "outcome", "about": 2}, ABOUT),
        ({"about": "e2"}, "observe has no field about"),
        ({"kind": "outcome", "about": "e2", "form": "silence"}, "outcome has no field form"),
        ({**ACT, "trigger": None}, "act needs trigger: request or self"),
        ({**ACT, "form": None}, "act needs form: silence, communication, preparation or execution"),
        ({**ACT, "form": "shouting"}, "form must be silence, communication, preparation or execution"),
        ({**ACT, "trigger": []}, "trigger must be request or self"),
        ({**REVISE, "target": None}, "revise needs target"),
        ({**REVISE, "target": " "}, "target must not be empty"),
        ({**REVISE, "made_by": "model"}, "made_by must be agent or user"),
        ({**REVISE, "governance": ""}, "governance must be approved, bounded or none"),
        ({"kind": "think"}, "kind must be observe, outcome, remember, recall, act or revise"),
        ({"colour": "red"}, "there is no field colour"),
        ({KEY: "red"}, "there is no field of that name"),
    ],
)
def test_a_call_that_breaks_one_rule(fields: dict[str, Any], problem: str) -> None:
    assert problems(**fields) == (problem,)


@pytest.mark.parametrize(
    "fields",
    [
        {"summary": "x" * 500},
        {"summary": "'; DROP TABLE events; --"},
        {"summary": "two\nlines\tand 漢字 \u200f👩\u200d🚀"},
        {"agent": "demo", "uses": ["e2", "e1"]},
        {"session": None},
        {"uses": None},
        {"kind": "outcome", "about": "e2"},
        {**ACT},
        {**REVISE},
    ],
)
def test_a_call_that_breaks_none(fields: dict[str, Any]) -> None:
    assert problems(**fields) == ()


@pytest.mark.parametrize("name", ["self", "client", "id", "time", "hash", "marks", "number"])
def test_what_halo_adds_cannot_be_sent(name: str) -> None:
    with Ledger.in_memory() as ledger, pytest.raises(EventRefused, match=f"^there is no field {name}$"):
        ledger.add({"kind": "observe", "summary": "a", "agent": "demo", name: "x"}, client="probe")


def test_all_problems_are_told_at_once() -> None:
    assert problems(**{**ACT, "summary": "", "form": "loud", "uses": ["e42"], "about": "e2", "made_by": "x"}) == (
        "act has no field about",
        "act has no field made_by",
        "summary must not be empty",
        "form must be silence, communication, preparation or execution",
        "made_by must be agent or user",
        UNKNOWN.format("e42", "demo"),
    )


@pytest.mark.parametrize("name", ["summary", "agent", "session", "trigger", "uses", "about", "kind", KEY])
def test_a_refusal_never_repeats_a_secret(name: str) -> None:
    told = problems(**{**ACT, name: KEY})
    assert told
    assert KEY not in " ".join(told)


VALUES = (
    st.none() | st.integers() | st.text(max_size=9) | st.sampled_from(["e1", "e2", "act", "self"]) | st.lists(st.text())
)
NAMES = [
    "kind",
    "self",
    "client",
    "summary",
    "uses",
    "session",
    "agent",
    "about",
    "trigger",
    "form",
    "target",
    "made_by",
    "governance",
]


@given(st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_whatever_is_given_is_stored_or_refused(fields: dict[str, Any]) -> None:
    with Ledger.in_memory() as ledger:
        step(ledger, "observe")
        with suppress(EventRefused):
            ledger.add(fields)
        assert ledger.verify().valid
