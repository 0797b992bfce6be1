"""`query execute schema explain` of an SQLite file, in threads; a call that nobody waits for any more is interrupted.

Reading is read-only three times over: the file is opened so, SQLite's authorizer looks at every step of a statement
before it is run, and only one statement is taken. Nothing but the file itself can be reached by either way.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Final, TypeVar

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, is_list, is_object
from halo_runtime.prompts import cut
from halo_runtime.tools.sql.rows import MAX_CELL, Rows, unique_names
from halo_runtime.tools.sql.statements import Statement, read_statement
from halo_runtime.tools.sql.tables import Table, column, unknown_table
from halo_runtime.tools.sql.urls import SQLitePlace
from halo_runtime.tools.sqlite_files import LOCK_SECONDS, is_busy
from halo_runtime.tools.threads import Abandoned, Stop, Workers
from halo_runtime.values import compact

T = TypeVar("T")

_STEPS: Final = 5_000
"""How many steps of SQLite's machine pass between two looks whether to go on, well under a millisecond."""
_MAX_VALUE: Final = 64 * 1024 * 1024

_TELLING: Final = (
    "collation_list compile_options encoding foreign_key_check foreign_key_list freelist_count function_list index_info"
    " index_list index_xinfo integrity_check page_count page_size pragma_list quick_check schema_version table_info"
    " table_list table_xinfo user_version"
)
_PRAGMAS: Final = frozenset(_TELLING.split())
"""Those that only tell."""
_SETTINGS: Final = frozenset(["encoding", "page_size", "schema_version", "user_version"])
"""Of these, those that set something where they are given a value."""
_FUNCTIONS: Final = frozenset(["load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"])
"""Functions that reach beyond the file, where they are there at all."""

_ADVICE: Final = {
    sqlite3.SQLITE_BUSY: "another process holds its lock; end that process or try again",
    sqlite3.SQLITE_LOCKED: "another process holds its lock; end that process or try again",
    sqlite3.SQLITE_READONLY: "the file cannot be written",
    sqlite3.SQLITE_NOTADB: "change the url in the declaration",
    sqlite3.SQLITE_CORRUPT: "restore the file from a copy",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_TOOBIG: "give or ask for less",
}

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


class SQLite:
    """One file, opened by each call anew. `seconds` is the longest time for a statement."""

    def __init__(
        self, place: SQLitePlace, *, name: str, read_only: bool, seconds: float, max_rows: int,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:  # fmt: skip
        self._place = place
        self._read_only = read_only
        self._seconds = seconds
        self._max_rows = max_rows
        self._lock_seconds = lock_seconds
        self._workers = Workers(name)

    async def query(self, sql: Json, params: Json) -> Json:
        """The rows of a statement that only reads."""
        statement = read_statement(sql, params, "sqlite")
        return await self._reading(lambda connection: self._rows(connection, statement.text, _bound(statement)))

    async def execute(self, sql: Json, params: Json) -> Json:
        """Do a statement in a transaction of its own."""
        statement = read_statement(sql, params, "sqlite")
        return await self._workers.do(lambda stop: self._write(statement, stop))

    async def explain(self, sql: Json, params: Json) -> Json:
        """The plan of a statement, which is not run, as text."""
        statement = read_statement(sql, params, "sqlite")

        def work(connection: sqlite3.Connection) -> Json:
            rows = connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", _bound(statement)).fetchall()
            if not rows:
                raise ToolError("there is no plan for a statement of this kind")
            return cut("\n".join(_plan(rows)), MAX_CELL)

        return await self._reading(work, authorizer=_in_file)

    async def schema(self, table: str | None) -> Json:
        """Tables and views with their columns."""
        found = await self._reading(_tables)
        chosen = [entry for entry in found if table is None or table in entry.names]
        if table is not None and not chosen:
            raise ToolError(unknown_table(table, found))
        rows = Rows(self._max_rows, "ask for one table")
        for entry in chosen:
            if not rows.add(("table", "kind", "columns"), (entry.names[0], entry.kind, entry.columns)):
                break
        return rows.result()

    async def probe(self) -> str:
        """Which file it is."""
        if not self._read_only and not self._place.path.exists():
            return f"SQLite, {self._place.shown} is made by the first execute"
        tables = len(await self._reading(_tables))
        mode = "read only" if self._read_only else "may change it"
        return f"SQLite {sqlite3.sqlite_version}, {self._place.shown}, {tables} tables, {mode}"

    async def close(self) -> None:
        """End the threads; no connection outlives its call."""
        self._workers.close()

    # --- reading ------------------------------------------------------------------------------------------------

    async def _reading(self, work: Callable[[sqlite3.Connection], T], authorizer: Authorizer | None = None) -> T:
        return await self._workers.do(lambda stop: self._read(work, authorizer or _only_reads, stop))

    def _read(self, work: Callable[[sqlite3.Connection], T], authorizer: Authorizer, stop: Stop) -> T:
        def once() -> T:
            with self._open("ro", stop) as connection:
                connection.set_authorizer(authorizer)
                return work(connection)

        try:
            return self._patiently(once, stop)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._explained(error, stop) from None

    def _rows(self, connection: sqlite3.Connection, text: str, values: Sequence[Json]) -> list[Json]:
        with closing(connection.execute(text, values)) as cursor:
            if cursor.description is None:
                raise ToolError("query only reads, and this statement gives no rows; execute may take it")
            names = unique_names([entry[0] for entry in cursor.description])
            rows = Rows(self._max_rows)
            for row in cursor:
                if not rows.add(names, row):
                    break
            return rows.result()

    # --- writing ------------------------------------------------------------------------------------------------

    def _write(self, statement: Statement, stop: Stop) -> Json:
        try:
            with self._open("rwc", stop) as connection:
                return self._transaction(connection, statement, stop)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._explained(error, stop) from None

    def _transaction(self, connection: sqlite3.Connection, statement: Statement, stop: Stop) -> Json:
        try:
            self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"), stop)
            connection.set_authorizer(_in_file)
            result = self._done(connection, statement)
            connection.set_authorizer(None)
            self._patiently(lambda: connection.execute("COMMIT"), stop)
        except BaseException:
            with suppress(sqlite3.Error):  # closing takes it back too
                connection.set_authorizer(None)
                connection.set_progress_handler(None, 0)  # it would interrupt this too
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            raise
        return result

    def _done(self, connection: sqlite3.Connection, statement: Statement) -> Json:
        with closing(connection.execute(statement.text, _bound(statement))) as cursor:
            returned: list[Json] | None = None
            if cursor.description is not None:
                names = unique_names([entry[0] for entry in cursor.description])
                rows = Rows(self._max_rows)
                room = True
                for row in cursor:  # to the end, as only then all is done
                    room = room and rows.add(names, row)
                returned = rows.result()
        (changes,) = connection.execute("SELECT changes()").fetchone()
        return {"rowCount": changes} if returned is None else {"rowCount": changes, "rows": returned}

    def _patiently(self, work: Callable[[], T], stop: Stop) -> T:
        """What `work` gives, tried again while another process holds the lock; a wait inside SQLite has no end."""
        deadline = time.monotonic() + self._lock_seconds
        pause = 0.002
        while True:
            try:
                return work()
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
            stop.wait(pause)
            pause = min(pause * 2, 0.1)

    # --- the file -----------------------------------------------------------------------------------------------

    @contextmanager
    def _open(self, mode: str, stop: Stop) -> Generator[sqlite3.Connection]:
        """The file, open for one call. Raises ToolError where there is none."""
        path = self._place.path
        if mode == "ro" and not path.is_file():
            raise ToolError(f"there is no file {self._place.shown}; change the url in the declaration, or make it")
        if not path.parent.is_dir():
            raise ToolError(f"there is no folder for {self._place.shown}; create it, or change the url")
        ends = time.monotonic() + self._seconds

        def look() -> int:
            """Other than 0 interrupts the statement."""
            with suppress(Abandoned):
                stop.check()
                return int(time.monotonic() > ends)
            return 1

        address = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)
        with closing(connection):
            connection.text_factory = _text
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
            connection.set_progress_handler(look, _STEPS)
            yield connection

    def _explained(self, error: Exception, stop: Stop) -> ToolError:
        stop.check()  # where it was interrupted because nobody waits
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        told = str(error)
        if code == sqlite3.SQLITE_INTERRUPT:
            told, advice = (
                f"it took longer than {self._seconds:g} s",
                "ask for less, or raise timeout: in the declaration",
            )
        elif code == sqlite3.SQLITE_AUTH:
            told, advice = "the statement is not allowed", "query only reads, and neither way reaches other files"
        elif isinstance(error, sqlite3.Warning) or "one statement" in told:
            told, advice = "one statement at a time", ""
        else:
            advice = _ADVICE.get(code, "schema() lists tables and columns" if "no such" in told else "")
        return ToolError(
            "; ".join(filter(None, [told, advice])), retryable=isinstance(error, sqlite3.Error) and is_busy(error)
        )


def _only_reads(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    """SQLite's question before each step of a statement that should only read."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
        # Asked for where json_each and its kin are used; an update in earnest needs a pragma that is refused.
        return sqlite3.SQLITE_OK
    if action in (sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA):
        return _in_file(action, first, second, database, source)
    return sqlite3.SQLITE_DENY


def _in_file(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    """The same where it may change the file, but reach no other, and neither end nor begin a transaction."""
    if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA:
        name = (first or "").lower()
        allowed = name in _PRAGMAS and not (second and name in _SETTINGS)
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _tables(connection: sqlite3.Connection) -> list[Table]:
    """Tables and views, in the order of their names."""
    listed = connection.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_'"
        " ORDER BY name"
    ).fetchall()
    return [Table((name,), kind, _columns(connection, name)) for name, kind in listed]


def _columns(connection: sqlite3.Connection, table: str) -> list[Json]:
    keys = connection.execute('SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', (table,)).fetchall()
    references = {source: f"{target}.{field}" if field else target for source, target, field in keys}
    found = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (table,)).fetchall()
    return [
        column(name, type_, not (needed or key), bool(key), references.get(name)) for name, type_, needed, key in found
    ]


def _plan(rows: Sequence[Sequence[Json]]) -> Generator[str]:
    """SQLite's rows of a plan, each below the one it belongs to."""
    depths: dict[int, int] = {0: -1}
    for number, parent, _, detail in rows:
        depths[number] = depths.get(parent, -1) + 1
        yield f"{'  ' * depths[number]}{detail}"


def _bound(statement: Statement) -> list[Json]:
    """Values as SQLite takes them: lists and objects as JSON. Raises ToolError."""
    return [_parameter(value.value) for value in statement.values]


def _parameter(value: Json) -> Json:
    if is_list(value) or is_object(value):
        return compact(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ToolError(f"{value} is beyond SQLite's whole numbers, which have 64 bits; give it as text")
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise ToolError("a text in params is not valid Unicode; it holds half a surrogate pair")
    return value


def _text(data: bytes) -> str:
    """SQLite lets programs store anything as text."""
    return data.decode("utf-8", "replace")
