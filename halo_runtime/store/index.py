"""The index of a folder of journals: what a listing shows, and the seal of each ended run, in one SQLite file.

The listing's columns are only a cache, made anew from any journal whose size or time changed. The seals are not: they
are written by the run itself when it ends, so that a journal whose tail is missing is told from one that goes on.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from halo_lang.records import record
from halo_runtime.errors import StoreError
from halo_runtime.json_types import JsonObject
from halo_runtime.store.atomic import make_folder

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS summaries (run_id TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, document TEXT);
CREATE TABLE IF NOT EXISTS seals (run_id TEXT PRIMARY KEY, status TEXT, entries INTEGER, head TEXT, last_sum TEXT);
"""
_PATIENCE_SECONDS: Final = 5.0


@record
class Seal:
    """What a run said of its journal when it stopped: status, entries and head of its trace, sum of its last line."""

    status: str
    entries: int
    head: str
    last_sum: str


@record
class Summary:
    """A run's line in a listing, true while its journal has this size (bytes) and time (nanoseconds)."""

    size: int
    mtime: int
    document: JsonObject


class Index:
    """The index file at `path`; without one everything is looked up in the journals."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def summaries(self) -> dict[str, Summary]:
        """All lines by run id. An index that cannot be read is as good as none."""
        try:
            rows = self._read("SELECT run_id, size, mtime, document FROM summaries")
            return {run_id: Summary(size, mtime, json.loads(document)) for run_id, size, mtime, document in rows}
        except (sqlite3.Error, OSError, ValueError):
            return {}

    def put(self, summaries: Iterable[tuple[str, Summary]], seal: tuple[str, Seal] | None = None) -> None:
        """Keep lines, and the seal of a run that stopped. What cannot be written is left out: it is only an index."""
        rows = [(run_id, one.size, one.mtime, json.dumps(one.document)) for run_id, one in summaries]
        try:
            with self._changed() as connection:
                connection.executemany("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?)", rows)
                if seal is not None:
                    run_id, kept = seal
                    values = (run_id, kept.status, kept.entries, kept.head, kept.last_sum)
                    connection.execute("INSERT OR REPLACE INTO seals VALUES (?, ?, ?, ?, ?)", values)
        except (sqlite3.Error, OSError):
            return

    def seal(self, run_id: str) -> Seal | None:
        """What the run said when it stopped; None where nothing is known. Raises StoreError for a damaged index."""
        try:
            rows = self._read("SELECT status, entries, head, last_sum FROM seals WHERE run_id = ?", run_id)
        except (sqlite3.Error, OSError) as failure:
            raise StoreError(f"the index {self._path} cannot be read: {failure}; delete it, it is made anew") from None
        return Seal(*rows[0]) if rows else None

    def forget(self, run_ids: Iterable[str]) -> None:
        """Take runs out, as far as the index can be written."""
        rows = [(run_id,) for run_id in run_ids]
        try:
            with self._changed() as connection:
                connection.executemany("DELETE FROM summaries WHERE run_id = ?", rows)
                connection.executemany("DELETE FROM seals WHERE run_id = ?", rows)
        except (sqlite3.Error, OSError):
            return

    def _read(self, query: str, *values: str) -> list[Any]:
        """Rows of the index, which is not written to: it may stand on a disk that is full, and be empty for that."""
        if not self._path.exists():
            return []
        with closing(sqlite3.connect(self._path, timeout=_PATIENCE_SECONDS)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'seals'").fetchall()
            return connection.execute(query, values).fetchall() if tables else []

    @contextmanager
    def _changed(self) -> Generator[sqlite3.Connection]:
        """A connection whose work is kept as a whole when the body ends well."""
        make_folder(self._path.parent)
        if not self._path.exists():
            self._path.touch(0o600)
        connection = sqlite3.connect(self._path, timeout=_PATIENCE_SECONDS)
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
            with connection:
                yield connection
        finally:
            connection.close()
