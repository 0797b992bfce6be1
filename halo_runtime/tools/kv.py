"""`KV(path, namespace)`: values kept by key from one run to the next, in one SQLite file (spec 12.5, decision 29).

The file may be shared: several runs and several processes can use it at the same time, each call is one transaction.
A relative path starts at the program's folder; a namespace keeps the keys of two stores in one file apart.
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias, TypeVar

from halo_lang.catalog.signature import duration_seconds
from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.sqlite_files import LOCK_SECONDS, explained, is_busy, patiently
from halo_runtime.values import canonical, type_name

DEFAULT_PATH: Final = "kv.db"

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS halo_kv (
  namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, expires REAL, PRIMARY KEY (namespace, key)
) WITHOUT ROWID
"""

T = TypeVar("T")
Clock: TypeAlias = Callable[[], float]
"""Seconds since the epoch."""


@record
class Found:
    """A value that was read; null too."""

    value: Json


class KeyValueStore:
    """One declared store. The file is opened by the first call.

    Work is done in one thread of its own. Only `get`, where nothing else is going on, is done at once: it reads a row
    and waits for no lock, which takes a fraction of what handing it to the thread does.
    """

    def __init__(
        self,
        path: Path,
        namespace: str,
        *,
        name: str = "KV",
        lock_seconds: float = LOCK_SECONDS,
        clock: Clock = time.time,
    ) -> None:
        self._path = path
        self._namespace = namespace
        self._name = name
        self._lock_seconds = lock_seconds
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"halo-{name}")
        self._table: Table | None = None
        self._in_use = Lock()
        """Held by whoever uses the table."""

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do `get set delete list incr` or `cas`. A lock held by others is waited for without blocking the run."""
        operation = _OPERATIONS.get(method)
        if operation is None:
            raise ToolError(f"{self._name} has no method `{method}`; a KV store has {', '.join(_OPERATIONS)}")
        try:
            if method == "get" and (found := self._at_once(args)) is not None:
                await asyncio.sleep(0)  # a long row of them lets others work, too, and can be cancelled
                return found.value
            return await patiently(lambda: self._in_thread(lambda: operation(self._opened(), args)), self._lock_seconds)
        except sqlite3.Error as error:
            raise explained(error, self._name, "key-value", self._path) from None

    async def probe(self) -> str:
        """Read the file, if there is one. Raises ToolError."""
        if not self._path.exists() and self._path.parent.is_dir():
            return f"{self._path} is made when the first value is set"
        await self.call("get", {"key": ""})
        return f"{self._path} can be read"

    async def close(self) -> None:
        """Close the file and end the thread, after whatever a cancelled call has left it doing."""
        await self._in_thread(self._close_table)
        self._thread.shutdown(wait=False)

    def _at_once(self, args: JsonObject) -> Found | None:
        """What a `get` finds, where the table is open and nobody uses it or has locked its file."""
        if not self._in_use.acquire(blocking=False):
            return None
        try:
            return None if self._table is None else Found(_get(self._table, args))
        except sqlite3.Error as error:
            if not is_busy(error):
                raise
            return None
        finally:
            self._in_use.release()

    def _in_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        def alone() -> T:
            with self._in_use:
                return work()

        return asyncio.get_running_loop().run_in_executor(self._thread, alone)

    def _opened(self) -> Table:
        if self._table is None:
            self._table = Table(self._path, self._namespace, self._clock)
        return self._table

    def _close_table(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            table.close()


class Table:
    """The rows of one namespace in an open file. Blocking; for one thread at a time."""

    def __init__(self, path: Path, namespace: str, clock: Clock) -> None:
        self.namespace = namespace
        self.now = clock
        # No waiting inside SQLite: a wait there could not be cancelled. The caller tries again.
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute(_SCHEMA)
        except sqlite3.Error:
            self._connection.close()
            raise

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Hold the write lock from the first read on, so that what was read still holds when it is written."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # some errors have rolled it back already
                self._connection.execute("ROLLBACK")
            raise

    def read(self, key: str) -> Json:
        """The value kept at `key`; null for nothing or something expired."""
        row = self._connection.execute(
            "SELECT value FROM halo_kv WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)",
            (self.namespace, key, self.now()),
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def write(self, key: str, value: Json, expires: float | None = None) -> None:
        """Keep `value`, and drop what has expired meanwhile."""
        self._connection.execute(
            "DELETE FROM halo_kv WHERE namespace = ? AND expires <= ?", (self.namespace, self.now())
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO halo_kv VALUES (?, ?, ?, ?)", (self.namespace, key, json.dumps(value), expires)
        )

    def expiry(self, key: str) -> float | None:
        """When the entry at `key` ends, in seconds since the epoch; None for never, or for no entry."""
        row = self._connection.execute(
            "SELECT expires FROM halo_kv WHERE namespace = ? AND key = ? AND expires > ?",
            (self.namespace, key, self.now()),
        ).fetchone()
        return None if row is None else row[0]

    def remove(self, key: str) -> bool:
        """Whether there was something to remove."""
        removed = self._connection.execute(
            "DELETE FROM halo_kv WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)",
            (self.namespace, key, self.now()),
        )
        return removed.rowcount > 0

    def entries(self, start: str, *, inclusive: bool) -> Iterator[tuple[str, Json]]:
        """Keys and values in order of the keys, from `start` on."""
        comparison = ">=" if inclusive else ">"
        rows = self._connection.execute(
            f"SELECT key, value FROM halo_kv WHERE namespace = ? AND key {comparison} ?"
            " AND (expires IS NULL OR expires > ?) ORDER BY key",
            (self.namespace, start, self.now()),
        )
        for key, text in rows:
            yield key, json.loads(text)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def open_store(config: ToolConfig) -> KeyValueStore:
    """The store that a declaration describes; nothing is opened yet."""
    settings = config.settings
    path = config.folder / (settings.get("path") or DEFAULT_PATH)
    return KeyValueStore(path, settings.get("namespace") or "", name=config.name)


def _get(table: Table, args: JsonObject) -> Json:
    return table.read(_key(args))


def _set(table: Table, args: JsonObject) -> Json:
    """Gives the value, so that a pipeline can keep what flows through it."""
    expires = _expiry(table, args.get("ttl"))
    with table.transaction():
        table.write(_key(args), args["value"], expires)
    return args["value"]


def _delete(table: Table, args: JsonObject) -> Json:
    """Gives whether there was something to delete."""
    with table.transaction():
        return table.remove(_key(args))


def _list(table: Table, args: JsonObject) -> Json:
    """Gives `{"items": [{"key", "value"}], "cursor"}`; the cursor continues the listing and is null at its end."""
    prefix, cursor, limit = args.get("prefix") or "", args.get("cursor"), args.get("limit") or 100
    start = prefix if cursor is None else max(prefix, cursor)
    items: list[JsonObject] = []
    for key, value in table.entries(start, inclusive=start != cursor):
        # Keys come in order, so the first one without the prefix ends them.
        if not key.startswith(prefix):
            break
        if len(items) == limit:
            return {"items": items, "cursor": items[-1]["key"]}
        items.append({"key": key, "value": value})
    return {"items": items, "cursor": None}


def _incr(table: Table, args: JsonObject) -> Json:
    """Gives the new number; nothing counts as 0. How long the entry lives is not changed."""
    key, by = _key(args), args.get("by", 1)
    with table.transaction():
        value = table.read(key)
        total = _sum(key, 0 if value is None else value, by)
        table.write(key, total, table.expiry(key))
    return total


def _sum(key: str, value: Json, by: Json) -> int | float:
    for number in (value, by):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ToolError(f"incr: a {type_name(number)} cannot be counted up; `{key}` and `by` must be Numbers")
    try:
        total = value + by
    except OverflowError:
        total = math.inf
    if isinstance(total, float) and not math.isfinite(total):
        raise ToolError(f"incr: `{key}` would grow out of range")
    return total


def _cas(table: Table, args: JsonObject) -> Json:
    """Writes `value` only where `expected` is kept (null: nothing); gives whether it did."""
    key = _key(args)
    with table.transaction():
        if canonical(table.read(key)) != canonical(args["expected"]):
            return False
        table.write(key, args["value"], table.expiry(key))
    return True


_OPERATIONS: Final[dict[str, Callable[[Table, JsonObject], Json]]] = {
    "get": _get,
    "set": _set,
    "delete": _delete,
    "list": _list,
    "incr": _incr,
    "cas": _cas,
}


def _key(args: JsonObject) -> str:
    key = args["key"]
    if not isinstance(key, str):
        raise ToolError(f'a key must be a String, got {type_name(key)}; write it as text, for example "{{{{name}}}}"')
    if any("\ud800" <= character <= "\udfff" for character in key):
        raise ToolError("a key must be valid Unicode text; this one holds half a surrogate pair")
    return key


def _expiry(table: Table, ttl: Json) -> float | None:
    """When something kept now for the duration `ttl` ends."""
    if ttl is None:
        return None
    seconds = duration_seconds(ttl) if isinstance(ttl, str) else None
    if seconds is None or seconds <= 0:
        raise ToolError(f"`ttl` must be a duration over 0 such as 30s or 5m, got {json.dumps(ttl)}")
    return table.now() + seconds
