"""The ledger's SQLite file: its tables, how it is made and opened, and what its errors mean.

Nothing but `head` and the counts of `tallies` is ever changed: triggers let UPDATE, DELETE and REPLACE abort. They keep
mistakes out, not somebody who edits the file; that is found by the chain of hashes (see verification.py).
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from halo_runtime.errors import StoreError
from halo_runtime.ledger.analysis import COUNTED
from halo_runtime.ledger.events import GENESIS
from halo_runtime.store.atomic import make_folder, publish, sync_folder

APPLICATION: Final = 0x48414C4F
"""`HALO`, in the file's header."""
VERSION: Final = 1
PATIENCE_SECONDS: Final = 30.0
"""How long one waits for others; a writer holds the file for about as long as the disk takes."""
_GLANCE_MILLISECONDS: Final = 3
"""How long SQLite itself waits for a writer's turn: it would look ever more seldom, up to ten times a second."""

COLUMNS: Final = (
    "seq, kind, summary, uses, session, agent, time, client, about, trigger, form, target, made_by, governance"
)

_MARKS: Final = tuple(map(int, COUNTED))
TALLY: Final = (
    f"INSERT INTO tallies VALUES (?, 1, {', '.join('?' * len(_MARKS))}) ON CONFLICT (agent) DO UPDATE SET"
    f" events = events + 1, {', '.join(f'mark_{mark} = mark_{mark} + excluded.mark_{mark}' for mark in _MARKS)}"
)
"""Counts an event of an agent, with 1 or 0 for each of the marks that it may have."""
TALLIED: Final = f"agent, events, {', '.join(f'mark_{mark}' for mark in _MARKS)}"
COUNTS: Final = f"agent, count(*), {', '.join(f'sum((marks & {mark}) <> 0)' for mark in _MARKS)}"
"""The same, counted over rows of events."""

_TABLES: Final = f"""
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  kind TEXT NOT NULL, summary TEXT NOT NULL, uses TEXT NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL,
  time TEXT NOT NULL, client TEXT NOT NULL,
  about INTEGER, trigger TEXT, form TEXT, target TEXT, made_by TEXT, governance TEXT,
  marks INTEGER NOT NULL, hash BLOB NOT NULL
);
CREATE INDEX by_agent ON events (agent);
CREATE INDEX by_session ON events (session);
CREATE INDEX by_kind ON events (kind);
CREATE INDEX by_agent_and_session ON events (agent, session);
CREATE INDEX by_agent_and_kind ON events (agent, kind);
CREATE TABLE links (used INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (used, seq)) WITHOUT ROWID;
CREATE TABLE tallies (
  agent TEXT PRIMARY KEY, events INTEGER NOT NULL, {", ".join(f"mark_{mark} INTEGER NOT NULL" for mark in _MARKS)}
) WITHOUT ROWID;
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL);
INSERT INTO head VALUES (1, 0, x'{GENESIS.hex()}');
CREATE TRIGGER events_go_on BEFORE INSERT ON events
  WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)
  BEGIN SELECT RAISE(ABORT, 'events of a ledger are numbered without gaps'); END;
CREATE TRIGGER head_goes_on BEFORE UPDATE ON head WHEN NEW.seq <= OLD.seq
  BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
"""

_INDEX: Final = "CREATE INDEX marked_{0} ON events (agent, seq, marks) WHERE (marks & {0}) <> 0;\n"
"""One for each mark, of the events that have it: a report lists them without looking at any other."""

_FOREVER: Final = """
CREATE TRIGGER {0}_are_never_{1} BEFORE {2} ON {0}
  BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: its {0} are never {1}'); END;
"""

SCHEMA: Final = (
    _TABLES
    + "".join(_INDEX.format(mark) for mark in _MARKS)
    + "".join(
        _FOREVER.format(table, done, action)
        for table, done, action in (
            ("events", "edited", "UPDATE"),
            ("events", "deleted", "DELETE"),
            ("links", "edited", "UPDATE"),
            ("links", "deleted", "DELETE"),
            ("head", "deleted", "DELETE"),
            ("tallies", "deleted", "DELETE"),
        )
    )
)

_ADVICE: Final = {
    sqlite3.SQLITE_BUSY: "another process holds its lock; end that process or try again",
    sqlite3.SQLITE_LOCKED: "another process holds its lock; end that process or try again",
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; look at its path and permissions",
    sqlite3.SQLITE_NOTADB: "it is no ledger",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a copy",
    sqlite3.SQLITE_FULL: "the disk is full; make room and try again",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written",
}


@contextmanager
def failing(path: str) -> Generator[None]:
    """Turn what SQLite and the system complain of into StoreError with what to do."""
    try:
        yield
    except sqlite3.Error as failure:
        code = getattr(failure, "sqlite_errorcode", None)
        advice = _ADVICE.get(code & 0xFF) if code is not None else None
        raise StoreError(f"the ledger {path}: {advice or failure}") from None
    except UnicodeDecodeError:
        raise StoreError(f"the ledger {path}: it is damaged; restore it from a copy") from None
    except OSError as failure:
        raise StoreError(f"the ledger {path}: {failure.strerror or failure}") from None


def create(path: Path) -> None:
    """Make an empty ledger, unless another process does so first. It has its name only when it is whole."""
    make_folder(path.parent)
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(hidden, isolation_level=None)) as connection:
            lay_out(connection)
            connection.execute("PRAGMA journal_mode = WAL")
        try:
            publish(hidden, path)
        except FileExistsError:
            return
        sync_folder(path.parent)
    finally:
        for leftover in ("", "-wal", "-shm", "-journal"):
            hidden.with_name(hidden.name + leftover).unlink(missing_ok=True)


def lay_out(connection: sqlite3.Connection) -> None:
    """Write the tables into an empty database."""
    connection.executescript(
        f"BEGIN;\n{SCHEMA}PRAGMA application_id = {APPLICATION};\nPRAGMA user_version = {VERSION};\nCOMMIT;"
    )


def connect(path: Path) -> sqlite3.Connection:
    """Open a ledger that is there. Raises StoreError for what is none, and for one of a newer Halo."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=PATIENCE_SECONDS,
        check_same_thread=False,
    )  # fmt: skip
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise StoreError(f"the ledger {path}: it is no ledger")
        if version != VERSION:
            raise StoreError(
                f"the ledger {path}: it has format {version}, and this halo knows {VERSION}; use a newer halo"
            )
        for pragma in ("synchronous = FULL", "trusted_schema = OFF", "cell_size_check = ON", "recursive_triggers = ON"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def begin_writing(connection: sqlite3.Connection) -> None:
    """Begin a transaction when it is this connection's turn. Raises sqlite3.OperationalError where it never comes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    connection.execute(f"PRAGMA busy_timeout = {_GLANCE_MILLISECONDS}")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as failure:
                if failure.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            else:
                return
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(PATIENCE_SECONDS * 1000)}")


def definitions(connection: sqlite3.Connection) -> dict[str, str]:
    """Name → SQL of everything that the file defines."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return dict(rows)


def intended() -> dict[str, str]:
    """Name → SQL of everything that a ledger defines."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        lay_out(connection)
        return definitions(connection)
