"""`query execute schema explain` at a PostgreSQL server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, is_list, is_object
from halo_runtime.prompts import cut
from halo_runtime.tools.sql.connections import GRACE_SECONDS, Connections
from halo_runtime.tools.sql.failures import broken, refused
from halo_runtime.tools.sql.functions import Functions
from halo_runtime.tools.sql.grammar import check_execute, check_explain, check_query
from halo_runtime.tools.sql.rows import MAX_CELL, Rows, unique_names
from halo_runtime.tools.sql.statements import Statement, Value, read_statement
from halo_runtime.tools.sql.tables import POSTGRES_TABLES, described, unknown_table
from halo_runtime.values import compact

if TYPE_CHECKING:
    from halo_runtime.tools.sql.connections import Connection

T = TypeVar("T")

_CHUNK: Final = 100
"""Rows that arrive together; so many more than the limit are read at most."""

_PROBE: Final = """
select current_setting('server_version'), current_database(), current_user, rolsuper,
  (select count(*) from pg_catalog.pg_stat_user_tables)
from pg_catalog.pg_roles where rolname = current_user
"""


class Postgres:
    """One database. `seconds` is the longest time for a statement."""

    def __init__(self, conninfo: str, *, read_only: bool, seconds: float, max_rows: int) -> None:
        self._read_only = read_only
        self._seconds = seconds
        self._max_rows = max_rows
        self._readers = Connections(conninfo, read_only=True, seconds=seconds)
        self._writers = Connections(conninfo, read_only=False, seconds=seconds)
        self._functions = Functions()

    async def query(self, sql: Json, params: Json) -> Json:
        """The rows of a statement that only reads."""
        statement = read_statement(sql, params, "postgresql")
        calls = check_query(statement.text)

        async def work(connection: Connection) -> Json:
            await self._functions.check(connection, calls)
            return await self._rows(connection, statement.text, _bound(statement))

        return await self._answer(self._readers.read(work))

    async def execute(self, sql: Json, params: Json) -> Json:
        """Do a statement in a transaction of its own."""
        statement = read_statement(sql, params, "postgresql")
        check_execute(statement.text)

        async def work(connection: Connection) -> Json:
            # A pipeline uses the extended protocol even where there are no values, which takes one statement only.
            async with connection.pipeline():
                cursor = await connection.execute(statement.text.encode(), _bound(statement))
            if cursor.description is None:
                return {"rowCount": max(cursor.rowcount, 0)}
            rows, names = Rows(self._max_rows), _names(cursor.description)
            while (row := await cursor.fetchone()) and rows.add(names, row):
                pass
            return {"rowCount": cursor.rowcount, "rows": rows.result()}

        return await self._answer(self._writers.write(work), wrote=True)

    async def explain(self, sql: Json, params: Json) -> Json:
        """The plan of a statement, which is not run, as text."""
        statement = read_statement(sql, params, "postgresql")
        check_explain(statement.text)

        async def work(connection: Connection) -> Json:
            cursor = await connection.execute(f"EXPLAIN (FORMAT TEXT) {statement.text}".encode(), _bound(statement))
            return cut("\n".join(row[0] for row in await cursor.fetchall()), MAX_CELL)

        return await self._answer(self._readers.read(work))

    async def schema(self, table: str | None) -> Json:
        """Tables and views that the role may read, with their columns."""

        async def work(connection: Connection) -> list[tuple[Any, ...]]:
            return await (await connection.execute(POSTGRES_TABLES)).fetchall()

        found = described(await self._answer(self._readers.read(work)))
        chosen = [entry for entry in found if table is None or table in entry.names]
        if table is not None and not chosen:
            raise ToolError(unknown_table(table, found))
        rows = Rows(self._max_rows, "ask for one table")
        for entry in chosen:
            if not rows.add(("table", "kind", "columns"), (entry.names[0], entry.kind, entry.columns)):
                break
        return rows.result()

    async def probe(self) -> str:
        """Which server and database it is, as whom."""

        async def work(connection: Connection) -> tuple[Any, ...] | None:
            return await (await connection.execute(_PROBE)).fetchone()

        row = await self._answer(self._readers.read(work))
        assert row is not None, "everybody is somebody"
        version, database, user, superuser, tables = row
        mode = "read only" if self._read_only else "may change it"
        careful = "; a superuser reads the server's files too, so take another role" if superuser else ""
        return f"PostgreSQL {version.split()[0]}, {database} as {user}, {tables} tables, {mode}{careful}"

    async def close(self) -> None:
        """Close the connections."""
        await self._readers.close()
        await self._writers.close()

    async def _answer(self, work: Awaitable[T], *, wrote: bool = False) -> T:
        """The result of work at the server. Raises ToolError."""
        from psycopg import Error

        try:
            return await work
        except TimeoutError:
            silent = ConnectionError(f"no answer in {self._seconds + GRACE_SECONDS:g} s")
            raise broken(silent, wrote=wrote) from None
        except UnicodeError:
            raise ToolError("a text is not valid Unicode; what is no text belongs into bytea") from None
        except (ValueError, RecursionError):  # of Python's reader of JSON
            raise ToolError(
                "a value is nested too deeply, or has too many digits, to be read; ask for its ::text"
            ) from None
        except Error as error:
            state = error.sqlstate
            # Without a state it did not come from the server; with 57P the server was going down, perhaps while
            # it committed.
            lost = (state is None and _is_lost(error)) or (wrote and str(state).startswith("57P"))
            raise (broken(error, wrote=wrote) if lost else refused(error, self._seconds)) from None

    async def _rows(self, connection: Connection, text: str, values: Sequence[Json]) -> list[Json]:
        """The rows of a statement up to the limit. What is behind it is not read: the server is told to stop."""
        rows, names = Rows(self._max_rows), tuple[str, ...]()
        async with connection.cursor() as cursor:
            stream = cast("AsyncGenerator[tuple[Any, ...]]", cursor.stream(text.encode(), values, size=_CHUNK))
            async with aclosing(stream):
                async for row in stream:
                    names = names or _names(cursor.description or ())
                    if not rows.add(names, row):
                        break
        return rows.result()


def _is_lost(error: Exception) -> bool:
    from psycopg import InterfaceError, OperationalError

    return isinstance(error, OperationalError | InterfaceError)


def _names(columns: Sequence[Any]) -> tuple[str, ...]:
    return unique_names([column.name for column in columns])


def _bound(statement: Statement) -> list[Json]:
    return [_parameter(value) for value in statement.values]


def _parameter(value: Value) -> Json:
    """A value as psycopg takes it: texts without a type, so that the server gives them that of their place."""
    given = value.value
    if given is None or isinstance(given, str):
        return given
    if value.as_json or is_object(given):
        return compact(given)
    return _array(given) if is_list(given) else given


def _array(items: list[Json]) -> Json:
    """A list as an array where its items are of one kind, else as JSON."""
    kinds = {_kind(item) for item in _scalars(items)} - {None}
    if len(kinds) > 1 and kinds != {int, float}:
        return compact(items)
    if kinds == {dict}:
        return compact(items)
    return _as_floats(items) if kinds == {int, float} else items


def _scalars(items: list[Json]) -> list[Json]:
    return [scalar for item in items for scalar in (_scalars(item) if is_list(item) else [item])]


def _kind(item: Json) -> type[object] | None:
    return None if item is None else item.__class__


def _as_floats(items: list[Json]) -> list[Json]:
    return [_as_floats(item) if is_list(item) else item if item is None else float(item) for item in items]
