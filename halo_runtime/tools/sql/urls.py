"""Where a database is, as its declaration says it; what cannot work is told without the password in it."""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from halo_lang.records import record
from halo_runtime.errors import ConfigError

_POSTGRES: Final = re.compile(r"postgres(?:ql)?(?:\+\w+)?://", re.IGNORECASE)
_SQLITE: Final = re.compile(r"sqlite(?:\+\w+)?:", re.IGNORECASE)
_CONNINFO: Final = re.compile(r"\s*\w+\s*=")
_PASSWORD: Final = re.compile(r"""(?:^|[\s?&])password\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s&]+))""")

_FORMS: Final = "postgresql://user:password@host/database"
_ENCODE: Final = (
    "a character of the user or the password must be percent-encoded (@ as %40, / as %2F, : as %3A, ? as %3F, # as %23)"
)


@record
class PostgresPlace:
    """`conninfo` is a URL or a string for libpq; `secrets` are texts in it that nobody may see."""

    conninfo: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


@record
class SQLitePlace:
    """A file."""

    path: Path
    shown: str


def read_place(url: str, folder: Path) -> PostgresPlace | SQLitePlace:
    """What a URL names. Raises ConfigError that says what is wrong and shows nothing of the URL."""
    if _SQLITE.match(url):
        return _sqlite(url, folder)
    return read_postgres(url)


def read_postgres(url: str) -> PostgresPlace:
    """The same where only PostgreSQL will do."""
    if _SQLITE.match(url):
        raise ConfigError("url is that of an SQLite file; declare it with SQL")
    if _POSTGRES.match(url):
        return _postgres(url)
    if "://" not in url and _CONNINFO.match(url):
        return PostgresPlace(url, _secrets_of(url))
    raise ConfigError(f"url is no address of a database; write {_FORMS}, or sqlite:///file with SQL")


def _postgres(url: str) -> PostgresPlace:
    plain = _POSTGRES.sub("postgresql://", url, count=1)  # drivers' names are for others (`postgresql+psycopg://`)
    # What does not belong into a URL moves the border between password and host, and the host is shown in errors.
    if any(character.isspace() for character in plain):
        raise ConfigError("url holds white space; " + _ENCODE)
    try:
        parts = urlsplit(plain)
    except ValueError:
        raise ConfigError(f"url cannot be read: {_ENCODE}") from None
    user, _, hosts = parts.netloc.rpartition("@")
    if "@" in user or "#" in plain or "@" in parts.path or user.count(":") > 1 or "@" in parts.query:
        raise ConfigError(f"url cannot be read: {_ENCODE}")
    if not all(_is_host(host) for host in hosts.split(",")):
        raise ConfigError(f"url names no host and port; write {_FORMS}, and {_ENCODE}")
    password = user.partition(":")[2]
    return PostgresPlace(plain, _both(password) + _secrets_of(parts.query))


def _is_host(text: str) -> bool:
    """Whether it is `host`, `host:port`, `[address]:port`, or nothing (the default)."""
    return re.fullmatch(r"(?:\[[0-9a-fA-F:.%\w]+\]|[^\[\]:]*)(?::\d*)?", text) is not None


def _secrets_of(text: str) -> tuple[str, ...]:
    return tuple(part for found in _PASSWORD.finditer(text) for part in _both(found[1] or found[2] or ""))


def _both(password: str) -> tuple[str, ...]:
    """A password as written and as meant; nothing where there is none."""
    return tuple(sorted({password, unquote(password)} - {""}, key=len, reverse=True))


def _sqlite(url: str, folder: Path) -> SQLitePlace:
    rest = _SQLITE.sub("", url, count=1)
    if not rest.startswith("///") or not (path := unquote(rest[3:])) or path == ":memory:":
        raise ConfigError("url names no file; write sqlite:///data.db, or sqlite:////srv/data.db for a whole path")
    if "?" in rest or "#" in rest:
        raise ConfigError("url has something behind the file; SQL takes only sqlite:///file")
    if "\0" in path:
        raise ConfigError("url holds a NUL character")
    return SQLitePlace(folder / path, path)
