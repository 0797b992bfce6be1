"""`verify` finds whatever is done to the file around its triggers (spec 7.2)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from halo_runtime.errors import StoreError
from halo_runtime.ledger import Ledger, Verdict
from halo_runtime.ledger.events import GENESIS, chained
from halo_runtime.ledger.reading import event_of
from halo_runtime.ledger.schema import COLUMNS
from tests.ledger.support import step, walk_through

TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of nine events."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        walk_through(ledger)
    return path


def tamper(path: Path, *statements: str) -> None:
    """Change the file as somebody who takes its triggers away and puts them back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute(TRIGGERS).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


def verdict(path: Path, expected: tuple[int, str] | None = None) -> Verdict:
    with Ledger.open(path) as ledger:
        return ledger.verify(expected)


def test_a_ledger_that_nobody_touched_is_valid(path: Path) -> None:
    found = verdict(path)
    with Ledger.open(path) as ledger:
        assert ledger.head() == {"id": "e9", "hash": found.head}
    assert found == Verdict(9, found.head, ())
    assert verdict(path, (9, found.head)).valid


def test_an_empty_ledger_is_valid() -> None:
    with Ledger.in_memory() as ledger:
        assert ledger.verify() == Verdict(0, "", ())
        assert ledger.head() is None


CHANGED = [
    ("summary", "'another'"), ("kind", "'recall'"), ("uses", "''"), ("uses", "'2 1'"), ("uses", "'x'"),
    ("uses", "'99'"),
    ("session", "'s9'"), ("agent", "'other'"), ("time", "'2020-01-01T00:00:00.000000Z'"), ("client", "'x'"),
    ("trigger", "'self'"), ("form", "'silence'"), ("about", "2"), ("target", "'x'"), ("made_by", "'user'"),
    ("governance", "'none'"), ("hash", "x'00'"), ("summary", "x'ff'"), ("kind", "'think'"), ("about", "'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), CHANGED)
def test_a_changed_event_is_named(column: str, value: str, path: Path) -> None:
    tamper(path, f"UPDATE events SET {column} = {value} WHERE seq = 3")
    assert "e3 is not what was logged, or an event before it is not" in verdict(path).problems


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (["DELETE FROM events WHERE seq = 9"], "e9 to e9 are missing at the end"),
        (["DELETE FROM events WHERE seq > 6"], "e7 to e9 are missing at the end"),
        (["DELETE FROM events"], "e1 to e9 are missing at the end"),
        (["DELETE FROM events WHERE seq = 4"], "e4 is missing; what is behind it cannot be checked"),
        (["DELETE FROM events WHERE seq = 9", "UPDATE events SET seq = 9 WHERE seq = 8"], "e8 is missing"),
        (["UPDATE events SET seq = seq + 100"], "e1 is missing; what is behind it cannot be checked"),
        (
            ["UPDATE events SET seq = 100 WHERE seq = 1", "UPDATE events SET seq = 1 WHERE seq = 3",
             "UPDATE events SET seq = 3 WHERE seq = 100"],
            "e1 is not what was logged",
        ),
        (["UPDATE events SET marks = 0 WHERE seq = 5"], "what e5 shows was changed"),
        (["UPDATE events SET marks = marks | 8192 WHERE seq = 3"], "what e3 shows was changed"),
        (["DELETE FROM links WHERE seq = 5"], "links of e5 are missing"),
        (["INSERT INTO links VALUES (1, 9)"], "there are links that no event has"),
        (["UPDATE head SET seq = 12"], "e10 to e12 are missing at the end"),
        (["UPDATE head SET seq = 4"], "the ledger's end is not what was logged"),
        (["DELETE FROM head"], "the ledger's end is not what was logged"),
        (["UPDATE tallies SET mark_1 = 7"], "the counts of agent 'demo' are not those of its events"),
        (["DELETE FROM tallies"], "the counts of agent 'demo' are not those of its events"),
        (["DROP INDEX marked_2"], "marked_2 is missing: the file's own protection"),
    ],
)  # fmt: skip
def test_every_kind_of_tampering_is_found(statements: list[str], problem: str, path: Path) -> None:
    tamper(path, *statements)
    assert any(one.startswith(problem) for one in verdict(path).problems), verdict(path).problems


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DROP TRIGGER events_are_never_edited", "events_are_never_edited is missing"),
        ("CREATE TRIGGER mine AFTER INSERT ON events BEGIN SELECT 1; END", "mine does not belong there"),
        ("CREATE VIEW more AS SELECT 1", "more does not belong there"),
    ],
)
def test_a_file_without_its_protection_is_told(statement: str, problem: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    (found,) = verdict(path).problems
    assert found == f"{problem}: the file's own protection, or its shape, is not that of a ledger"


def forge(path: Path) -> None:
    """Change e1, and write all hashes anew, as only somebody can who knows Halo."""
    tamper(path, "UPDATE events SET summary = 'forged' WHERE seq = 1")
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"SELECT {COLUMNS} FROM events ORDER BY seq").fetchall()
    digest, statements = GENESIS, list[str]()
    for row in rows:
        digest = chained(digest, event_of(row))
        statements.append(f"UPDATE events SET hash = x'{digest.hex()}' WHERE seq = {row[0]}")
    tamper(path, *statements, f"UPDATE head SET hash = x'{digest.hex()}'")


def test_a_ledger_that_was_written_anew_is_found_by_a_hash_that_was_kept(path: Path) -> None:
    kept = verdict(path).head
    forge(path)
    assert verdict(path).valid
    assert verdict(path, (9, kept)).problems == (
        "e9 has another hash than the one expected: it, or an event before it, was changed",
    )


def test_an_expected_event_must_be_there(path: Path) -> None:
    assert verdict(path, (10, "0" * 64)).problems == ("e10 is missing",)


def test_nothing_is_logged_behind_an_end_that_is_missing(path: Path) -> None:
    tamper(path, "DELETE FROM events WHERE seq = 9")
    with Ledger.open(path) as ledger, pytest.raises(StoreError, match="events are missing at the ledger's end"):
        step(ledger, "observe")


def test_only_some_problems_are_told(path: Path) -> None:
    with Ledger.open(path) as ledger:
        for _ in range(40):
            step(ledger, "observe")
    tamper(path, "UPDATE events SET hash = x'00'")
    assert len(verdict(path).problems) == 20
