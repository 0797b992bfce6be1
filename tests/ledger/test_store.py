"""The ledger's file: ids in commit order without gaps, append-only, durable; errors that say what to do (spec 7.2)."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from halo_runtime.errors import StoreError
from halo_runtime.json_types import JsonObject
from halo_runtime.ledger import EventRefused, Ledger, Query, UnknownEvent
from tests.ledger.support import step, walk_through

INSERT = (
    "INSERT INTO events SELECT {}, kind, summary, uses, session, agent, time, client, about, trigger, form, target,"
    " made_by, governance, marks, hash FROM events WHERE seq = 1"
)
WRITER = Path(__file__).with_name("writer.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "ledger.db"


def written(path: Path) -> sqlite3.Connection:
    """The file as somebody else opens it."""
    return sqlite3.connect(path, isolation_level=None)


def test_what_is_logged_is_there_after_opening_again(path: Path) -> None:
    with Ledger.open(path) as ledger:
        walk_through(ledger)
        before = (ledger.events(), ledger.report(), ledger.head())
    with Ledger.open(path, must_exist=True) as ledger:
        assert (ledger.events(), ledger.report(), ledger.head()) == before
        assert str(step(ledger, "observe")).startswith("e10 ")
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in path.parent.iterdir()) == ["ledger.db"]


def test_an_event_has_all_that_was_given(path: Path) -> None:
    moment = datetime(2026, 11, 30, 10, 0, 0, 250, tzinfo=UTC)
    with Ledger.open(path, now=lambda: moment) as ledger:
        step(ledger, "act")
        logged = ledger.log(
            "outcome", summary=" it came late ", about="e1", session="s2", agent="demo", client="probe 1"
        )
        expected: JsonObject = {
            "id": "e2", "kind": "outcome", "summary": "it came late", "uses": [], "session": "s2", "agent": "demo",
            "time": "2026-11-30T10:00:00.000250Z", "client": "probe 1", "about": "e1",
        }  # fmt: skip
        assert ledger.events(Query(after="e1")).to_json() == {"events": [expected], "next": None}
        assert logged.to_json() == {**expected, "channels": ["A→S"], "hash": logged.hash}


def test_a_clock_that_jumps_changes_no_order(path: Path) -> None:
    moments = iter([datetime(2026, 11, 30, tzinfo=UTC) - timedelta(days=day) for day in (0, 9, 1)])
    with Ledger.open(path, now=lambda: next(moments)) as ledger:
        for _ in range(3):
            step(ledger, "observe")
        assert [event.id for event in ledger.events().events] == ["e1", "e2", "e3"]
        assert [event.id for event in ledger.events(Query(since="2026-11-25", until="2026-11-30")).events] == ["e3"]
        assert ledger.verify().valid


# --- pages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (Query(), [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (Query(agent="nobody"), []),
        (Query(agent="demo", session="s3"), [8, 9]),
        (Query(kind="act"), [3, 5, 9]),
        (Query(module="S"), [1, 6]),
        (Query(agent="demo", module="M", session="s2"), [4, 7]),
        (Query(kind="act", after="e3"), [5, 9]),
        (Query(ancestors_of="e7"), [6, 5, 4, 2, 1]),
        (Query(ancestors_of="e7", kind="outcome"), [6]),
        (Query(descendants_of="e6", agent="demo"), [7, 8, 9]),
        (Query(descendants_of="e6", session="s3"), [8, 9]),
    ],
)
def test_pages_are_filtered(query: Query, numbers: list[int]) -> None:
    with Ledger.in_memory() as ledger:
        walk_through(ledger)
        assert [event.number for event in ledger.events(query).events] == numbers


def test_pages_follow_each_other() -> None:
    with Ledger.in_memory() as ledger:
        walk_through(ledger)
        first = ledger.events(Query(limit=4))
        second = ledger.events(Query(limit=5, after=first.next))
        assert (first.next, second.next) == ("e4", None)
        assert [event.number for event in (*first.events, *second.events)] == [*range(1, 10)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query(ancestors_of="e42"), "unknown event id(s) e42"),
        (Query(descendants_of="e1", agent="other"), "unknown event id(s) e1 for agent 'other'"),
        (Query(after="12"), "an event id looks like e3"),
    ],
)
def test_ids_that_there_are_not_are_named(query: Query, message: str) -> None:
    with Ledger.in_memory() as ledger:
        walk_through(ledger)
        with pytest.raises(UnknownEvent) as refusal:
            ledger.events(query)
    assert str(refusal.value) == message


# --- append-only --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET summary = 'another' WHERE seq = 1",
        "UPDATE events SET marks = 0",
        "DELETE FROM events WHERE seq = 9",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 1",
        INSERT.format(11),
        INSERT.format("NULL"),
        "DELETE FROM links",
        "UPDATE links SET used = 1",
        "UPDATE head SET seq = 1",
        "DELETE FROM head",
        "DELETE FROM tallies",
    ],
)
def test_the_file_lets_nobody_change_what_was_logged(statement: str, path: Path) -> None:
    with Ledger.open(path) as ledger:
        walk_through(ledger)
        with closing(written(path)) as other, pytest.raises(sqlite3.IntegrityError, match="ledger"):
            other.execute(statement)
        assert ledger.verify().valid


# --- several at once ----------------------------------------------------------------------------------------------


def started(path: Path, agent: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(path), agent, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def promised(writers: list[subprocess.Popen[str]]) -> Iterator[tuple[int, str]]:
    """The number and hash of every event that a writer was told is stored."""
    for writer in writers:
        out, _ = writer.communicate(timeout=60)
        for line in out.splitlines():
            if line.count(" ") == 1 and len(line.partition(" ")[2]) == 64:
                yield int(line.partition(" ")[0][1:]), line.partition(" ")[2]


def test_processes_that_make_the_ledger_at_once_share_its_ids(path: Path) -> None:
    writers = [started(path, f"agent {number}", 20) for number in range(3)]
    ids = sorted(number for number, _ in promised(writers))
    assert ids == [*range(1, 61)]
    with Ledger.open(path) as ledger:
        found = ledger.verify()
        assert (found.valid, found.events) == (True, 60)
        assert [one.events for one in ledger.report().agents] == [20, 20, 20]


def test_threads_share_a_ledger(path: Path) -> None:
    with Ledger.open(path) as ledger:

        def work(agent: str) -> None:
            for _ in range(10):
                step(ledger, "observe", agent=agent)
                ledger.report(agent)

        threads = [Thread(target=work, args=[f"agent {number}"]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = ledger.verify()
    assert (found.valid, found.events) == (True, 40)


def test_a_kill_costs_no_event_that_was_promised(path: Path) -> None:
    writers = [started(path, f"agent {number}", 100_000) for number in range(3)]
    for writer in writers:
        assert writer.stdout is not None
        for _ in range(5):
            writer.stdout.readline()  # so that all are at work
    for writer in writers:
        writer.kill()
    told = dict(promised(writers))
    with Ledger.open(path) as ledger:
        found = ledger.verify()
        assert found.problems == ()
        kept = {event.number: digest for event, digest in ledger.export()}
        assert sorted(kept) == [*range(1, found.events + 1)]
        assert told.items() <= kept.items()
        step(ledger, "observe")


def test_what_a_call_costs_does_not_grow_with_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in steps of SQLite's machine, a hundred at a time, so that no clock decides."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def counted(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = opened(*args, **kwargs)
        connection.set_progress_handler(count, 100)
        return connection

    opened = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", counted)
    with Ledger.in_memory() as ledger:
        step(ledger, "observe", agent="small")
        for _ in range(20):
            step(ledger, "act", 1, agent="small")

        def costs() -> list[int]:
            found: list[int] = []
            for work in (
                lambda: ledger.report("small", ids=2),
                lambda: ledger.events(Query(agent="small", kind="act")),
                lambda: [step(ledger, "observe", 1, agent="small", session="s2") for _ in range(20)],
            ):
                before = steps
                work()
                found.append(steps - before)
            return found

        early = costs()
        for number in range(42, 3000):
            fields = {"agent": f"agent {number % 7}", "session": f"s{number % 11}"}
            step(ledger, ("observe", "remember", "act")[number % 3], **fields)
        late = costs()
    assert all(after <= 2 * before + 4 for before, after in zip(early, late, strict=True)), (early, late)


# --- what cannot be -----------------------------------------------------------------------------------------------


def test_looking_for_a_ledger_makes_none(path: Path) -> None:
    with pytest.raises(StoreError, match="there is none"):
        Ledger.open(path, must_exist=True)
    assert not path.exists()


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "text.db", tmp_path / "other.db"
    text.write_text("not a database at all, but long enough to look at" * 9)
    with closing(written(other)) as connection:
        connection.execute("CREATE TABLE events (seq)")
    before = other.read_bytes()
    for file in (text, other):
        with pytest.raises(StoreError, match="it is no ledger"):
            Ledger.open(file)
    assert other.read_bytes() == before


def test_a_newer_format_is_refused(path: Path) -> None:
    Ledger.open(path).close()
    with closing(written(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(StoreError, match="it has format 2, and this halo knows 1; use a newer halo"):
        Ledger.open(path)


def test_a_damaged_file_says_so(path: Path) -> None:
    with Ledger.open(path) as ledger:
        walk_through(ledger)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="it is damaged; restore it from a copy"), Ledger.open(path) as ledger:
        ledger.report()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="File exists"):
        Ledger.open(tmp_path / "file" / "ledger.db")


def fill(path: Path) -> None:
    """Log in a process whose files may have no more than 200,000 bytes, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    stored = 0
    try:
        with Ledger.open(path) as ledger:
            while True:
                step(ledger, "observe", summary="long " * 90)
                stored += 1
    except StoreError as failure:
        print(stored, failure)


def test_a_full_disk_stores_nothing_more_and_breaks_nothing(path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nfrom pathlib import Path\n"
    code += f"from tests.ledger.test_store import fill\nfill(Path({str(path)!r}))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    stored, _, message = done.stdout.partition(" ")
    assert "the disk" in message, done.stdout + done.stderr
    with Ledger.open(path) as ledger:
        found = ledger.verify()
        assert (found.problems, found.events) == ((), int(stored))
        assert step(ledger, "observe").event.number == int(stored) + 1


def test_a_refused_call_changes_no_byte(path: Path) -> None:
    with Ledger.open(path) as ledger:
        walk_through(ledger)
    before = path.read_bytes()
    with Ledger.open(path) as ledger, pytest.raises(EventRefused):
        step(ledger, "observe", 42)
    assert path.read_bytes() == before
