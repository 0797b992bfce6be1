"""Channels, evidence steps and level: what the ledger reads off links is what a brute-force search finds (spec 7.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_runtime.ledger import Ledger, Query, Report
from halo_runtime.ledger.analysis import LEVELS
from tests.ledger.reference import MODULE, Trace
from tests.ledger.support import step, walk_through

KINDS = sorted(MODULE)
SESSIONS = ["", "s1", "s2", "s3"]


@st.composite
def streams(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Valid calls of two agents in the order in which they are logged."""
    calls: list[dict[str, Any]] = []
    for number in range(1, draw(st.integers(1, 25)) + 1):
        agent = draw(st.sampled_from(["left", "left", "right"]))
        own = [one for one in calls if one["agent"] == agent]
        acts = [one["id"] for one in own if one["kind"] == "act"]
        kind = draw(st.sampled_from(KINDS if acts else [kind for kind in KINDS if kind != "outcome"]))
        uses = draw(st.lists(st.sampled_from([one["id"] for one in own]), unique=True, max_size=4)) if own else []
        call = {"id": f"e{number}", "kind": kind, "agent": agent, "summary": "a step", "uses": uses}
        call["session"] = draw(st.sampled_from(SESSIONS))
        if kind == "outcome":
            call["about"] = draw(st.sampled_from(acts))
        if kind == "act":
            call["trigger"] = draw(st.sampled_from(["self", "request"]))
            call["form"] = draw(st.sampled_from(["silence", "execution"]))
        if kind == "revise":
            call |= {"target": "a rule", "made_by": draw(st.sampled_from(["agent", "user"])), "governance": "approved"}
        calls.append(call)
    return calls


def log_all(ledger: Ledger, calls: list[dict[str, Any]]) -> None:
    for call in calls:
        fields = {name: value for name, value in call.items() if name not in ("id", "kind")}
        assert ledger.log(call["kind"], **fields).event.id == call["id"]


@settings(max_examples=60)
@given(streams())
def test_the_incremental_analysis_finds_what_a_search_finds(calls: list[dict[str, Any]]) -> None:
    with Ledger.in_memory() as ledger:
        log_all(ledger, calls)
        report = ledger.report(ids=None)
        assert [one.agent for one in report.agents] == sorted({call["agent"] for call in calls})
        for one in report.agents:
            trace = Trace(ledger.events(Query(agent=one.agent, limit=1000)).events)
            found = {cell.name: [shown.number for shown in cell.shown] for cell in (*one.channels, *one.steps)}
            expected = {cell.name: trace.channel(cell.name) for cell in one.channels}
            expected |= {cell.name: trace.step(cell.name) for cell in one.steps}
            assert found == expected
            assert one.level.number == trace.level()


@settings(max_examples=25)
@given(streams())
def test_cells_name_the_earlier_events_that_a_search_finds(calls: list[dict[str, Any]]) -> None:
    with Ledger.in_memory() as ledger:
        log_all(ledger, calls)
        for one in ledger.report(ids=None).agents:
            trace = Trace(ledger.events(Query(agent=one.agent, limit=1000)).events)
            cells = {cell.name: cell.shown for cell in one.steps}
            for name, search in (
                ("State durability", trace.memories),
                ("Outcome use", trace.outcomes),
                ("Agent revision", trace.outcomes),
            ):
                assert [set(shown.sources) for shown in cells[name]] == [
                    search(trace.events[shown.number]) for shown in cells[name]
                ]


@settings(max_examples=25)
@given(streams(), st.sampled_from(SESSIONS[1:]))
def test_a_report_on_a_session_has_the_rows_of_its_events(calls: list[dict[str, Any]], session: str) -> None:
    with Ledger.in_memory() as ledger:
        log_all(ledger, calls)
        inside = {event.number for event in ledger.events(Query(session=session, limit=1000)).events}
        of_session = {one.agent: one for one in ledger.report(session=session, ids=None).agents}
        for whole in ledger.report(ids=None).agents:
            for row, cell in enumerate((*whole.channels, *whole.steps)):
                part = of_session.get(whole.agent)
                shown = () if part is None else (*part.channels, *part.steps)[row].shown
                assert shown == tuple(one for one in cell.shown if one.number in inside)


@settings(max_examples=25)
@given(streams(), st.data())
def test_links_are_followed_both_ways(calls: list[dict[str, Any]], data: st.DataObject) -> None:
    with Ledger.in_memory() as ledger:
        log_all(ledger, calls)
        start = data.draw(st.sampled_from([call["id"] for call in calls]))
        limit = data.draw(st.integers(1, 5))
        every = {event.number: event for event in ledger.events(Query(limit=1000)).events}
        trace = Trace(list(every.values()))
        number = int(start[1:])
        ancestors = sorted(trace.behind(every[number]), reverse=True)
        assert paged(ledger, Query(ancestors_of=start, limit=limit)) == ancestors
        descendants = [one for one in every if number in trace.behind(every[one])]
        assert paged(ledger, Query(descendants_of=start, limit=limit)) == descendants


def paged(ledger: Ledger, query: Query) -> list[int]:
    """The numbers of all pages of a query."""
    page = ledger.events(query)
    found = [event.number for event in page.events]
    while page.next is not None:
        page = ledger.events(replace(query, after=page.next))
        found += [event.number for event in page.events]
    return found


# --- by hand ------------------------------------------------------------------------------------------------------


def cell(report: Report, name: str) -> list[str]:
    """What stands in a row of the only agent's report."""
    (one,) = report.agents
    (found,) = [cell for cell in (*one.channels, *one.steps) if cell.name == name]
    return [str(shown) for shown in found.shown]


def test_the_seeds_story_shows_all_steps() -> None:
    with Ledger.in_memory() as ledger:
        walk_through(ledger)
        report = ledger.report("demo")
    assert cell(report, "S→A") == ["e3 ← e1", "e5 ← e1"]
    assert cell(report, "M→A") == ["e5 ← e4"]
    assert cell(report, "A→S") == ["e6 ← e5"]
    assert cell(report, "A→M") == []
    assert cell(report, "State durability") == ["e5 ← e2", "e8 ← e7"]
    assert cell(report, "Self-initiated action") == ["e5 ← e1, e4"]
    assert cell(report, "Outcome return") == ["e6 ← e5"]
    assert cell(report, "Outcome use") == ["e7 ← e6", "e8 ← e6"]
    assert cell(report, "Agent revision") == ["e8 (governance bounded) ← e6"]
    assert cell(report, "Revision in force") == ["e9 ← e8"]
    assert report.agents[0].level is LEVELS[5]


def test_the_seeds_reminder_is_answered_with_its_channels() -> None:
    with Ledger.in_memory() as ledger:
        step(ledger, "observe")
        step(ledger, "remember", 1)
        step(ledger, "observe")
        step(ledger, "recall", 2)
        reminder = step(ledger, "act", 3, 4, trigger="self")
        assert str(reminder) == "e5 stored. Channels: S→A, M→A."
        assert str(step(ledger, "outcome", about="e5")) == "e6 stored. Channels: A→S."
        assert str(step(ledger, "observe")) == "e7 stored. Channels: none."


def test_silence_is_told_apart() -> None:
    with Ledger.in_memory() as ledger:
        step(ledger, "observe")
        step(ledger, "act", 1, trigger="self", form="silence")
        assert cell(ledger.report(), "Self-initiated action") == ["e2 (silence) ← e1"]


@pytest.mark.parametrize(
    ("session", "shown"), [("s2", ["e3 ← e1"]), ("", []), ("s1", [])], ids=["another", "none", "the same"]
)
def test_only_labelled_sessions_show_that_state_lasts(session: str, shown: list[str]) -> None:
    with Ledger.in_memory() as ledger:
        step(ledger, "remember")
        step(ledger, "recall", 1, session=session)
        step(ledger, "act", 2, session=session)
        assert cell(ledger.report(), "State durability") == shown


def test_a_cell_says_how_many_events_it_leaves_out() -> None:
    with Ledger.in_memory() as ledger:
        step(ledger, "observe")
        for _ in range(12):
            step(ledger, "remember", 1)
        (one,) = ledger.report().agents
        assert (one.channels[0].count, len(one.channels[0].shown)) == (12, 10)
        assert len(cell(ledger.report(ids=None), "S→M")) == 12


@pytest.mark.parametrize(
    ("behind", "level"), [(3, 3), (4, 2)], ids=["an act that was sensed for", "an act for nothing"]
)
def test_initiative_needs_something_sensed_or_remembered_however_far_behind(behind: int, level: int) -> None:
    with Ledger.in_memory() as ledger:
        step(ledger, "observe")
        step(ledger, "remember")
        step(ledger, "act", 1, 2, session="s2")
        step(ledger, "act")
        step(ledger, "act", behind, trigger="self")
        report = ledger.report()
    assert cell(report, "Self-initiated action") == [f"e5 ← e{behind}"]
    assert report.agents[0].level.number == level
