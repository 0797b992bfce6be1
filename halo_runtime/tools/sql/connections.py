"""Connections to a PostgreSQL server: a few for each way of use, made when needed, used again, never in doubt.

Those that read are read-only by their session's default, which the server reports at every change (from version 14
on), so that one that has lost it is not used. A connection on which anything went wrong but the statement is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from halo_runtime.errors import ToolError
from halo_runtime.tools.sql.failures import cannot_connect

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.abc import AdaptContext

    Connection: TypeAlias = AsyncConnection[tuple[Any, ...]]

T = TypeVar("T")
Work: TypeAlias = "Callable[[Connection], Awaitable[T]]"

AT_ONCE: Final = 4
"""How many connections a tool has at most that read, and how many that write."""
CONNECT_SECONDS: Final = 10
LOCK_SECONDS: Final = 10.0
"""How long a statement waits for a lock."""
GRACE_SECONDS: Final = 5.0
"""How much longer than a statement may take its answer is waited for."""
IDLE_SECONDS: Final = 60.0
"""How long a transaction may stay open without a statement; a broken client holds its locks no longer."""


class Connections:
    """The connections of one tool for one way of use. `seconds` is the longest time for a statement."""

    def __init__(self, conninfo: str, *, read_only: bool, seconds: float) -> None:
        self._conninfo = conninfo
        self._read_only = read_only
        self._seconds = seconds
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._idle: list[Connection] = []
        self._closed = False

    async def read(self, work: Work[T]) -> T:
        """The result of `work` with one statement, which is a transaction that can only read.

        Where the server has closed an idle connection meanwhile, the work is done again on another.
        """
        from psycopg import OperationalError

        async with self._slots:
            while True:
                reused = bool(self._idle)
                connection = await self._connection()
                try:
                    return await self._lend(connection, self._alone(connection, work))
                except OperationalError:
                    if not (reused and connection.closed):
                        raise

    async def write(self, work: Work[T]) -> T:
        """The result of `work`, in a transaction that is committed at its end, or taken back where it fails."""

        async def whole(connection: Connection) -> T:
            result = await work(connection)
            await connection.execute("COMMIT")
            return result

        async with self._slots:
            connection = await self._begun()
            return await self._lend(connection, whole(connection))

    async def close(self) -> None:
        """Close those that are not in use; those in use are closed when they are given back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _lend(self, connection: Connection, work: Awaitable[T]) -> T:
        """The result of work with a connection, which is kept for further work where it is as good as before."""
        try:
            async with self._patience():
                return await work
        except BaseException as error:
            # After an error of the statement the connection is as good as before; after a cancellation nobody knows.
            if isinstance(error, Exception) and not connection.broken:
                await self._take_back(connection)
            else:
                await connection.close()
            raise
        finally:
            if _is_idle(connection) and not connection.closed and not self._closed:
                self._idle.append(connection)
            else:
                await connection.close()

    async def _take_back(self, connection: Connection) -> None:
        """Leave the transaction, or the connection where that fails."""
        from psycopg import Error

        if _is_idle(connection):
            return
        try:
            async with self._patience():
                await connection.execute("ROLLBACK")
        except (Error, TimeoutError):
            await connection.close()

    def _patience(self) -> asyncio.Timeout:
        """How long an answer is waited for in case it does not come at all."""
        return asyncio.timeout(self._seconds + GRACE_SECONDS)

    async def _connection(self) -> Connection:
        """One that is idle, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and self._reports_read_only(connection) is not False:
                return connection
            await connection.close()
        return await self._connect()

    async def _begun(self) -> Connection:
        """One in a transaction. Where the server has closed an idle one, another; nothing has been done yet."""
        from psycopg import OperationalError

        while True:
            fresh = not self._idle
            connection = await self._connection()
            try:
                async with self._patience():
                    await connection.execute("BEGIN READ WRITE")
            except OperationalError:
                await connection.close()
                if fresh:
                    raise
            except BaseException:
                await connection.close()
                raise
            else:
                return connection

    async def _alone(self, connection: Connection, work: Work[T]) -> T:
        if self._reports_read_only(connection):
            return await work(connection)
        # An older server, or something between that does not hand on what the server reports.
        await connection.execute("BEGIN READ ONLY")
        result = await work(connection)
        await connection.execute("ROLLBACK")
        return result

    def _reports_read_only(self, connection: Connection) -> bool | None:
        """Whether the session's default is to read only, as the server says; None where it does not say."""
        if not self._read_only:
            return None
        told = connection.pgconn.parameter_status(b"default_transaction_read_only")
        return None if told is None else told == b"on"

    async def _connect(self) -> Connection:
        """A new connection. Raises ToolError."""
        from psycopg import AsyncConnection, AsyncRawCursor, Error
        from psycopg.conninfo import conninfo_to_dict

        try:
            given = conninfo_to_dict(self._conninfo)
        except Error:  # its message would show parts of the URL
            raise ToolError("the url in the declaration cannot be read; check its form", retryable=False) from None
        known: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, "application_name": "halo", **given}
        known.pop("client_encoding", None)
        known["options"] = " ".join([str(given.get("options") or ""), *self._options()]).strip()
        try:
            return await AsyncConnection.connect(
                **known,
                client_encoding="utf8",
                autocommit=True,
                cursor_factory=AsyncRawCursor,
                context=adapters(),
                prepare_threshold=None,
            )
        except (Error, OSError, UnicodeError) as error:
            raise cannot_connect(error) from None

    def _options(self) -> list[str]:
        """What holds for the session; nothing that a statement may change again (see `grammar`)."""
        settings: Mapping[str, object] = {
            "default_transaction_read_only": "on" if self._read_only else "off",
            "statement_timeout": round(self._seconds * 1000),
            "lock_timeout": round(min(self._seconds, LOCK_SECONDS) * 1000),
            "idle_in_transaction_session_timeout": round(max(self._seconds, IDLE_SECONDS) * 1000),
            "datestyle": "ISO",
            "intervalstyle": "iso_8601",
        }
        return [f"-c {name}={value}" for name, value in settings.items()]


def _is_idle(connection: Connection) -> bool:
    """Whether it is in no transaction."""
    from psycopg.pq import TransactionStatus

    return connection.pgconn.transaction_status == TransactionStatus.IDLE


@cache
def adapters() -> AdaptContext:
    """How values are read: dates and intervals in ISO 8601 as the server writes them, ranges as text.

    Python's own types have no room for infinite dates, months of an interval, years before Christ.
    """
    import psycopg
    from psycopg.adapt import AdaptersMap

    from halo_runtime.tools.sql.loaders import LOADERS

    class Context:
        connection = None
        adapters = AdaptersMap(psycopg.adapters)

    # What it logs is told by errors too, and is nothing for people's terminals.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    for name, loader in LOADERS.items():
        Context.adapters.register_loader(name, loader)
    return Context()
