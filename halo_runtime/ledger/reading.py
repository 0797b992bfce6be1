"""Pages of events: filtered, or following links from one of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from halo_lang.excerpt import visible
from halo_lang.records import record
from halo_runtime.errors import HaloError
from halo_runtime.json_types import JsonObject
from halo_runtime.ledger.events import MODULES, Event, Kind, Module, event_id, event_number
from halo_runtime.ledger.links import ancestors, descendants
from halo_runtime.ledger.schema import COLUMNS

LARGEST_PAGE: Final = 1_000
_USERS_AT_ONCE: Final = 64
_READ: Final = f"SELECT {COLUMNS}, marks, hash FROM events"


class UnknownEvent(HaloError):
    """An id that no event has, or none of the agent's."""


@record
class Query:
    """Which events are asked for; None and "" ask for all. `since` ≤ time < `until`, as `read_time` gives them.

    `ancestors_of` and `descendants_of` are ids: all that the event rests on, the latest first, or all that rests on it.
    `after` is the id of the last event of the page before.
    """

    agent: str | None = None
    session: str | None = None
    kind: Kind | None = None
    module: Module | None = None
    since: str | None = None
    until: str | None = None
    ancestors_of: str | None = None
    descendants_of: str | None = None
    after: str | None = None
    limit: int = 50


@record
class Page:
    """Some events in their order; `next` is the `after` of the page behind it, None where there is none."""

    events: tuple[Event, ...]
    next: str | None

    def to_json(self) -> JsonObject:
        return {"events": [event.to_json() for event in self.events], "next": self.next}


def page(connection: sqlite3.Connection, query: Query) -> Page:
    """The page that a query asks for. Raises UnknownEvent."""
    limit = max(1, min(query.limit, LARGEST_PAGE))
    found = list(islice(_matching(connection, query, limit + 1), limit + 1))
    more = len(found) > limit
    return Page(tuple(found[:limit]), found[limit - 1].id if more else None)


def restriction(query: Query) -> tuple[list[str], list[object]]:
    """A query's filters as SQL conditions and their values."""
    kinds = [kind for kind, module in MODULES.items() if query.module is not None and module == query.module]
    parts: list[tuple[str, object]] = [
        ("agent = ?", query.agent),
        ("session = ?", query.session),
        ("kind = ?", query.kind),
        ("time >= ?", query.since),
        ("time < ?", query.until),
    ]
    conditions = [(text, value) for text, value in parts if value is not None]
    places = [text for text, _ in conditions]
    if kinds:
        places.append(f"kind IN ({', '.join('?' * len(kinds))})")
    return places, [*(value for _, value in conditions), *kinds]


def load(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, tuple[Event, int]]:
    """Events with their marks, by number; those that there are."""
    found: dict[int, tuple[Event, int]] = {}
    for start in range(0, len(numbers), 1_000):
        some = numbers[start : start + 1_000]
        rows = connection.execute(f"{_READ} WHERE seq IN ({', '.join('?' * len(some))})", some)
        found.update((row[0], (event_of(row), row[14])) for row in rows)
    return found


def event_of(row: Sequence[Any]) -> Event:
    """The event of a row of the columns. Raises ValueError where its links cannot be read."""
    number, kind, summary, uses, *rest = row[:14]
    return Event(number, kind, summary, tuple(map(int, uses.split())), *rest)


def every(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """All rows in order: columns, marks, hash."""
    yield from connection.execute(f"{_READ} ORDER BY seq")


def _matching(connection: sqlite3.Connection, query: Query, limit: int) -> Iterator[Event]:
    after = 0 if query.after is None else _number(query.after)
    if query.ancestors_of is not None or query.descendants_of is not None:
        yield from _linked(connection, query, after)
        return
    conditions, values = restriction(query)
    where = " AND ".join([*conditions, "seq > ?"])
    rows = connection.execute(f"{_READ} WHERE {where} ORDER BY seq LIMIT ?", [*values, after, limit])
    yield from map(event_of, rows)


def _linked(connection: sqlite3.Connection, query: Query, after: int) -> Iterator[Event]:
    start = _number(query.ancestors_of or query.descendants_of or "")
    there = load(connection, [start])
    if start not in there or query.agent not in (None, there[start][0].agent):
        of = f" for agent '{visible(query.agent)}'" if query.agent else ""
        raise UnknownEvent(f"unknown event id(s) {event_id(start)}{of}")
    if query.ancestors_of is not None:
        walked = ancestors(start, lambda number: _used(connection, number))
    else:
        walked = descendants(start, lambda number: _users(connection, number))
    behind = query.ancestors_of is not None
    for number in walked:
        if after and (number >= after if behind else number <= after):
            continue
        event = load(connection, [number])[number][0]
        if _fits(event, query):
            yield event


def _used(connection: sqlite3.Connection, number: int) -> tuple[int, ...]:
    event = load(connection, [number])[number][0]
    return event.uses if event.about is None else (*event.uses, event.about)


def _users(connection: sqlite3.Connection, number: int) -> Iterator[int]:
    """The events that link to one, in order; a few at a time, as most are seldom asked for."""
    last, some = 0, [(0,)]
    while some:
        some = connection.execute(
            "SELECT seq FROM links WHERE used = ? AND seq > ? ORDER BY seq LIMIT ?", (number, last, _USERS_AT_ONCE)
        ).fetchall()
        for (last,) in some:
            yield last


def _fits(event: Event, query: Query) -> bool:
    wanted = ((query.session, event.session), (query.kind, event.kind), (query.module, MODULES[event.kind]))
    in_time = (query.since or "") <= event.time and (query.until is None or event.time < query.until)
    return in_time and all(one is None or one == other for one, other in wanted)


def _number(text: str) -> int:
    number = event_number(text)
    if number is None:
        raise UnknownEvent("an event id looks like e3")
    return number
