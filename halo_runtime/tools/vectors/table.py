"""The file of a vector store: texts, metadata and vectors of any number of namespaces in one SQLite database.

A vector is kept as the float32 numbers of a unit vector, lowest byte first. A namespace notes the model and the length
of its vectors, for others cannot be compared with them, and how often something was removed: with the largest number
of a row that tells a reader what has changed since it last looked, whoever changed it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.vectors.entries import Entry

MAX_ENTRIES: Final = 500_000
"""Of one namespace; all of its vectors are in memory while it is searched."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS halo_vector_spaces (
  namespace TEXT PRIMARY KEY, model TEXT NOT NULL, dimension INTEGER NOT NULL, removals INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS halo_vectors (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL,
  metadata TEXT NOT NULL, source TEXT, vector BLOB NOT NULL, UNIQUE (namespace, id)
);
CREATE INDEX IF NOT EXISTS halo_vectors_in_order ON halo_vectors (namespace);
CREATE INDEX IF NOT EXISTS halo_vectors_by_source ON halo_vectors (namespace, source) WHERE source IS NOT NULL;
"""
_ENTRY: Final = "id, text, metadata, source"
_AT_ONCE: Final = 500
"""Values of one statement; SQLite takes a thousand at least."""
_ROWS: Final = 4096
"""Vectors that are read together."""

T = TypeVar("T")


@record
class Space:
    """What a namespace notes of itself."""

    model: str
    dimension: int
    removals: int


class Table:
    """One namespace in an open file. Blocking; belongs to the thread that made it. Raises sqlite3.Error."""

    def __init__(self, path: Path | str, namespace: str) -> None:
        self._namespace = namespace
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")  # readers go on while another process writes
            if self._value("SELECT count(*) FROM sqlite_master WHERE name LIKE 'halo_vector%'") < 4:
                self._connection.executescript(_SCHEMA)
        except sqlite3.Error:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def reading(self) -> Generator[None]:
        """All that is read inside is of one moment."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Generator[None]:
        """All that is written inside is there at the end, or nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # some errors have rolled it back already
                self._connection.execute("ROLLBACK")
            raise

    # --- reading --------------------------------------------------------------------------------------------------

    def space(self) -> Space | None:
        """What the namespace notes; None for one that nothing was ever put into."""
        row = self._connection.execute(
            "SELECT model, dimension, removals FROM halo_vector_spaces WHERE namespace = ?", (self._namespace,)
        ).fetchone()
        return None if row is None else Space(*row)

    def count(self) -> int:
        """How many entries there are."""
        return self._value("SELECT count(*) FROM halo_vectors WHERE namespace = ?", self._namespace)

    def is_empty(self) -> bool:
        """Whether there is no entry; counting them all takes long."""
        query = "SELECT EXISTS (SELECT 1 FROM halo_vectors WHERE namespace = ?)"
        return not self._value(query, self._namespace)

    def get(self, id_: str) -> Entry | None:
        """The entry with an id."""
        row = self._connection.execute(
            f"SELECT {_ENTRY} FROM halo_vectors WHERE namespace = ? AND id = ?", (self._namespace, id_)
        ).fetchone()
        return None if row is None else _entry(row)

    def entries(self, seqs: Sequence[int]) -> dict[int, Entry]:
        """The entries with these numbers."""
        found: dict[int, Entry] = {}
        for part, marks in _parts(seqs):
            rows = self._connection.execute(f"SELECT seq, {_ENTRY} FROM halo_vectors WHERE seq IN ({marks})", part)
            found |= {row[0]: _entry(row[1:]) for row in rows}
        return found

    def numbers(self) -> list[int]:
        """The numbers of all entries."""
        rows = self._connection.execute("SELECT seq FROM halo_vectors WHERE namespace = ?", (self._namespace,))
        return [row[0] for row in rows]

    def later_than(self, seq: int) -> Iterator[tuple[list[int], bytes]]:
        """Numbers and vectors of the entries that came after a number, in order, some at a time."""
        found = self._connection.execute(
            "SELECT seq, vector FROM halo_vectors WHERE namespace = ? AND seq > ? ORDER BY seq", (self._namespace, seq)
        )
        while rows := found.fetchmany(_ROWS):
            yield [row[0] for row in rows], b"".join([row[1] for row in rows])

    def sources(self) -> list[str]:
        """The files that entries were taken from."""
        rows = self._connection.execute(
            "SELECT DISTINCT source FROM halo_vectors WHERE namespace = ? AND source IS NOT NULL", (self._namespace,)
        )
        return [row[0] for row in rows]

    def of_source(self, source: str) -> list[tuple[Entry, bytes]]:
        """The entries that were taken from a file, with their vectors."""
        rows = self._connection.execute(
            f"SELECT {_ENTRY}, vector FROM halo_vectors WHERE namespace = ? AND source = ? ORDER BY seq",
            (self._namespace, source),
        )
        return [(_entry(row[:4]), row[4]) for row in rows]

    # --- writing --------------------------------------------------------------------------------------------------

    def note(self, model: str, dimension: int) -> None:
        """Whose vectors come now; an empty namespace may change its mind. Inside `writing`."""
        self._connection.execute(
            "INSERT INTO halo_vector_spaces VALUES (?, ?, ?, 0) ON CONFLICT (namespace) DO UPDATE SET"
            " model = excluded.model, dimension = excluded.dimension",
            (self._namespace, model, dimension),
        )

    def put(self, entries: Sequence[Entry], vectors: Iterable[bytes]) -> None:
        """Add entries in place of those with their ids. Inside `writing`."""
        self._remove("id", [entry.id for entry in entries])
        if self.count() + len(entries) > MAX_ENTRIES:
            raise ToolError(f"the namespace would have more than {MAX_ENTRIES:,} entries; use several namespaces")
        self._connection.executemany(
            "INSERT INTO halo_vectors (namespace, id, text, metadata, source, vector) VALUES (?, ?, ?, ?, ?, ?)",
            (
                (self._namespace, entry.id, entry.text, json.dumps(entry.metadata), entry.source, vector)
                for entry, vector in zip(entries, vectors, strict=True)
            ),
        )

    def remove(self, id_: str) -> bool:
        """Whether there was an entry with that id. Inside `writing`."""
        return self._remove("id", [id_]) > 0

    def remove_sources(self, sources: Sequence[str]) -> int:
        """Remove all that was taken from files; how many entries that was. Inside `writing`."""
        return self._remove("source", sources)

    def _remove(self, column: str, values: Sequence[str]) -> int:
        removed = 0
        for part, marks in _parts(values):
            done = self._connection.execute(
                f"DELETE FROM halo_vectors WHERE namespace = ? AND {column} IN ({marks})", (self._namespace, *part)
            )
            removed += done.rowcount
        if removed:
            self._connection.execute(
                "UPDATE halo_vector_spaces SET removals = removals + 1 WHERE namespace = ?", (self._namespace,)
            )
        return removed

    def _value(self, query: str, *values: str) -> int:
        return self._connection.execute(query, values).fetchone()[0]


def _parts(values: Sequence[T]) -> Iterator[tuple[Sequence[T], str]]:
    """Values as many as a statement takes, with the marks that stand for them."""
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        yield part, ", ".join("?" * len(part))


def _entry(row: Sequence[str]) -> Entry:
    id_, text, metadata, source = row
    return Entry(id_, text, json.loads(metadata), source)
