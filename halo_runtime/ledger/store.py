"""The ledger: one SQLite file that several processes log to and read at once (seed 001, spec 7.2).

A call that logs is one transaction: it takes the file's write lock, sees the last event, and adds the next one with its
links, marks and hash. What it returns is on the disk (WAL, `synchronous = FULL`). Readers never wait for writers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

from halo_runtime.errors import StoreError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.ledger import rules
from halo_runtime.ledger.events import Event, time_text
from halo_runtime.ledger.reading import Page, Query, event_of, every, page
from halo_runtime.ledger.report import IDS, Report, report_on
from halo_runtime.ledger.schema import begin_writing, connect, create, failing, lay_out
from halo_runtime.ledger.writing import Logged, append, known_events

if TYPE_CHECKING:
    from halo_runtime.ledger.exchange import Imported
    from halo_runtime.ledger.verification import Verdict


def _now() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """An open ledger. It may be used from several threads; close it, or use it in a `with` statement."""

    def __init__(
        self, shown: str, writer: sqlite3.Connection, reader: sqlite3.Connection, now: Callable[[], datetime]
    ) -> None:
        """`open` and `in_memory` make one. `shown` names it in errors; `reader` may be `writer`."""
        self._shown = shown
        self._writer, self._reader = writer, reader
        self._writing = Lock()
        self._reading = self._writing if reader is writer else Lock()
        self._now = now

    @classmethod
    def open(cls, path: Path | str, *, must_exist: bool = False, now: Callable[[], datetime] = _now) -> Ledger:
        """Open the ledger at `path`, a new one where there is none unless it must exist.

        Raises StoreError where it cannot be read or written, and for a file that is no ledger.
        """
        path = Path(path)
        with failing(str(path)):
            if not path.exists():
                if must_exist:
                    raise StoreError(f"the ledger {path}: there is none")
                create(path)
            writer = connect(path)
            try:
                return cls(str(path), writer, connect(path), now)
            except BaseException:
                writer.close()
                raise

    @classmethod
    def in_memory(cls, *, now: Callable[[], datetime] = _now) -> Ledger:
        """An empty ledger that is gone when it is closed."""
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        lay_out(connection)
        return cls("in memory", connection, connection, now)

    def close(self) -> None:
        """Close it; everything logged has been on the disk before."""
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- logging ------------------------------------------------------------------------------------------------

    def log(self, /, kind: str, *, client: str = "", **fields: Json) -> Logged:
        """Store one event, durably. `fields` are those of the seed: summary, uses, session, agent, and the kind's own.

        Raises EventRefused with all that is wrong with it, StoreError where the file cannot be written; then nothing
        is stored.
        """
        return self.add({"kind": kind, **fields}, client=client)

    def add(self, fields: Mapping[str, Json], *, client: str = "") -> Logged:
        """As `log`, of a call as somebody else sent it: any names and values, `kind` among them."""
        draft = rules.read(fields)
        if draft.problems:  # refused in any case: what its links have wrong needs no lock
            with self._snapshot() as connection:
                known = known_events(connection, draft.linked)
            raise rules.EventRefused((*draft.problems, *rules.link_problems(draft, known)))
        with self.transaction() as connection:
            return append(connection, draft, time_text(self._now()), rules.client_name(client))

    def take(self, lines: Iterable[str | bytes], *, partial: bool = False) -> Imported:
        """Import JSON lines as `export` writes them: new ids, links mapped to them, times kept.

        All or nothing: where a line is refused nothing is stored, unless `partial`.
        """
        from halo_runtime.ledger.exchange import take

        return take(self, lines, partial=partial, now=time_text(self._now()))

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """The connection that writes, in a transaction that is kept as a whole when the body ends well."""
        with self._writing, failing(self._shown):
            connection = self._writer
            begin_writing(connection)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    # --- reading ------------------------------------------------------------------------------------------------

    def events(self, query: Query | None = None) -> Page:
        """A page of events. Raises UnknownEvent for an id that there is not."""
        with self._snapshot() as connection:
            return page(connection, query or Query())

    def report(
        self,
        agent: str | None = None,
        *,
        session: str | None = None,
        since: str | None = None,
        until: str | None = None,
        ids: int | None = IDS,
    ) -> Report:
        """What the trace of an agent shows, or of each. `ids`: how many events a cell shows at most, None for all."""
        query = Query(agent=agent, session=session, since=since, until=until)
        with self._snapshot() as connection:
            return report_on(connection, query, ids)

    def verify(self, expected: tuple[int, str] | None = None) -> Verdict:
        """Whether the ledger is what was logged. `expected`: an event's number, and its hash as it was once told."""
        from halo_runtime.ledger.verification import verify

        with self._snapshot() as connection:
            return verify(connection, expected)

    def export(self) -> Iterator[tuple[Event, str]]:
        """All events in order, each with its hash (hex). Nothing else can be read from this object meanwhile."""
        with self._snapshot() as connection:
            for row in every(connection):
                yield event_of(row), row[15].hex()

    def head(self) -> JsonObject | None:
        """Id and hash of the last event, which bind all of the ledger; None where it is empty."""
        with self._snapshot() as connection:
            row = connection.execute("SELECT seq, hash FROM head").fetchone()
        return {"id": f"e{row[0]}", "hash": row[1].hex()} if row and row[0] else None

    @contextmanager
    def _snapshot(self) -> Generator[sqlite3.Connection]:
        """The connection that reads, with the ledger as it is at this moment."""
        with self._reading, failing(self._shown):
            connection = self._reader
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
