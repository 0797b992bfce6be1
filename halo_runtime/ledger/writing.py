"""Adding an event to the ledger inside a transaction that somebody else begins and ends."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from halo_lang.records import record
from halo_runtime.errors import StoreError
from halo_runtime.json_types import JsonObject
from halo_runtime.ledger.analysis import OF_CHANNEL, Known, marks_of, told_apart
from halo_runtime.ledger.channels import CHANNELS, Channel, channel_name
from halo_runtime.ledger.events import Event, chained
from halo_runtime.ledger.rules import Draft, EventRefused, link_problems
from halo_runtime.ledger.schema import COLUMNS, TALLY

_INSERT = f"INSERT INTO events ({COLUMNS}, marks, hash) VALUES ({', '.join('?' * 16)})"
_HEAD = "SELECT seq, hash, (SELECT coalesce(max(seq), 0) FROM events) FROM head"


@record
class Logged:
    """A stored event. `channels` are those that its links realise; `hash` (hex) binds it and all events before it."""

    event: Event
    channels: tuple[Channel, ...]
    hash: str

    def __str__(self) -> str:
        names = ", ".join(map(channel_name, self.channels))
        return f"{self.event.id} stored. Channels: {names or 'none'}."

    def to_json(self) -> JsonObject:
        return {**self.event.to_json(), "channels": [channel_name(one) for one in self.channels], "hash": self.hash}


def append(connection: sqlite3.Connection, draft: Draft, time: str, client: str) -> Logged:
    """Store the event of a draft, behind all others. Raises EventRefused with all that is wrong; then nothing is."""
    known = known_events(connection, draft.linked)
    problems = (*draft.problems, *link_problems(draft, known))
    if problems:
        raise EventRefused(problems)
    last, previous, there = connection.execute(_HEAD).fetchone()
    if last != there:
        raise StoreError("events are missing at the ledger's end; `halo trace verify` says which")
    event = draft.event(last + 1, time, client)
    about = None if event.about is None else known[event.about]
    marks = marks_of(event, [known[number] for number in event.uses], about)
    digest = chained(previous, event)
    connection.execute(_INSERT, (*_row(event), marks, digest))
    connection.executemany("INSERT INTO links VALUES (?, ?)", [(number, event.number) for number in links_of(event)])
    connection.execute(TALLY, (event.agent, *told_apart(marks)))
    connection.execute("UPDATE head SET seq = ?, hash = ?", (event.number, digest))
    channels = tuple(channel for channel in CHANNELS if marks & OF_CHANNEL[channel])
    return Logged(event, channels, digest.hex())


def links_of(event: Event) -> tuple[int, ...]:
    """All events that one links to, each once."""
    return tuple(dict.fromkeys(event.uses if event.about is None else (*event.uses, event.about)))


def known_events(connection: sqlite3.Connection, numbers: Sequence[int]) -> Mapping[int, Known]:
    """Those of some events that there are."""
    if not numbers:
        return {}
    places = ", ".join("?" * len(numbers))
    rows = connection.execute(f"SELECT seq, kind, agent, session, marks FROM events WHERE seq IN ({places})", numbers)
    return {number: Known(*rest) for number, *rest in rows}


def _row(event: Event) -> tuple[object, ...]:
    """Its values in the order of the columns."""
    return (
        event.number, event.kind, event.summary, " ".join(map(str, event.uses)), event.session, event.agent, event.time,
        event.client, event.about, event.trigger, event.form, event.target, event.made_by, event.governance,
    )  # fmt: skip
