"""Transactions and connections of PostgreSQL: whole or not at all, never in doubt, and every address that is usual."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools.base import Probing, ToolProvider
from tests.services.postgres import CERTIFICATE, PASSWORD, Database
from tests.tools.postgres_support import ask, opened, refusal

pytestmark = pytest.mark.postgres


@pytest.fixture
async def tool(database: Database) -> AsyncIterator[ToolProvider]:
    """A tool that may change a database with one table, which belongs to its role."""
    async with opened(database.url()) as tool:
        await tool.call("execute", {"sql": "create table items (id integer primary key, name text not null)"})
        yield tool


async def test_a_statement_takes_effect_whole_or_not_at_all(tool: ToolProvider) -> None:
    await ask(tool, "execute", "insert into items (id, name) values (1, 'a')")
    error = await refusal(tool, "execute", "insert into items (id, name) values (2, 'b'), (1, 'c')")
    assert error.message.endswith('unique constraint "items_pkey"; Key (id)=(1) already exists.')
    assert await ask(tool, "query", "select id from items") == [{"id": 1}]


async def test_a_constraint_that_is_looked_at_in_the_end_fails_the_call(tool: ToolProvider) -> None:
    await ask(tool, "execute", "create table late (id int references items deferrable initially deferred)")
    error = await refusal(tool, "execute", "insert into late values (7)")
    assert "violates foreign key constraint" in error.message
    assert await ask(tool, "query", "select * from late") == []


async def test_calls_at_once_share_four_connections_a_way(tool: ToolProvider, database: Database) -> None:
    sql = "select pg_sleep(0.02), pg_backend_pid() as pid"
    found = await asyncio.gather(*(ask(tool, "query", sql) for _ in range(12)))
    assert len({row["pid"] for (row,) in found}) <= 4
    await asyncio.gather(*(ask(tool, "execute", f"insert into items (id, name) values ({n}, 'x')") for n in range(12)))
    assert await ask(tool, "query", "select count(*) as n from items") == [{"n": 12}]


async def test_connections_that_the_server_has_closed_are_replaced(tool: ToolProvider, database: Database) -> None:
    insert = "insert into items (id, name) values (%s, 'x')"
    await asyncio.gather(*(ask(tool, "query", "select pg_sleep(0.01)") for _ in range(3)))
    await asyncio.gather(*(ask(tool, "execute", insert, [n]) for n in range(3)))
    database.run("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'halo'")
    assert await ask(tool, "query", "select count(*) as n from items") == [{"n": 3}]
    assert await ask(tool, "execute", insert, [9]) == {"rowCount": 1}


@pytest.mark.parametrize(("method", "passing"), [("query", True), ("execute", False)])
async def test_a_connection_that_is_lost_on_the_way_says_what_is_known(
    tool: ToolProvider, database: Database, method: str, passing: bool
) -> None:
    task = asyncio.create_task(ask(tool, method, "select pg_sleep(60)"))
    await database.until_busy()
    database.run("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'halo'")
    with pytest.raises(ToolError, match="connection") as caught:
        await task
    assert caught.value.retryable is passing
    assert ("whether the statement took effect is not known" in caught.value.message) is not passing


async def test_closing_closes_the_connections_and_may_be_done_twice(database: Database) -> None:
    async with opened(database.url()) as tool:
        await ask(tool, "execute", "create table t (id int)")
        await ask(tool, "query", "select 1")
        await tool.close()
    await database.until_left()


def test_a_tool_of_each_event_loop_works(database: Database) -> None:
    async def once() -> Any:
        async with opened(database.url()) as tool:
            return await ask(tool, "query", "select 1 as a")

    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(once()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[{"a": 1}], [{"a": 1}]]


@pytest.mark.parametrize(
    "url",
    [
        "postgres://clerk:{password}@127.0.0.1:{port}/{name}",
        "postgresql+psycopg://clerk:{password}@localhost:{port}/{name}?sslmode=require",
        "postgresql://clerk:{password}@localhost:{port}/{name}?sslmode=verify-full&sslrootcert={certificate}",
        "postgresql:///{name}?host={folder}&port={port}&user=clerk",
        "host={folder} port={port} user=clerk dbname={name}",
        "postgresql://clerk:{password}@127.0.0.1:1,127.0.0.1:{port}/{name}",
    ],
)
async def test_servers_are_reached_by_every_usual_address(database: Database, url: str) -> None:
    server = database.server
    address = url.format(
        password=PASSWORD, port=server.port, folder=server.folder, name=database.name, certificate=CERTIFICATE
    )
    async with opened(address) as tool:
        assert await ask(tool, "query", "select current_user as me") == [{"me": "clerk"}]


@pytest.mark.parametrize(
    ("url", "told", "passing"),
    [
        ("postgresql://clerk:zq-0000-wrong@127.0.0.1:{port}/{name}", "check user and password in the url", False),
        ("postgresql://clerk@127.0.0.1:{port}/{name}", "check user and password in the url", False),
        ("postgresql://clerk:{password}@127.0.0.1:{port}/nowhere", 'database "nowhere" does not exist', False),
        ("postgresql://clerk:{password}@127.0.0.1:1/{name}", "is the server running", True),
        ("host=/nowhere password={password}", "is the server running", True),
        ("postgresql://clerk:{password}@nowhere.invalid/{name}", "is the host's name right?", True),
        ("postgresql://clerk:{password}@127.0.0.1:{port}/{name}?sslmode=verify-full", "certificate", False),
        ("postgresql://clerk:{password}@127.0.0.1:{port}/{name}?nonsense=1", "cannot be read", False),
        ("host=db password={password} nonsense", "cannot be read", False),
    ],
)  # fmt: skip
async def test_servers_that_cannot_be_reached_say_why_without_the_password(
    database: Database, url: str, told: str, passing: bool
) -> None:
    address = url.format(password=PASSWORD, port=database.server.port, name=database.name)
    async with opened(address) as tool:
        error = await refusal(tool, "query", "select 1")
        assert told in error.message
        assert error.retryable is passing
        assert isinstance(tool, Probing)
        with pytest.raises(ToolError) as caught:
            await tool.probe()
    for secret in (PASSWORD, "zq-0000-wrong"):
        assert secret not in error.message + caught.value.message


async def test_a_server_without_a_free_connection_may_be_tried_again(database: Database) -> None:
    database.run("alter role clerk connection limit 0")
    async with opened(database.url()) as tool:
        error = await refusal(tool, "query", "select 1")
    database.run("alter role clerk connection limit -1")
    assert (error.retryable, "too many connections" in error.message) == (True, True)


async def test_a_probe_says_what_is_there_and_changes_nothing(database: Database) -> None:
    database.run("create table t (id int)")
    async with opened(database.url(), readOnly=True) as tool:
        assert isinstance(tool, Probing)
        found = await tool.probe()
    assert found.startswith("PostgreSQL ")
    assert found.endswith(f", {database.name} as clerk, 1 tables, read only")
    async with opened(database.url(user="postgres"), readOnly=True) as tool:
        assert isinstance(tool, Probing)
        assert "a superuser reads the server's files too, so take another role" in await tool.probe()
