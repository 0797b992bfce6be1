"""`PostgreSQL(url)` and `SQL(url)`: `query execute schema explain` (spec 5, reference 2.7)."""

from __future__ import annotations

from typing import Final, Protocol

from halo_lang.catalog.signature import duration_seconds
from halo_runtime.errors import ToolError
from halo_runtime.extras import require
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.sql.urls import PostgresPlace, SQLitePlace, read_place, read_postgres

DEFAULT_TIMEOUT: Final = "30s"
DEFAULT_ROWS: Final = 1000


class Backend(Protocol):
    """A kind of database. Errors are ToolError, without the tool's name."""

    async def query(self, sql: Json, params: Json) -> Json: ...
    async def execute(self, sql: Json, params: Json) -> Json: ...
    async def explain(self, sql: Json, params: Json) -> Json: ...
    async def schema(self, table: str | None) -> Json: ...
    async def probe(self) -> str: ...
    async def close(self) -> None: ...


class Database:
    """One declared database. Nothing in `secrets` is in any message."""

    def __init__(self, name: str, backend: Backend, *, read_only: bool, secrets: tuple[str, ...] = ()) -> None:
        self._name = name
        self._backend = backend
        self._read_only = read_only
        self._secrets = secrets

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError."""
        try:
            return await self._do(method, args)
        except ToolError as error:
            told = f"{self._name}.{method}: {self._clean(error.message)}"
            raise ToolError(told, retryable=error.retryable) from None

    async def probe(self) -> str:
        """What database it is, for `halo doctor`."""
        try:
            return self._clean(await self._backend.probe())
        except ToolError as error:
            raise ToolError(self._clean(error.message)) from None

    async def close(self) -> None:
        """Close what is open."""
        await self._backend.close()

    async def _do(self, method: str, args: JsonObject) -> Json:
        match method:
            case "query":
                return await self._backend.query(args["sql"], args.get("params"))
            case "explain":
                return await self._backend.explain(args["sql"], args.get("params"))
            case "schema":
                return await self._backend.schema(args.get("table"))
            case "execute":
                if self._read_only:
                    raise ToolError("the tool only reads; its declaration needs readOnly: false for execute")
                return await self._backend.execute(args["sql"], args.get("params"))
            case _:
                raise ToolError("there is no such method; there are query, execute, schema, explain")

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[REDACTED]")
        return text


def open_postgres(config: ToolConfig) -> Database:
    """The PostgreSQL database that a declaration describes. Raises ConfigError."""
    return _open(config, read_postgres(config.settings["url"].strip()))


def open_sql(config: ToolConfig) -> Database:
    """The same, or an SQLite file."""
    return _open(config, read_place(config.settings["url"].strip(), config.folder))


def _open(config: ToolConfig, place: PostgresPlace | SQLitePlace) -> Database:
    settings = config.settings
    read_only = settings.get("readOnly") is not False
    seconds = duration_seconds(settings.get("timeout") or DEFAULT_TIMEOUT) or 30.0
    max_rows = int(settings.get("maxRows") or DEFAULT_ROWS)
    if isinstance(place, SQLitePlace):
        from halo_runtime.tools.sql.sqlite import SQLite

        file = SQLite(place, name=config.name, read_only=read_only, seconds=seconds, max_rows=max_rows)
        return Database(config.name, file, read_only=read_only)
    require("postgres", f"{config.provider} with the address of a PostgreSQL server")
    from halo_runtime.tools.sql.postgres import Postgres

    server = Postgres(place.conninfo, read_only=read_only, seconds=seconds, max_rows=max_rows)
    return Database(config.name, server, read_only=read_only, secrets=place.secrets)
