"""What only reads changes nothing and reaches nothing, by whatever words it tries (reference 2.7; CVE-2026-12045).

The role of these tests is a superuser, so nothing but Halo is in the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig, ToolProvider
from halo_runtime.tools.sql.connections import Connections
from halo_runtime.tools.sql.grammar import check_execute, check_explain, check_query
from tests.services.postgres import Database

ALLOWED = [
    "select 1",
    "select 1;",
    "SELECT * FROM items WHERE name LIKE 'delete from items; commit'",
    "with a as (select 1 as n) select * from a",
    "with recursive a(n) as (select 1 union all select n + 1 from a where n < 5) select n from a",
    "table items",
    "values (1, 'a')",
    "select count(*), max(id), random(), now(), clock_timestamp(), gen_random_uuid() from items",
    "explain select * from items",
    "explain (analyze, format json) select * from items",
    "show work_mem",
    "select pg_size_pretty(pg_total_relation_size('items')), pg_sleep(0)",
    "-- delete from items\nselect 1 /* ; drop table items */",
    "select $$delete from items$$ as text",
    "select 1 as nextval, 2 as \"delete\"",
    "select row_number() over (order by id), string_agg(name, ',') filter (where id > 1) over () from items",
    "select * from json_to_recordset('[]') as x(a int)",
    "select items.name, i.id from items, lateral (select id) i",
]  # fmt: skip

BY_FORM = {
    "insert into items values (9, 'x')": "INSERT",
    "update items set name = 'x'": "UPDATE",
    "DeLeTe from items": "DELETE",
    "/* select */ delete from items": "DELETE",
    "-- select\ndelete from items": "DELETE",
    "merge into items using (select 1) s on false when not matched then insert values (9, 'x')": "MERGE",
    "truncate items": "TRUNCATE",
    "with gone as (delete from items returning *) select * from gone": "DELETE",
    "select * from (with gone as (update items set id = 0 returning *) select * from gone) x": "UPDATE",
    "explain analyze delete from items": "DELETE",
    "explain (analyze true) with gone as (delete from items returning 1) select * from gone": "DELETE",
    "explain analyze create table copy as select 1": "CREATE TABLE AS",
    "select * into copy from items": "SELECT INTO",
    "select * from items for update": "FOR UPDATE",
    "select * from items for key share": "FOR UPDATE or FOR SHARE",
    "create table t (id int)": "CREATE",
    "create temp table t (id int)": "CREATE",
    "create table t as select 1": "CREATE TABLE AS",
    "create function f() returns int language sql as 'select 1'": "CREATE FUNCTION",
    "drop table items": "DROP",
    "alter table items add x int": "ALTER TABLE",
    "alter system set work_mem = '1GB'": "ALTER SYSTEM",
    "grant all on items to public": "GRANT",
    "copy items to '{file}'": "COPY",
    "copy items to program 'touch {file}'": "COPY",
    "copy (select 1) to stdout": "COPY",
    "copy items from program 'echo 9'": "COPY",
    "do $$ begin delete from items; end $$": "DO",
    "call remove()": "CALL",
    "set transaction read write": "SET",
    "set default_transaction_read_only = off": "SET",
    "set session characteristics as transaction read write": "SET",
    "reset all": "SET",
    "begin read write": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "savepoint a": "SAVEPOINT|BEGIN, COMMIT or ROLLBACK",
    "discard all": "DISCARD",
    "prepare p as delete from items": "DELETE|PREPARE",
    "execute p": "EXECUTE",
    "declare c cursor for select 1": "DECLARE CURSOR",
    "fetch all from c": "FETCH",
    "listen x": "LISTEN",
    "notify x": "NOTIFY",
    "lock table items": "LOCK",
    "vacuum": "VACUUM",
    "analyze items": "VACUUM|ANALYZE",
    "refresh materialized view v": "REFRESH",
    "reindex table items": "REINDEX",
    "cluster items": "CLUSTER",
    "checkpoint": "CHECK POINT|CHECKPOINT",
    "load 'x'": "LOAD",
    "comment on table items is 'x'": "COMMENT",
    "security label on table items is 'x'": "SEC LABEL|SECURITY",
    "import foreign schema a from server b into c": "IMPORT",
}
"""What its form gives away → the word for it."""

SEVERAL = [
    "commit; drop table items",
    "select 1; commit; delete from items",
    "; delete from items; select 1",
    "select 1; select 2",
    "rollback;; delete from items",
    "select 1 --;\n; delete from items",
    "",
    "-- nothing",
    ";",
]

BY_FUNCTION = [
    "select pg_read_file('/etc/hostname')",
    "select * from pg_read_file('/etc/hostname')",
    "select ('/etc/hostname'::text).pg_read_file",
    "select f.pg_read_file from cast('/etc/hostname' as text) f",
    "select (f).pg_read_file from cast('/etc/hostname' as text) f",
    "select * from rows from (generate_series(1, 2), pg_read_file('/etc/hostname'))",
    "values ((select pg_read_file('/etc/hostname')))",
    "select array(select pg_ls_dir('/'))",
    "select 1 limit (select length(pg_read_file('/etc/hostname')))",
    "select sum(1) over (order by pg_read_file('/etc/hostname'))",
    "select 1 union select length(pg_read_file('/etc/hostname'))",
    "select 1 from items join items i on pg_try_advisory_lock(1)",
    "select max(id) from items group by pg_read_file('/etc/hostname') having pg_try_advisory_lock(1)",
    "with a as materialized (select pg_read_file('/etc/hostname')) select * from a",
    "select xmlelement(name a, pg_read_file('/etc/hostname'))",
    "select * from items tablesample bernoulli (length(pg_read_file('/etc/hostname')))",
    "select pg_catalog.\"pg_read_file\"('/etc/hostname')",
    "select U&\"\\0070g_read_file\"('/etc/hostname')",
    "select pg_read_binary_file('/etc/hostname')",
    "select pg_ls_dir('/')",
    "select pg_stat_file('/etc/hostname')",
    "select 1 where exists (select from pg_ls_dir('.') d where d like 'x%')",
    "select name from items order by (select pg_read_file('/etc/hostname'))",
    "select coalesce((select pg_read_file('/etc/hostname')), '')",
    "select case when pg_cancel_backend(1) then 1 end",
    "select lo_import('/etc/hostname')",
    "select lo_export(1, '{file}')",
    "select lo_from_bytea(0, 'x')",
    "select pg_terminate_backend(pg_backend_pid())",
    "select pg_reload_conf()",
    "select pg_switch_wal()",
    "select pg_advisory_lock(1)",
    "select pg_notify('x', 'y')",
    "select pg_logical_emit_message(false, 'x', 'y')",
    "select nextval('numbers')",
    "select setval('numbers', 5)",
    "select set_config('default_transaction_read_only', 'off', false)",
    "select setseed(0.5)",
    "select pg_export_snapshot()",
    "select pg_create_restore_point('x')",
    "select remove()",
    "explain analyze select remove()",
]

BY_TEXT = [
    "select query_to_xml('select pg_read_file(''/etc/hostname'')', true, true, '')",
    "select * from crosstab('select pg_read_file(''/etc/hostname'')')",
    "select * from dblink('dbname=x', 'delete from items')",
    "select * from ts_stat('select pg_read_file(''/etc/hostname'')::tsvector')",
]

REMOVE = "create function remove() returns int language sql as 'delete from items returning 1'"
ROWS = [(1, "a"), (2, "b")]


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_reads_is_let_through(sql: str) -> None:
    check_query(sql)


@pytest.mark.parametrize(("sql", "words"), BY_FORM.items())
def test_what_does_not_read_is_named(sql: str, words: str) -> None:
    with pytest.raises(
        ToolError, match=f"query only reads, and .*(?:{words}).* does not; execute, with readOnly: false"
    ):
        check_query(sql)


@pytest.mark.parametrize("sql", SEVERAL)
@pytest.mark.parametrize("check", [check_query, check_explain, check_execute])
def test_there_is_one_statement(sql: str, check: Any) -> None:
    with pytest.raises(ToolError, match="one statement at a time; there are "):
        check(sql)


@pytest.mark.parametrize("sql", BY_TEXT)
def test_functions_that_run_a_text_are_refused_by_name(sql: str) -> None:
    with pytest.raises(ToolError, match="which runs a text as SQL"):
        check_query(sql)


@pytest.mark.parametrize("sql", ["select " + "(" * 200_000 + "1", "select " + "+".join("1" * 5_000), "selec 1"])
def test_what_cannot_be_looked_at_is_refused(sql: str) -> None:
    with pytest.raises(ToolError):
        check_query(sql)


@pytest.mark.parametrize("sql", ["analyze delete from items", "vacuum", "create table t as select 1", "execute p"])
def test_what_has_no_plan_is_not_explained(sql: str) -> None:
    with pytest.raises(ToolError, match=r"syntax error|explain takes a SELECT"):
        check_explain(sql)


@pytest.mark.parametrize(
    "sql",
    ["begin", "commit", "set role x", "set local work_mem = 1", "reset all", "discard all", "prepare p as select 1",
     "copy items to program 'x'", "copy items from stdin", "listen x", "declare c cursor for select 1", "load 'x'"],
)  # fmt: skip
def test_execute_takes_nothing_that_outlasts_its_call(sql: str) -> None:
    with pytest.raises(ToolError, match="execute does not take "):
        check_execute(sql)


# --- at a server ----------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(database: Database) -> Database:
    """Two items, a sequence, and a function that removes items."""
    database.run(
        "create table items (id int, name text)", "insert into items values (1, 'a'), (2, 'b')", REMOVE,
        "create sequence numbers", "grant all on items to clerk",
    )  # fmt: skip
    return database


@pytest.fixture(params=[True, False], ids=["read-only", "may-write"])
async def reader(shop: Database, request: pytest.FixtureRequest) -> AsyncIterator[ToolProvider]:
    """A tool of a superuser; `query` only reads where the tool may write too."""
    settings = {"url": shop.url(user="postgres"), "readOnly": request.param}
    tool = tool_factory("PostgreSQL")(ToolConfig("DB", "PostgreSQL", settings, Path()))
    yield tool
    await tool.close()


@pytest.mark.postgres
async def test_the_server_does_what_is_let_through(reader: ToolProvider) -> None:
    for sql in ALLOWED:
        assert isinstance(await reader.call("query", {"sql": sql}), list), sql


@pytest.mark.postgres
async def test_the_server_is_asked_to_do_nothing_else(reader: ToolProvider, shop: Database, tmp_path: Path) -> None:
    file = tmp_path / "made"
    await asyncio.to_thread(tmp_path.chmod, 0o777)
    for sql in (*BY_FORM, *SEVERAL, *BY_FUNCTION, *BY_TEXT):
        with pytest.raises(ToolError):
            await reader.call("query", {"sql": sql.replace("{file}", str(file))})
    assert not file.exists()
    assert shop.run("select id, name from items order by id") == ROWS
    assert shop.run("select is_called from numbers") == [(False,)]
    assert await reader.call("query", {"sql": "show transaction_read_only"}) == [{"transaction_read_only": "on"}]


@pytest.mark.postgres
@pytest.mark.parametrize("sql", BY_FUNCTION)
async def test_functions_with_effects_are_refused_by_name(reader: ToolProvider, sql: str) -> None:
    with pytest.raises(ToolError, match=r"DB\.query: query does not call \w+: it is volatile"):
        await reader.call("query", {"sql": sql})


@pytest.mark.postgres
async def test_a_function_that_is_declared_stable_is_called_and_a_field_of_its_name_is_read(
    reader: ToolProvider, shop: Database
) -> None:
    shop.run(
        "create function total() returns bigint stable language sql as 'select count(*) from items'",
        "create function label(items) returns text language sql as 'select $1.name'",
    )  # fmt: skip
    assert await reader.call("query", {"sql": "select total() as n"}) == [{"n": 2}]
    assert await reader.call("query", {"sql": "select i.label from items i where i.id = 1"}) == [{"label": "a"}]


@pytest.mark.postgres
async def test_execute_is_refused_where_the_tool_only_reads(shop: Database) -> None:
    settings = {"url": shop.url(user="postgres")}  # readOnly is left out
    tool = tool_factory("PostgreSQL")(ToolConfig("DB", "PostgreSQL", settings, Path()))
    with pytest.raises(ToolError, match="the tool only reads; its declaration needs readOnly: false"):
        await tool.call("execute", {"sql": "delete from items"})
    await tool.close()
    assert shop.run("select count(*) from items") == [(2,)]


# --- each layer alone -----------------------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["reported", "not-reported"])
async def connections(
    shop: Database, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Connections]:
    """Connections that read, of a server that reports so and of one that does not, as before version 14."""
    if not request.param:
        monkeypatch.setattr(Connections, "_reports_read_only", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    connections = Connections(shop.url(user="postgres"), read_only=True, seconds=5)
    yield connections
    await connections.close()


@pytest.mark.postgres
async def test_the_transaction_alone_keeps_from_writing(connections: Connections) -> None:
    for sql in ("delete from items", "create table t ()", "select nextval('numbers')", "select remove()"):
        with pytest.raises(Exception, match="in a read-only transaction"):
            await connections.read(lambda connection, sql=sql: connection.execute(sql.encode()))


@pytest.mark.postgres
async def test_the_protocol_alone_takes_one_statement(connections: Connections) -> None:
    async def work(connection: Any) -> Any:
        return [row async for row in connection.cursor().stream("commit; delete from items")]

    with pytest.raises(Exception, match="multiple commands"):
        await connections.read(work)


@pytest.mark.postgres
async def test_a_connection_that_lost_its_setting_does_not_write_either(connections: Connections) -> None:
    await connections.read(lambda connection: connection.execute("set default_transaction_read_only = off"))
    with pytest.raises(Exception, match="in a read-only transaction"):
        await connections.read(lambda connection: connection.execute("delete from items"))
