"""Every method of PostgreSQL at a real server: results, failures, and that cancelling stops the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from halo_lang import catalog
from halo_runtime.convert import to_json
from halo_runtime.errors import ToolError
from halo_runtime.tools.base import ToolProvider
from tests.services.postgres import PASSWORD, Database
from tests.tools.postgres_support import ask, opened, refusal

pytestmark = pytest.mark.postgres

TABLE = """
create table items (
  id integer primary key, name text not null, price numeric default 1.50, at timestamptz, tags jsonb,
  parent integer references items
)
"""
METHODS = [method.name for method in catalog.provider("PostgreSQL").methods]  # pyright: ignore[reportOptionalMemberAccess]


@pytest.fixture
async def tool(database: Database) -> AsyncIterator[ToolProvider]:
    """A tool that may change a database with one table, which belongs to its role."""
    async with opened(database.url()) as tool:
        await tool.call("execute", {"sql": TABLE})
        yield tool


async def value(tool: ToolProvider, expression: str, params: Any = None) -> tuple[Any, list[str]]:
    """The value of an expression as it enters a run, and the warnings."""
    warnings: list[str] = []
    ((row),) = await ask(tool, "query", f"select {expression} as v", params)
    return to_json(row["v"], warnings.append), warnings


# --- each method ----------------------------------------------------------------------------------------------------


async def test_rows_are_put_in_and_read(tool: ToolProvider) -> None:
    insert = "insert into items (id, name, tags) values (%(id)s, %(name)s, %(tags)s)"
    assert await ask(tool, "execute", insert, {"id": 1, "name": "pen", "tags": {"a": [1]}}) == {"rowCount": 1}
    assert await ask(tool, "execute", insert, {"id": 2, "name": "100%", "tags": None}) == {"rowCount": 1}
    found = await ask(tool, "query", "select id, name, tags from items where name like '%n' and id = %s", [1])
    assert found == [{"id": 1, "name": "pen", "tags": {"a": [1]}}]
    assert await ask(tool, "query", "select id from items where name like '100%'") == [{"id": 2}]
    assert await ask(tool, "query", "select id from items where id > %s", [5]) == []


async def test_execute_gives_the_rows_that_it_returns_and_counts(tool: ToolProvider) -> None:
    sql = "insert into items (id, name) select n, 'x' from generate_series(1, 3) n returning id"
    assert await ask(tool, "execute", sql) == {"rowCount": 3, "rows": [{"id": 1}, {"id": 2}, {"id": 3}]}
    assert await ask(tool, "execute", "delete from items where id > %s", [1]) == {"rowCount": 2}
    assert await ask(tool, "execute", "create index on items (name)") == {"rowCount": 0}


async def test_schema_lists_what_the_role_may_read(tool: ToolProvider, database: Database) -> None:
    database.run(
        "create schema shop", "create view shop.names as select name from public.items",
        "grant usage on schema shop to clerk", "create table hidden (id int)",
        "comment on column public.items.name is 'As printed.'",
    )  # fmt: skip
    assert [entry["table"] for entry in await ask(tool, "schema")] == ["items"]
    database.run("grant select on shop.names to clerk")
    tables = await ask(tool, "schema")
    assert [(entry["table"], entry["kind"]) for entry in tables] == [("items", "table"), ("shop.names", "view")]
    columns = {column.pop("name"): column for column in tables[0]["columns"]}
    assert columns["id"] == {"type": "integer", "nullable": False, "primaryKey": True}
    assert columns["name"] == {"type": "text", "nullable": False, "comment": "As printed."}
    assert columns["parent"] == {"type": "integer", "nullable": True, "references": "items.id"}
    for name in ("items", "public.items"):
        assert await tool.call("schema", {"table": name}) == [await ask_first(tool)]


async def ask_first(tool: ToolProvider) -> Any:
    return (await ask(tool, "schema"))[0]


async def test_explain_shows_a_plan_and_runs_nothing(tool: ToolProvider) -> None:
    await ask(tool, "execute", "insert into items (id, name) values (1, 'pen')")
    plan = await ask(tool, "explain", "delete from items where id = %s", [1])
    assert plan.startswith("Delete on items")
    assert "Index Cond: (id = " in plan
    assert await ask(tool, "query", "select count(*) as n from items") == [{"n": 1}]


FAILING = {
    "query": ({"sql": "select nothing from items"}, 'column "nothing" does not exist; schema() lists the columns'),
    "execute": ({"sql": "delete from item"}, 'relation "item" does not exist; schema() lists the tables'),
    "schema": ({"table": "item"}, "there is no table `item`; there is items"),
    "explain": ({"sql": "select from where"}, "syntax error at or near \"where\" (`select from where`)"),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
async def test_every_method_fails_in_the_servers_words(tool: ToolProvider, method: str) -> None:
    args, told = FAILING[method]
    with pytest.raises(ToolError) as caught:
        await tool.call(method, args)
    assert caught.value.message == f"DB.{method}: {told}"
    assert caught.value.retryable is False


HANGING: dict[str, tuple[str, dict[str, str]]] = {
    "query": ("select 1", {"sql": "select pg_sleep(60)"}),
    "execute": ("select 1", {"sql": "insert into items (id, name) select 1, pg_sleep(60)::text"}),
    "schema": ("lock table pg_catalog.pg_description in access exclusive mode", {}),
    "explain": ("lock table items in access exclusive mode", {"sql": "select * from items"}),
}


@pytest.mark.parametrize("method", METHODS)
async def test_every_method_can_be_cancelled_and_the_server_stops(
    tool: ToolProvider, database: Database, method: str
) -> None:
    lock, args = HANGING[method]
    with database.server.connect(database.name) as holder, holder.transaction():
        holder.execute(lock.encode())
        task = asyncio.create_task(tool.call(method, args))
        await database.until_busy()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await database.until_idle()
    assert await ask(tool, "query", "select count(*) as n from items") == [{"n": 0}]


async def test_an_unknown_method_lists_those_there_are(tool: ToolProvider) -> None:
    assert (await refusal(tool, "drop")).message.endswith("there are query, execute, schema, explain")


# --- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("null", None),
        ("true", True),
        ("9223372036854775807", 9223372036854775807),
        ("170141183460469231731687303715884105727", 170141183460469231731687303715884105727),
        ("1.50", 1.5),
        ("0.1234567890123456789", "0.1234567890123456789"),
        ("'Infinity'::numeric", None),
        ("1.5::float8", 1.5),
        ("'NaN'::float8", None),
        ("'ä'::text", "ä"),
        ("'00000000-0000-4000-8000-000000000001'::uuid", "00000000-0000-4000-8000-000000000001"),
        ("'\\x00ff'::bytea", "AP8="),
        ("date '2026-11-30'", "2026-11-30"),
        ("date 'infinity'", "infinity"),
        ("date '0044-03-15 BC'", "0044-03-15 BC"),
        ("time '08:30'", "08:30:00"),
        ("timestamp '2026-11-30 08:00:00.5'", "2026-11-30T08:00:00.5"),
        ("timestamptz '2026-11-30 08:00+01'", "2026-11-30T07:00:00+00:00"),
        ("timestamptz '-infinity'", "-infinity"),
        ("interval '1 month 2 days 3:00'", "P1M2DT3H"),
        ("int4range(1, 3)", "[1,3)"),
        ("'{[1,3), [5,7)}'::int4multirange", "{[1,3),[5,7)}"),
        ("array[1, null, 3]", [1, None, 3]),
        ("array[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        ("array[timestamp '2026-11-30 08:00']", ["2026-11-30T08:00:00"]),
        ("""'{"a": [1, null, "x"]}'::jsonb""", {"a": [1, None, "x"]}),
        ("'null'::json", None),
        ("inet '10.0.0.1'", "10.0.0.1"),
        ("row(1, 'x')", ["1", "x"]),
        ("'a b'::tsvector", "'a' 'b'"),
        ("12.5::money", "$12.50"),
        ("point(1, 2)", "(1,2)"),
    ],
)
async def test_values_come_as_json(read: ToolProvider, expression: str, expected: Any) -> None:
    found, warnings = await value(read, expression)
    assert (found, type(found)) == (expected, type(expected))
    assert bool(warnings) is (expression in ("'NaN'::float8", "'Infinity'::numeric"))


@pytest.fixture
async def read(postgres_server: Any) -> AsyncIterator[ToolProvider]:
    """A tool that only reads, in a database that is always there."""
    url = f"postgresql://clerk:{PASSWORD}@127.0.0.1:{postgres_server.port}/postgres"
    async with opened(url, readOnly=True) as tool:
        yield tool


@pytest.mark.parametrize(
    ("expression", "given", "expected"),
    [
        ("%s", "x'; drop table items; --", "x'; drop table items; --"),
        ("%s::int", "5", 5),
        ("%s::text", None, None),
        ("%s::int8", 2**40, 2**40),
        ("%s::numeric", 2**80, 2**80),
        ("%s::float8", 0.1, 0.1),
        ("%s::bool", True, True),
        ("2 = any(%s)", [1, 2, 3], True),
        ("2 = any(%s)", [1, 2.5], False),
        ("'b' = any(%s)", ["a", "b", None], True),
        ("%s::int[]", [], []),
        ("%s::int[]", [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ("%s::jsonb", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ("%s::jsonb", ["a", "b"], ["a", "b"]),
        ("%s::jsonb", [{"a": 1}], [{"a": 1}]),
        ("%s::jsonb", 5, 5),
        ("%s::jsonb", '{"text": true}', {"text": True}),
        ("%s::json", [1, "x", None], [1, "x", None]),
        ("%s::timestamptz", "2026-11-30T08:00:00+01:00", "2026-11-30T07:00:00+00:00"),
        ("%s::uuid", "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000001"),
    ],
)
async def test_params_are_values_of_the_type_of_their_place(
    read: ToolProvider, expression: str, given: Any, expected: Any
) -> None:
    assert (await value(read, expression, [given]))[0] == expected


@pytest.mark.parametrize(("given", "problem"), [("a\0b", "NUL"), ("\ud800", "not valid Unicode"), ("x", "integer")])
async def test_values_that_the_server_cannot_take_are_told(read: ToolProvider, given: str, problem: str) -> None:
    assert problem in (await refusal(read, "query", "select %s::int", [given])).message


@pytest.mark.parametrize("text", ["repeat('[', 2000) || repeat(']', 2000)", "'[' || repeat('1', 5000) || ']'"])
async def test_json_that_cannot_be_read_is_told_and_the_next_call_works(read: ToolProvider, text: str) -> None:
    error = await refusal(read, "query", f"select ({text})::json as v from generate_series(1, 200)")
    assert "nested too deeply, or has too many digits, to be read; ask for its ::text" in error.message
    assert await ask(read, "query", "select 1 as a") == [{"a": 1}]


async def test_columns_of_one_name_are_told_apart(read: ToolProvider) -> None:
    sql = "select 1 as id, 2 as id, 3 as id_2, 4 as id, 5"
    assert await ask(read, "query", sql) == [{"id": 1, "id_3": 2, "id_2": 3, "id_4": 4, "?column?": 5}]


# --- limits ---------------------------------------------------------------------------------------------------------


async def test_rows_are_cut_where_the_limit_is_and_the_rest_is_not_read(database: Database) -> None:
    async with opened(database.url(), readOnly=True, maxRows=3) as tool:
        found = await ask(tool, "query", "select generate_series(1, 100000000) as n")
        assert found[:3] == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert found[3:] == [
            {"[cut]": "[… more than 3 rows; use limit and offset, or raise maxRows in the declaration]"}
        ]
        assert await ask(tool, "query", "select n from generate_series(1, 3) n") == [{"n": 1}, {"n": 2}, {"n": 3}]
    async with opened(database.url(), maxRows=2) as tool:
        await ask(tool, "execute", "create table t as select n from generate_series(1, 5) n")
        deleted = await ask(tool, "execute", "delete from t returning n")
        assert (deleted["rowCount"], len(deleted["rows"]), "[cut]" in deleted["rows"][2]) == (5, 3, True)


async def test_long_fields_and_long_results_are_cut(read: ToolProvider) -> None:
    ((row),) = await ask(read, "query", "select repeat('x', 200000) as t, decode(repeat('00', 200000), 'hex') as b")
    assert row["t"].endswith("\n[… 100,000 more characters cut]")
    assert row["b"] == "[200,000 bytes, over 100,000; ask for a part of them]"
    rows = await ask(read, "query", "select repeat('x', 90000) as t from generate_series(1, 500)")
    assert rows[-1]["[cut]"].startswith("[… more rows behind the first 11, over 1,000,000 characters")
    assert len(rows) == 12


async def test_a_statement_takes_no_longer_than_it_may(database: Database) -> None:
    async with opened(database.url(), timeout="80ms") as tool:
        error = await refusal(tool, "query", "select pg_sleep(60)")
        assert "it took longer than 0.08 s; ask for less, or raise timeout:" in error.message
        assert database.tools("active") == []
        assert await ask(tool, "query", "select 1 as a") == [{"a": 1}]


async def test_a_lock_is_waited_for_no_longer_than_the_timeout_and_may_be_tried_again(database: Database) -> None:
    database.run("create table t (id int)", "grant all on t to clerk")
    async with opened(database.url(), timeout="80ms") as tool:
        with database.server.connect(database.name) as holder, holder.transaction():
            holder.execute("lock table t")
            error = await refusal(tool, "execute", "insert into t values (1)")
    assert "timeout" in error.message
