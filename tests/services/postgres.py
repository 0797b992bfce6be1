"""A real PostgreSQL server on a free port, in a folder of its own; no cluster of the system's is touched.

It cannot run as root, so there it runs as the user `postgres` of Debian's package (as `nobody` where there is none).
Connections over TCP need a password, over its socket none. Each use of `database` gives one of its own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
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
_numbers = count(1)


@dataclass(frozen=True)
class Postgres:
    """The server: its port on localhost, and the folder of its socket."""

    port: int
    folder: Path

    def url(self, database: str, user: str = "clerk", password: str = PASSWORD, more: str = "") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}{more}"

    def run(self, database: str, *statements: str) -> list[tuple[Any, ...]]:
        """Do statements as the superuser: the rows of the last one."""
        place = f"host={self.folder} port={self.port} user=postgres dbname={database}"
        with psycopg.connect(place, autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self) -> Generator[str]:
        """A new database, which the role `clerk` may change."""
        name = f"halo_{next(_numbers)}"
        self.run("postgres", f"create database {name} owner clerk")
        yield name
        self.run("postgres", f"drop database {name} with (force)")


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
                "postgres",
                f"alter role postgres password '{PASSWORD}'",
                f"create role clerk login password '{PASSWORD}'",
            )
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
