"""Where a database is: every usual form is understood, and what cannot work is told without its password."""

from __future__ import annotations

from pathlib import Path

import pytest

from halo_runtime import extras
from halo_runtime.errors import ConfigError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.sql.urls import PostgresPlace, SQLitePlace, read_place, read_postgres

HERE = Path("/programs")


@pytest.mark.parametrize(
    ("url", "conninfo", "secrets"),
    [
        ("postgresql://ann:pw@db.example:5433/shop", "postgresql://ann:pw@db.example:5433/shop", ("pw",)),
        ("postgres://db/shop", "postgresql://db/shop", ()),
        ("postgresql+psycopg://ann@db/shop", "postgresql://ann@db/shop", ()),
        ("POSTGRESQL://[::1]:5432/shop", "postgresql://[::1]:5432/shop", ()),
        ("postgresql://a,b:5433/shop?sslmode=require", "postgresql://a,b:5433/shop?sslmode=require", ()),
        ("postgresql:///shop?host=/run/postgresql", "postgresql:///shop?host=/run/postgresql", ()),
        ("postgresql://ann:p%40w@db/shop", "postgresql://ann:p%40w@db/shop", ("p%40w", "p@w")),
        ("postgresql://db/shop?user=a&password=p%2Fw", "postgresql://db/shop?user=a&password=p%2Fw", ("p%2Fw", "p/w")),
        ("host=/run dbname=shop password=pw", "host=/run dbname=shop password=pw", ("pw",)),
        ("host=db password = 'two words'", "host=db password = 'two words'", ("two words",)),
    ],
)
def test_addresses_of_servers(url: str, conninfo: str, secrets: tuple[str, ...]) -> None:
    place = read_place(url, HERE)
    assert place == read_postgres(url) == PostgresPlace(conninfo, secrets)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///data.db", "/programs/data.db"),
        ("sqlite:////srv/data.db", "/srv/data.db"),
        ("sqlite:///a%20b.db", "/programs/a b.db"),
        ("sqlite+aiosqlite:///x/data.db", "/programs/x/data.db"),
    ],
)
def test_addresses_of_files(url: str, path: str) -> None:
    place = read_place(url, HERE)
    assert isinstance(place, SQLitePlace)
    assert place.path == Path(path)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://ann:zq@db/shop", "no address of a database"),
        ("db.example/zq", "no address of a database"),
        ("", "no address of a database"),
        ("postgresql://ann:zq@77@db/shop", "@ as %40"),
        ("postgresql://ann:zq/77@db/shop", "percent-encoded"),
        ("postgresql://ann:zq?77@db/shop", "percent-encoded"),
        ("postgresql://ann:zq#77@db/shop", "percent-encoded"),
        ("postgresql://ann:zq:77@db/shop", "percent-encoded"),
        ("postgresql://ann:zq 77@db/shop", "white space"),
        ("postgresql://ann:zq[77@db/shop", "percent-encoded"),
        ("postgresql://ann@db:zq/shop", "no host and port"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:data.db", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///data.db?mode=zq", "something behind the file"),
        ("sqlite:///a%00b", "NUL"),
    ],
)
def test_what_is_no_address_is_told_before_a_run_and_not_shown(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        tool_factory("SQL")(ToolConfig("DB", "SQL", {"url": url}, HERE))
    assert "zq" not in caught.value.message


def test_a_file_is_no_server() -> None:
    with pytest.raises(ConfigError, match="declare it with SQL"):
        tool_factory("PostgreSQL")(ToolConfig("DB", "PostgreSQL", {"url": "sqlite:///data.db"}, HERE))


def _without_postgres(extra: str) -> bool:
    return extra != "postgres"


def test_a_server_needs_the_extra_and_a_file_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", _without_postgres)
    tool_factory("SQL")(ToolConfig("DB", "SQL", {"url": "sqlite:///data.db"}, HERE))
    with pytest.raises(ConfigError, match=r"pip install 'halo-workbench\[postgres\]'"):
        tool_factory("SQL")(ToolConfig("DB", "SQL", {"url": "postgresql://db/shop"}, HERE))
    with pytest.raises(ConfigError, match=r"pip install 'halo-workbench\[postgres\]'"):
        tool_factory("PostgreSQL")
