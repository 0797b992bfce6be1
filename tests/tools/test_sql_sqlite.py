"""Every method of SQL with an SQLite file: what it gives, how it fails, that it can be cancelled, what it cannot do."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from halo_lang import catalog
from halo_runtime.convert import to_json
from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import Probing, ToolConfig, ToolProvider
from tests.tools.test_bash import names_in

METHODS = [method.name for method in catalog.provider("SQL").methods]  # pyright: ignore[reportOptionalMemberAccess]
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


def database(folder: Path, *statements: str) -> Path:
    """A file with two items, and what more is said."""
    path = folder / "shop.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("create table items (id integer primary key, name text not null, price real, tags text)")
        connection.execute("insert into items values (1, 'pen', 1.5, null), (2, '100%', null, '[1]')")
        for statement in statements:
            connection.execute(statement)
    return path


def open_tool(folder: Path, **settings: Any) -> ToolProvider:
    config = {"url": "sqlite:///shop.db", **settings}
    return tool_factory("SQL")(ToolConfig("DB", "SQL", config, folder))


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[ToolProvider]:
    """A tool that may change the file."""
    database(tmp_path)
    tool = open_tool(tmp_path, readOnly=False)
    yield tool
    await tool.close()


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[ToolProvider]:
    """A tool that only reads, as one is where nothing is said."""
    database(tmp_path)
    tool = open_tool(tmp_path)
    yield tool
    await tool.close()


async def ask(tool: ToolProvider, method: str, sql: str, params: Any = None) -> Any:
    return await tool.call(method, {"sql": sql, "params": params})


async def refusal(tool: ToolProvider, method: str, sql: str, params: Any = None) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await ask(tool, method, sql, params)
    return caught.value


# --- each method ----------------------------------------------------------------------------------------------------


async def test_rows_are_put_in_and_read(tool: ToolProvider) -> None:
    insert = "insert into items (id, name, tags) values (%(id)s, %(name)s, %(tags)s)"
    given = {"id": 3, "name": "x'); drop table items; --", "tags": {"a": [1]}}
    assert await ask(tool, "execute", insert, given) == {"rowCount": 1}
    found = await ask(tool, "query", "select * from items where id = %s", [3])
    assert found == [{"id": 3, "name": "x'); drop table items; --", "price": None, "tags": '{"a":[1]}'}]
    assert await ask(tool, "query", "select id from items where name like '100%'") == [{"id": 2}]
    several = "select id from items where id in (select value from json_each(%s)) order by id"
    assert await ask(tool, "query", several, [[1, 3, 5]]) == [{"id": 1}, {"id": 3}]


async def test_execute_gives_the_rows_that_it_returns_and_counts(tool: ToolProvider) -> None:
    found = await ask(tool, "execute", "update items set price = 2 returning id")
    assert found == {"rowCount": 2, "rows": [{"id": 1}, {"id": 2}]}
    assert await ask(tool, "execute", "create index by_name on items (name)") == {"rowCount": 0}
    assert await ask(tool, "execute", "delete from items where id > %s", [1]) == {"rowCount": 1}


async def test_schema_lists_tables_and_views(tmp_path: Path) -> None:
    database(
        tmp_path, "create table parts (item integer not null references items(id), n integer, primary key (item, n))",
        "create view names as select name from items",
    )  # fmt: skip
    tool = open_tool(tmp_path)
    tables = await tool.call("schema", {})
    assert [(entry["table"], entry["kind"]) for entry in tables] == [
        ("items", "table"), ("names", "view"), ("parts", "table"),
    ]  # fmt: skip
    assert tables[2]["columns"] == [
        {"name": "item", "type": "INTEGER", "nullable": False, "primaryKey": True, "references": "items.id"},
        {"name": "n", "type": "INTEGER", "nullable": False, "primaryKey": True},
    ]
    assert await tool.call("schema", {"table": "names"}) == [tables[1]]
    await tool.close()


async def test_explain_shows_a_plan_and_runs_nothing(reader: ToolProvider) -> None:
    assert await ask(reader, "explain", "select * from items where id = %s", [1]) == (
        "SEARCH items USING INTEGER PRIMARY KEY (rowid=?)"
    )
    assert await ask(reader, "explain", "delete from items where id = 1")
    assert await ask(reader, "query", "select count(*) as n from items") == [{"n": 2}]


FAILING = {
    "query": ({"sql": "select missing from items"}, "no such column: missing; schema() lists tables and columns"),
    "execute": ({"sql": "delete from item"}, "no such table: item; schema() lists tables and columns"),
    "schema": ({"table": "item"}, "there is no table `item`; there is items"),
    "explain": ({"sql": "select from where"}, 'near "from": syntax error'),
}


@pytest.mark.parametrize("method", METHODS)
async def test_every_method_fails_in_sqlites_words(tool: ToolProvider, method: str) -> None:
    args, told = FAILING[method]
    with pytest.raises(ToolError) as caught:
        await tool.call(method, args)
    assert caught.value.message == f"DB.{method}: {told}"


@pytest.mark.parametrize("method", METHODS)
async def test_every_method_can_be_cancelled_while_it_waits_for_a_lock(
    tool: ToolProvider, tmp_path: Path, method: str
) -> None:
    holder = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    with closing(holder):
        holder.execute("begin exclusive")
        task = asyncio.create_task(tool.call(method, {} if method == "schema" else {"sql": "select 1 from items"}))
        done, _ = await asyncio.wait([task], timeout=0.03)
        assert not done
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        holder.execute("rollback")
    assert len(await tool.call("schema", {})) == 1


@pytest.mark.parametrize(("method", "sql"), [("query", ENDLESS), ("execute", f"insert into items (name) {ENDLESS}")])
async def test_work_is_interrupted_when_nobody_waits_for_it(tool: ToolProvider, method: str, sql: str) -> None:
    task = asyncio.create_task(ask(tool, method, sql))
    await asyncio.wait([task], timeout=0.03)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 2  # the thread is over too, as close waits for none
    assert await ask(tool, "query", "select count(*) as n from items") == [{"n": 2}]


# --- values and limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "given", "expected"),
    [
        ("%s", 2**63 - 1, 2**63 - 1),
        ("%s", 0.1, 0.1),
        ("%s", None, None),
        ("%s", True, 1),
        ("%s", "a\0b", "a\0b"),
        ("json(%s)", [1, "x", {"a": None}], '[1,"x",{"a":null}]'),
        ("x'00ff' || substr(%s, 1, 0)", "x", "\x00\ufffd"),
        ("zeroblob(2) is %s", None, 0),
        ("x'00ff'", None, "AP8="),
        ("9e999", None, None),
        ("cast(x'ff' as text)", None, "\ufffd"),
    ],
)
async def test_values_go_and_come_as_json(reader: ToolProvider, expression: str, given: Any, expected: Any) -> None:
    params = [given] if "%s" in expression else None
    ((row),) = await ask(reader, "query", f"select {expression} as v", params)
    assert to_json(row["v"], lambda warning: None) == expected


@pytest.mark.parametrize(("given", "problem"), [(2**63, "64 bits; give it as text"), ("\ud800", "not valid Unicode")])
async def test_values_that_sqlite_cannot_take_are_told(reader: ToolProvider, given: Any, problem: str) -> None:
    assert problem in (await refusal(reader, "query", "select %s", [given])).message


async def test_columns_of_one_name_are_told_apart(reader: ToolProvider) -> None:
    assert await ask(reader, "query", "select 1 as id, 2 as id") == [{"id": 1, "id_2": 2}]


async def test_rows_and_fields_are_cut_where_the_limit_is(tmp_path: Path) -> None:
    database(tmp_path)
    tool = open_tool(tmp_path, maxRows=1)
    found = await ask(tool, "query", "select id, printf('%.*c', 200000, 'x') as t from items order by id")
    assert (found[0]["id"], found[0]["t"][-32:]) == (1, "\n[… 100,000 more characters cut]")
    assert found[1:] == [{"[cut]": "[… more than 1 rows; use limit and offset, or raise maxRows in the declaration]"}]
    await tool.close()


async def test_a_statement_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    database(tmp_path)
    tool = open_tool(tmp_path, timeout="30ms")
    assert "it took longer than 0.03 s; ask for less" in (await refusal(tool, "query", ENDLESS)).message
    await tool.close()


async def test_values_of_any_size_do_not_fill_the_memory(reader: ToolProvider) -> None:
    assert "too big" in (await refusal(reader, "query", "select zeroblob(1000000000)")).message


# --- files ----------------------------------------------------------------------------------------------------------


async def test_a_file_that_is_not_there_is_told_and_made_by_the_first_execute(tmp_path: Path) -> None:
    tool = open_tool(tmp_path, readOnly=False)
    assert (await refusal(tool, "query", "select 1")).message.startswith("DB.query: there is no file shop.db")
    assert not (tmp_path / "shop.db").exists()
    assert isinstance(tool, Probing)
    assert await tool.probe() == "SQLite, shop.db is made by the first execute"
    await ask(tool, "execute", "create table t (id)")
    assert (await tool.probe()).endswith("shop.db, 1 tables, may change it")
    await tool.close()
    await tool.close()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///none.db", "there is no file none.db"),
        ("sqlite:///none/shop.db", "there is no file none/shop.db"),
        ("sqlite:///.", "there is no file"),
        ("sqlite:///text.db", "file is not a database; change the url"),
    ],
)
async def test_what_is_no_database_is_told(tmp_path: Path, url: str, problem: str) -> None:
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at as one\n" * 20)
    tool = open_tool(tmp_path, url=url)
    assert problem in (await refusal(tool, "query", "select * from sqlite_master")).message
    assert isinstance(tool, Probing)
    with pytest.raises(ToolError, match=problem):
        await tool.probe()
    await tool.close()


async def test_a_lock_of_another_process_is_waited_for(tool: ToolProvider, tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    with closing(holder):
        holder.execute("begin exclusive")
        tasks = [asyncio.create_task(ask(tool, "query", "select count(*) as n from items"))]
        tasks += [asyncio.create_task(ask(tool, "execute", "update items set price = 1"))]
        done, _ = await asyncio.wait(tasks, timeout=0.03)
        assert not done
        holder.execute("rollback")
        assert await asyncio.gather(*tasks) == [[{"n": 2}], {"rowCount": 2}]


async def test_many_calls_at_once_do_not_lose_each_other(tool: ToolProvider) -> None:
    await asyncio.gather(*(ask(tool, "execute", "insert into items (name) values ('x')") for _ in range(20)))
    assert await ask(tool, "query", "select count(*) as n from items") == [{"n": 22}]


# --- what only reads ------------------------------------------------------------------------------------------------

HOSTILE = [
    "insert into items values (9, 'x', 1, null)",
    "delete from items",
    "delete from items returning id",
    "with a as (select 1) delete from items",
    "/* select */ update items set name = 'x'",
    "drop table items",
    "create table t (id)",
    "create temp table t (id)",
    "create table t as select * from items",
    "select 1; delete from items",
    "commit; delete from items",
    "begin",
    "commit",
    "savepoint a",
    "vacuum",
    "vacuum into 'made.db'",
    "reindex",
    "analyze",
    "attach 'made.db' as other",
    "attach 'file:shop.db?mode=rwc' as other",
    "detach main",
    "pragma journal_mode = wal",
    "pragma query_only = 0",
    "pragma writable_schema = 1",
    "update sqlite_master set sql = ''",
    "pragma user_version = 5",
    "pragma user_version(5)",
    "pragma database_list",
    "select * from pragma_database_list",
    "select load_extension('x')",
    "select writefile('made.db', 'x')",
    "select readfile('/etc/hostname')",
    "create virtual table t using fts5(x)",
]


async def test_nothing_but_reading_is_let_through(tmp_path: Path) -> None:
    path = database(tmp_path)
    before = path.read_bytes()
    for read_only in (True, False):
        tool = open_tool(tmp_path, readOnly=read_only)
        for sql in HOSTILE:
            assert (await refusal(tool, "query", sql)).message, sql
        await tool.close()
    assert path.read_bytes() == before
    assert names_in(tmp_path) == ["shop.db"]


async def test_the_open_file_alone_cannot_be_written(tmp_path: Path) -> None:
    """Without SQLite's authorizer, which `explain` leaves more to."""
    database(tmp_path)
    tool = open_tool(tmp_path)
    for sql in ("; delete from items", "select 1; delete from items", "analyze", "query plan delete from items"):
        assert (await refusal(tool, "explain", sql)).message
    await tool.close()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("select count(*) from items").fetchone() == (2,)


@pytest.mark.parametrize(
    "sql",
    ["attach 'made.db' as other", "vacuum into 'made.db'", "begin", "commit", "savepoint a", "pragma user_version = 1",
     "pragma writable_schema = 1", "select load_extension('x')", "delete from items; delete from items"],
)  # fmt: skip
async def test_execute_reaches_no_other_file_and_leaves_its_transaction_alone(
    tool: ToolProvider, tmp_path: Path, sql: str
) -> None:
    await refusal(tool, "execute", sql)
    assert names_in(tmp_path) == ["shop.db"]
    assert await ask(tool, "query", "select count(*) as n from items") == [{"n": 2}]


@pytest.mark.parametrize(
    "sql",
    ["select 1", "values (1)", "pragma table_info(items)", "pragma user_version", "pragma integrity_check",
     "select * from pragma_table_info('items')", "explain query plan select * from items",
     "select count(*), json_group_array(name), strftime('%Y', 'now') from items", "select 'x' as \"delete\" -- ;"],
)  # fmt: skip
async def test_what_reads_is_let_through(reader: ToolProvider, sql: str) -> None:
    assert await ask(reader, "query", sql)


async def test_execute_is_refused_where_the_tool_only_reads(reader: ToolProvider) -> None:
    error = await refusal(reader, "execute", "delete from items")
    assert "the tool only reads; its declaration needs readOnly: false" in error.message
    assert "one statement at a time" in (await refusal(reader, "query", "select 1; select 2")).message
    assert "not allowed; query only reads" in (await refusal(reader, "query", "delete from items")).message
