"""A real PostgreSQL server on a free port, in a folder of its own; no cluster of the system's is touched.

It cannot run as root, so there it runs as the user `postgres` of Debian's package (as `nobody` where there is none).
Connections over TCP need a password, over its socket none.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

TLS = Path(__file__).parent.parent / "fakes" / "tls"
CERTIFICATE = TLS / "certificate.pem"
"""For localhost, 127.0.0.1; signed by itself."""
PASSWORD = "zq-7731-hidden"
"""Of the superuser `postgres`, and of the role `clerk`."""

_SETTINGS = """
listen_addresses = '127.0.0.1, ::1'
unix_socket_directories = '{folder}'
port = {port}
fsync = off
max_connections = 40
superuser_reserved_connections = 2
ssl = on
ssl_cert_file = '{folder}/certificate.pem'
ssl_key_file = '{folder}/key.pem'
log_min_messages = warning
timezone = 'UTC'
"""
_DATABASE = "shop"
_EMPTY = ("create schema public", "grant all on schema public to clerk")


@dataclass(frozen=True)
class Postgres:
    """The server: its port on localhost, and the folder of its socket."""

    port: int
    folder: Path

    def connect(self, database: str) -> psycopg.Connection[Any]:
        """A connection of the superuser, which commits each statement."""
        place = f"host={self.folder} port={self.port} user=postgres dbname={database}"
        return psycopg.connect(place, autocommit=True)

    def run(self, database: str, *statements: str) -> list[tuple[Any, ...]]:
        """Do statements as the superuser: the rows of the last one."""
        with self.connect(database) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self) -> Generator[Database]:
        """A database with nothing in it, which the role `clerk` may change; one at a time."""
        yield Database(self, _DATABASE)
        # Emptying takes a tenth of the time of making a new one.
        schemas = self.run(_DATABASE, "select nspname from pg_namespace where nspname !~ '^pg_|^information_schema$'")
        dropped = [f"drop schema {name} cascade" for (name,) in schemas]
        leave = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
        self.run(
            _DATABASE, f"{leave} and pid <> pg_backend_pid()", "set client_min_messages = error", *dropped, *_EMPTY
        )


@dataclass(frozen=True)
class Database:
    """One database of the server."""

    server: Postgres
    name: str

    def url(self, user: str = "clerk", password: str = PASSWORD, more: str = "") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.server.port}/{self.name}{more}"

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Do statements as the superuser: the rows of the last one."""
        return self.server.run(self.name, *statements)

    def tools(self, state: str = "%") -> list[str]:
        """The last statements of the connections that tools have here, of those in a state."""
        rows = self.run(
            "select query from pg_stat_activity where application_name = 'halo' and datname = current_database()"
            f" and state like '{state}'"
        )
        return [query for (query,) in rows]

    async def until_busy(self) -> None:
        """Until a tool has something done here."""
        await self._until(lambda: bool(self.tools("active")))

    async def until_idle(self) -> None:
        """Until nothing is being done for tools any more."""
        await self._until(lambda: not self.tools("active"))

    async def until_left(self) -> None:
        """Until no tool has a connection any more."""
        await self._until(lambda: not self.tools())

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():  # noqa: ASYNC110 - the server tells nobody when its work is over
                await asyncio.sleep(0.01)


@contextmanager
def postgres() -> Generator[Postgres]:
    """Run a server; about a second."""
    programs = _programs()
    with TemporaryDirectory(prefix="halo-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        port = _free_port()
        user = _prepare(folder)

        def run(program: str, *arguments: str) -> None:
            subprocess.run(
                [str(programs / program), "-D", str(folder / "data"), *arguments],
                check=True, cwd=folder, stdout=subprocess.DEVNULL, user=user, env={"PATH": os.defpath},
            )  # fmt: skip

        run("initdb", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--auth-local=trust",
            "--auth-host=scram-sha-256")  # fmt: skip
        with (folder / "data" / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS.format(folder=folder, port=port))
        run("pg_ctl", "-l", str(folder / "log"), "-w", "start")
        try:
            server = Postgres(port, folder)
            server.run(
                "postgres", f"alter role postgres password '{PASSWORD}'",
                f"create role clerk login password '{PASSWORD}'", f"create database {_DATABASE} owner clerk",
            )  # fmt: skip
            yield server
        finally:
            run("pg_ctl", "-m", "immediate", "-w", "stop")


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "initdb")]
    return found[-1].parent


def _prepare(folder: Path) -> str | None:
    """Give the folder and a key to who runs the server: the user's name, None for oneself."""
    for name in ("key.pem", "certificate.pem"):
        shutil.copy(TLS / name, folder / name)
        (folder / name).chmod(0o600)
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if "postgres" in known else "nobody"
    for path in (folder, *folder.iterdir()):
        shutil.chown(path, user)
    return user


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
