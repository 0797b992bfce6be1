"""The report: channels, evidence steps and level of each agent, every cell with the events that show it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.ledger.analysis import COUNTED, LEVELS, OF_CHANNEL, Level, Mark, is_elsewhere, level_of
from halo_runtime.ledger.channels import CHANNELS, channel_name
from halo_runtime.ledger.events import MODULES, Event, event_id
from halo_runtime.ledger.links import ancestors
from halo_runtime.ledger.reading import Query, load, restriction
from halo_runtime.ledger.schema import COUNTS, TALLIED

STEPS: Final = (
    ("State durability", Mark.DURABILITY),
    ("Self-initiated action", Mark.SELF),
    ("Outcome return", Mark.RETURN),
    ("Outcome use", Mark.OUTCOME_USE),
    ("Agent revision", Mark.REVISION),
    ("Revision in force", Mark.IN_FORCE),
)
ROWS: Final = (*((channel_name(channel), OF_CHANNEL[channel]) for channel in CHANNELS), *STEPS)
IDS: Final = 10
"""How many events a cell shows unless all are asked for; it always says how many there are."""
NOT_OBSERVED: Final = "not observed"


@record
class Shown:
    """An event that shows something: what it shows it about, and what is told apart (silence, governance)."""

    number: int
    sources: tuple[int, ...]
    note: str = ""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        sources = ", ".join(map(event_id, self.sources))
        return f"{event_id(self.number)}{note} ← {sources}" if sources else f"{event_id(self.number)}{note}"

    def to_json(self) -> JsonObject:
        return {
            "id": event_id(self.number),
            "from": [event_id(number) for number in self.sources],
            "note": self.note or None,
        }


@record
class Cell:
    """A row of the report: how many events show it, and the first of them."""

    name: str
    count: int
    shown: tuple[Shown, ...]

    @property
    def observed(self) -> bool:
        return self.count > 0

    def to_json(self, key: str) -> JsonObject:
        return {
            key: self.name,
            "observed": self.observed,
            "count": self.count,
            "events": [one.to_json() for one in self.shown],
        }


@record
class AgentReport:
    """What the trace of one agent shows."""

    agent: str
    events: int
    level: Level
    channels: tuple[Cell, ...]
    steps: tuple[Cell, ...]

    def to_json(self) -> JsonObject:
        return {
            "agent": self.agent,
            "events": self.events,
            "level": {"number": self.level.number, "name": self.level.name},
            "channels": [one.to_json("channel") for one in self.channels],
            "steps": [one.to_json("step") for one in self.steps],
        }


@record
class Report:
    """The agents' reports by name; `query` says of which part of the ledger."""

    agents: tuple[AgentReport, ...]
    query: Query

    def to_json(self) -> JsonObject:
        return {
            "session": self.query.session,
            "since": self.query.since,
            "until": self.query.until,
            "agents": [one.to_json() for one in self.agents],
            "rubric": [{"level": one.number, "name": one.name, "meaning": one.meaning} for one in LEVELS],
        }


def report_on(connection: sqlite3.Connection, query: Query, ids: int | None) -> Report:
    """What a part of the ledger shows. An event shows something in its own session and at its own time.

    `ids`: how many events a cell shows at most, None for all.
    """
    counted = [_agent(connection, query, row, ids) for row in _counts(connection, query)]
    return Report(tuple(counted), query)


def _counts(connection: sqlite3.Connection, query: Query) -> list[tuple[Any, ...]]:
    """Agent, events, and events with each of the counted marks; of whole traces they stand ready."""
    conditions, values = restriction(query)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if (query.session, query.since, query.until) == (None, None, None):
        return connection.execute(f"SELECT {TALLIED} FROM tallies{where} ORDER BY agent", values).fetchall()
    return connection.execute(f"SELECT {COUNTS} FROM events{where} GROUP BY agent ORDER BY agent", values).fetchall()


def _agent(connection: sqlite3.Connection, query: Query, row: tuple[Any, ...], ids: int | None) -> AgentReport:
    agent, events, *numbers = row
    of_agent = replace(query, agent=agent)
    counts = dict(zip(COUNTED, numbers, strict=True))
    observed = sum(mark for mark, count in counts.items() if count)
    listed = {mark: _listed(connection, of_agent, mark, ids) if counts[mark] else [] for _, mark in ROWS}
    trail = Trail(connection, [number for numbers in listed.values() for number in numbers])
    cells = [Cell(name, counts[mark], _all_shown(trail, listed[mark], mark, ids)) for name, mark in ROWS]
    return AgentReport(agent, events, level_of(observed), tuple(cells[: len(CHANNELS)]), tuple(cells[len(CHANNELS) :]))


def _listed(connection: sqlite3.Connection, query: Query, mark: Mark, ids: int | None) -> list[int]:
    """The numbers of the first of a query's events with a mark; asked as its index says, which is used for that."""
    conditions, values = restriction(query)
    where = " AND ".join([*conditions, f"(marks & {int(mark)}) <> 0"])
    limit = -1 if ids is None else ids
    rows = connection.execute(f"SELECT seq FROM events WHERE {where} ORDER BY seq LIMIT ?", [*values, limit])
    return [row[0] for row in rows]


def _all_shown(trail: Trail, numbers: list[int], mark: Mark, ids: int | None) -> tuple[Shown, ...]:
    return tuple(_shown(trail, trail.event(number), mark, ids) for number in numbers)


class Trail:
    """The events of an agent's cells and what they link to, each read once."""

    def __init__(self, connection: sqlite3.Connection, numbers: list[int]) -> None:
        self._connection = connection
        self._known = load(connection, list(dict.fromkeys(numbers)))
        self._fetch([linked for number in numbers for linked in self.linked(number)])

    def event(self, number: int) -> Event:
        return self._entry(number)[0]

    def marks(self, number: int) -> int:
        return self._entry(number)[1]

    def linked(self, number: int) -> tuple[int, ...]:
        event = self.event(number)
        return event.uses if event.about is None else (*event.uses, event.about)

    def _entry(self, number: int) -> tuple[Event, int]:
        if number not in self._known:
            self._fetch([number])
        return self._known[number]

    def _fetch(self, numbers: list[int]) -> None:
        missing = [number for number in dict.fromkeys(numbers) if number not in self._known]
        if missing:
            self._known.update(load(self._connection, missing))


def _shown(trail: Trail, event: Event, mark: Mark, ids: int | None) -> Shown:
    note = ""
    if mark == Mark.SELF and event.form == "silence":
        note = "silence"
    if mark == Mark.REVISION:
        note = f"governance {event.governance}"
    sources = dict.fromkeys(islice(_sources(trail, event, mark), ids))
    return Shown(event.number, tuple(sorted(sources)), note)


def _sources(trail: Trail, event: Event, mark: Mark) -> Iterator[int]:
    """The earlier events that an event shows something about."""
    if mark < Mark.DURABILITY:
        origin = next(channel[0] for channel in CHANNELS if OF_CHANNEL[channel] == mark)
        yield from (one for one in trail.linked(event.number) if MODULES[trail.event(one).kind] == origin)
    elif mark == Mark.DURABILITY:
        yield from _memories(trail, event)
    elif mark in (Mark.OUTCOME_USE, Mark.REVISION):
        yield from _outcomes(trail, event.number)
    elif mark == Mark.IN_FORCE:
        yield from (one for one in event.uses if trail.marks(one) & Mark.REVISION)
    else:
        yield from trail.linked(event.number) if event.about is None else (event.about,)


def _memories(trail: Trail, event: Event) -> Iterator[int]:
    """The memories of other sessions that an event uses, directly or through recalls in its own, the latest first."""

    def behind(number: int) -> list[int]:
        one = trail.event(number)
        return [used for used in one.uses if one.session == event.session and _brings(trail, used, event.session)]

    walked = ancestors(event.number, behind)
    return (number for number in walked if is_elsewhere(trail.event(number).session, event.session))


def _brings(trail: Trail, number: int, session: str) -> bool:
    """Whether an event is a memory of another session, or a recall in this one that leads to such a memory."""
    one = trail.event(number)
    if MODULES[one.kind] != "M":
        return False
    return is_elsewhere(one.session, session) or (one.session == session and bool(trail.marks(number) & Mark.BROUGHT))


def _outcomes(trail: Trail, start: int) -> Iterator[int]:
    """The outcomes behind an event, directly or through memory, the latest first."""

    def behind(number: int) -> tuple[int, ...]:
        if number != start and trail.event(number).kind == "outcome":
            return ()
        return tuple(
            one
            for one in trail.event(number).uses
            if trail.event(one).kind == "outcome" or trail.marks(one) & Mark.CARRIES
        )

    return (number for number in ancestors(start, behind) if trail.event(number).kind == "outcome")
