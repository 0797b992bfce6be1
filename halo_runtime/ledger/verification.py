"""Whether a ledger is what was logged (spec 7.2): every event, hash, link and mark, the end, and the triggers.

Whoever edits the file can also write a new chain of hashes. So the head's hash is worth keeping elsewhere: with it
(`expected`) no event before it can have changed.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, get_args

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.ledger.analysis import COUNTED, Known, marks_of, told_apart
from halo_runtime.ledger.events import GENESIS, Event, Kind, chained, event_id
from halo_runtime.ledger.reading import event_of, every
from halo_runtime.ledger.schema import TALLIED, definitions, intended
from halo_runtime.ledger.writing import links_of

MOST_PROBLEMS: Final = 20
"""How many are told: behind a broken place everything may be wrong."""
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@record
class Verdict:
    """What was found. `head` is the hash of the last event (hex), "" of an empty ledger."""

    events: int
    head: str
    problems: tuple[str, ...]

    @property
    def valid(self) -> bool:
        return not self.problems

    def to_json(self) -> JsonObject:
        return {
            "status": "valid" if self.valid else "broken",
            "events": self.events,
            "head": self.head or None,
            "problems": list(self.problems),
        }


def verify(connection: sqlite3.Connection, expected: tuple[int, str] | None) -> Verdict:
    """Check a ledger within a read transaction. `expected`: an event's number and the hash (hex) that it must have."""
    check = _Check(connection, expected)
    problems = tuple(dict.fromkeys(islice(check.problems(), MOST_PROBLEMS)))
    return Verdict(check.count, check.head.hex() if check.count else "", problems)


class _Check:
    """One walk over all events. Of each it keeps kind, agent, session and marks: some 12 bytes."""

    def __init__(self, connection: sqlite3.Connection, expected: tuple[int, str] | None) -> None:
        self._connection = connection
        self._expected = expected
        self.count, self.head = 0, GENESIS
        self._links = 0
        self._tallies: dict[str, list[int]] = {}
        self._kinds, self._marks = array("B", [0]), array("I", [0])
        self._agents, self._sessions = array("I", [0]), array("I", [0])
        self._names: dict[str, int] = {}
        self._texts: list[str] = []

    def problems(self) -> Iterator[str]:
        yield from self._file()
        for row in every(self._connection):
            number = row[0]
            if number != self.count + 1:
                yield f"{event_id(self.count + 1)} is missing; what is behind it cannot be checked"
                return
            yield from self._row(row)
        yield from self._end()

    def _file(self) -> Iterator[str]:
        for (found,) in self._connection.execute("PRAGMA integrity_check(10)"):
            if found != "ok":
                yield f"the file is damaged: {found}"
        there, meant = definitions(self._connection), intended()
        for name in sorted(meant.keys() | there.keys()):
            if there.get(name) != meant.get(name):
                what = (
                    "is missing"
                    if name not in there
                    else "does not belong there"
                    if name not in meant
                    else "was changed"
                )
                yield f"{name} {what}: the file's own protection, or its shape, is not that of a ledger"

    def _row(self, row: tuple[Any, ...]) -> Iterator[str]:
        number, marks, digest = row[0], row[14], row[15]
        previous, self.head = self.head, digest if isinstance(digest, bytes) else GENESIS
        self.count = number
        try:
            event = event_of(row)
            intact = chained(previous, event) == digest
        except (TypeError, ValueError, AttributeError):  # a value of another type than any event has
            event, intact = None, False
        if self._expected is not None and self._expected[0] == number and self._expected[1] != self.head.hex():
            yield f"{event_id(number)} has another hash than the one expected: it, or an event before it, was changed"
        if event is None or not intact:
            yield f"{event_id(number)} is not what was logged, or an event before it is not"
        yield from self._remember(event, marks) if event is not None else self._skip()

    def _remember(self, event: Event, marks: int) -> Iterator[str]:
        """Check what follows from an event: its marks and the rows of its links."""
        linked = links_of(event)
        self._links += len(linked)
        if event.kind not in _KINDS or not all(_is_before(one, event.number) for one in linked):
            yield f"{event.id} links to events that are not before it"
            yield from self._skip()
            return
        about = None if event.about is None else self._known(event.about)
        own = marks_of(event, [self._known(one) for one in event.uses], about)
        if own != marks:
            yield f"what {event.id} shows was changed"
        rows = self._connection.execute("SELECT used FROM links WHERE seq = ? AND used IN "
            f"({', '.join('?' * len(linked))})", (event.number, *linked)).fetchall() if linked else []  # fmt: skip
        if len(rows) != len(linked):
            yield f"links of {event.id} are missing"
        self._keep(_KINDS.index(event.kind), own, event.agent, event.session)
        self._tally(event.agent, own)

    def _tally(self, agent: str, marks: int) -> None:
        counts = self._tallies.setdefault(agent, [0] * (len(COUNTED) + 1))
        for place, one in enumerate((1, *told_apart(marks))):
            counts[place] += one

    def _skip(self) -> Iterator[str]:
        self._keep(0, 0, "", "")
        yield from ()

    def _keep(self, kind: int, marks: int, agent: str, session: str) -> None:
        self._kinds.append(kind)
        self._marks.append(marks)
        self._agents.append(self._name(agent))
        self._sessions.append(self._name(session))

    def _name(self, text: str) -> int:
        if text not in self._names:
            self._names[text] = len(self._texts)
            self._texts.append(text)
        return self._names[text]

    def _known(self, number: int) -> Known:
        agent, session = self._texts[self._agents[number]], self._texts[self._sessions[number]]
        return Known(_KINDS[self._kinds[number]], agent, session, self._marks[number])

    def _end(self) -> Iterator[str]:
        row = self._connection.execute("SELECT seq, hash FROM head").fetchone()
        last, digest = row or (0, b"")
        if last > self.count:
            yield f"{event_id(self.count + 1)} to {event_id(last)} are missing at the end"
        elif (last, digest) != (self.count, self.head):
            yield "the ledger's end is not what was logged"
        (links,) = self._connection.execute("SELECT count(*) FROM links").fetchone()
        if links > self._links:
            yield "there are links that no event has"
        tallied = {agent: counts for agent, *counts in self._connection.execute(f"SELECT {TALLIED} FROM tallies")}
        for agent in sorted(tallied.keys() | self._tallies.keys(), key=str):
            if tallied.get(agent) != self._tallies.get(agent):
                yield f"the counts of agent '{agent}' are not those of its events"
        if self._expected is not None and self._expected[0] > self.count:
            yield f"{event_id(self._expected[0])} is missing"


def _is_before(linked: object, number: int) -> bool:
    """Whether what stands in the place of a link is the number of an earlier event."""
    return isinstance(linked, int) and 0 < linked < number
