"""Databases as programs use them: stages, agents, journals, cassettes, secrets (spec 5, 3.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import Cassette, ConfigError, RunResult
from halo_runtime.cli.main import main
from halo_runtime.engine.events import RunEvent
from halo_runtime.store.files import FileRunStore
from tests.durability.support import Project
from tests.runtime.support import runtime
from tests.services.postgres import PASSWORD, Database
from tests.tools.test_sql_sqlite import database as make_file

SHOP = 'tool Shop : SQL("sqlite:///shop.db"{more})\n'
HOSTILE = "1 or true; drop table items; --"


async def play(
    folder: Path, text: str, x: Any = "", replies: dict[str, Any] | None = None, env: dict[str, str] | None = None,
    **options: Any,
) -> RunResult:  # fmt: skip
    """Run `Main(x)` of a program that lies in `folder`."""
    program = halo_lang.parse(halo_lang.Source(text, str(folder / "main.halo")))
    return await runtime(replies, env=env or {}, **options).run(program, "Main", {"x": x})


def program(stages: str, more: str = "") -> str:
    return f"{SHOP.format(more=more)}pipeline Main(x: Any) -> Any: x |> {stages}"


# --- stages ---------------------------------------------------------------------------------------------------------


async def test_a_program_binds_values_and_goes_on_with_the_rows(tmp_path: Path) -> None:
    make_file(tmp_path)
    stages = 'Shop.query("select name from items where id = %s", [x]) |> System.Value(context.data.Shop.query.0.name)'
    assert (await play(tmp_path, program(stages), 2)).output == "100%"
    assert (
        await play(tmp_path, program('Shop.query("select id from items where name = %s", [x])'), HOSTILE)
    ).output == []


async def test_a_value_filled_into_the_text_is_refused_with_the_way_to_do_it(tmp_path: Path) -> None:
    make_file(tmp_path)
    for stages in (
        'Shop.query("select name from items where id = {{x}}")',
        "Shop.query(\"select name from items where name = '{{x}}'\", [])",
        'Shop.execute("delete from items where id = {{x}}")',
    ):
        error = (await play(tmp_path, program(stages, ", readOnly: false"), HOSTILE)).error
        assert error is not None
        assert "values do not go into the text of a statement: at `" in error.message
        assert "write %s, and give the value in params" in error.message
    assert (await play(tmp_path, program('Shop.query("select count(*) as n from items")'))).output == [{"n": 2}]


async def test_a_statement_that_is_all_value_runs_with_a_warning_and_only_reads(tmp_path: Path) -> None:
    make_file(tmp_path)
    result = await play(tmp_path, program('Shop.query("{{x}}")'), "select id from items where id = 1")
    assert result.output == [{"id": 1}]
    (warning,) = result.context.meta["warnings"]
    assert "Shop.query: all of its sql is a filled-in value" in warning["message"]
    failed = await play(tmp_path, program("Shop.query(x)", ", readOnly: false"), "delete from items")
    assert failed.error is not None
    assert "query only reads" in failed.error.message


async def test_both_spellings_and_names_for_values_are_taken(tmp_path: Path) -> None:
    make_file(tmp_path)
    stages = 'Shop.query("select id from items where id = %(id)s", params: x)'
    assert (await play(tmp_path, program(stages), {"id": 2})).output == [{"id": 2}]


async def test_settings_that_cannot_work_are_told_before_a_run_starts_all_at_once(tmp_path: Path) -> None:
    text = (
        'tool A : SQL("mysql://db/shop")\ntool B : PostgreSQL("sqlite:///shop.db")\ntool C : SQL(Env.NO_SUCH)\n'
        "pipeline Main(x: Any) -> Any: |> A.schema() |> B.schema() |> C.schema()"
    )
    with pytest.raises(ConfigError) as caught:
        await play(tmp_path, text)
    lines = caught.value.message.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["tool A", "tool B", "tool C"]


# --- agents ---------------------------------------------------------------------------------------------------------


async def test_an_agent_looks_around_asks_and_is_told_what_it_may_not(tmp_path: Path) -> None:
    make_file(tmp_path)
    text = (
        SHOP.format(more="") + "agent Clerk [openai/gpt-4o-mini]\n  equips Shop\n"
        "pipeline Main(x: String) -> Result: x |> Clerk.answer(tools: [Shop])"
    )
    calls: list[dict[str, Any]] = [
        {"tool": "Shop_schema", "args": {}},
        {"tool": "Shop_query", "args": {"sql": "select name from items where id = %s", "params": [1]}},
        {"tool": "Shop_query", "args": {"sql": "select 1; drop table items"}},
        {"tool": "Shop_execute", "args": {"sql": "drop table items"}},
    ]
    replies = {"Clerk.answer": [*({"tool_calls": [call]} for call in calls), "a pen"]}
    result = await play(tmp_path, text, "what is item 1?", replies)
    assert result.output == "a pen"
    schema, rows, *refused = result.context.meta["calls"][0]["tools"]
    assert "error" not in schema | rows
    assert refused[0]["error"] == "Shop.query: one statement at a time"
    assert "Shop_execute" in refused[1]["error"]  # which is not offered
    sent = json.dumps(result.context.meta["calls"][0]["messages"])
    assert "primaryKey" in sent
    assert '{\\"name\\":\\"pen\\"}' in sent


# --- runs that are kept -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "doubtful", "rows"), [("Main/1/tool", False, 3), ("Main/0/tool", True, 3), ("Main/0", False, 4)]
)
async def test_what_was_done_is_not_done_again_and_what_is_in_doubt_is_asked(
    tmp_path: Path, last: str, doubtful: bool, rows: int
) -> None:
    make_file(tmp_path)
    stages = 'Shop.execute("insert into items (name) values (\'x\')") |> Shop.query("select count(*) as n from items")'
    text = f"{SHOP.format(more=', readOnly: false')}@checkpoint\npipeline Main(x: Any) -> Any: x |> {stages}"
    source = halo_lang.parse(halo_lang.Source(text, str(tmp_path / "main.halo")))
    project = Project(tmp_path)
    assert (await project.runtime().run(source, "Main", {"x": 1}, run_id="r", keep=True)).output == [{"n": 3}]
    # As if the process had been killed before the first line of this path, or (in doubt) right behind it.
    project.cut("r", lambda line: not str(line.get("path")).startswith(last) or (doubtful and line["t"] == "begun"))
    result = await project.runtime().resume("r")
    assert [question.kind for question in result.interrupts] == (["in_doubt"] if doubtful else [])
    if doubtful:
        result = await project.runtime().signal("r", {"skip": {"rowCount": 1}})
    assert result.output == [{"n": rows}]


async def test_a_cassette_answers_in_place_of_the_database(tmp_path: Path) -> None:
    path = make_file(tmp_path)
    tape = tmp_path / "tape.jsonl"
    text = program('Shop.query("select id from items where id > %s", [x])')
    first = await play(tmp_path, text, 0, cassette=Cassette.record(str(tape)))
    path.unlink()
    again = await play(tmp_path, text, 0, cassette=Cassette.replay(str(tape)))
    assert first.output == again.output == [{"id": 1}, {"id": 2}]


# --- a server -------------------------------------------------------------------------------------------------------


@pytest.mark.postgres
async def test_the_address_of_a_server_is_a_secret_everywhere(tmp_path: Path, database: Database) -> None:
    url = database.url()
    text = (
        "tool Shop : PostgreSQL(Env.DATABASE_URL, readOnly: false)\n@checkpoint\npipeline Main(x: Any) -> Any:\n"
        '  x |> Shop.execute("create table t (id int, text text)")\n'
        '    |> Shop.execute("insert into t values (1, %s)", [x])\n'
        '    |> Shop.query("select text from t")\n    |> Shop.query("select nothing from t")'
    )
    seen: list[RunEvent] = []
    made = runtime(env={"DATABASE_URL": url}, store=FileRunStore(tmp_path))
    made.subscribe(seen.append)
    source = halo_lang.parse(halo_lang.Source(text, str(tmp_path / "main.halo")))
    result = await made.run(source, "Main", {"x": f"see {url}"}, keep=True)
    assert result.error is not None
    assert 'column "nothing" does not exist' in result.error.message
    assert result.context.data["Shop"]["query"] == [{"text": "see [REDACTED]"}]
    journal = Project(tmp_path).bytes_of(result.run_id).decode()
    assert "create table t" in journal
    assert PASSWORD not in "".join([repr(result), *map(repr, seen), journal])


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("user", "code", "told"),
    [("clerk", 0, "ok      tool Shop : PostgreSQL: PostgreSQL "), ("nobody", 1, "failed  tool Shop : PostgreSQL: ")],
)
def test_doctor_tries_the_server(
    tmp_path: Path, database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, user: str,
    code: int, told: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("DATABASE_URL", database.url(user=user))
    file = tmp_path / "p.halo"
    file.write_text("tool Shop : PostgreSQL(Env.DATABASE_URL)\npipeline Main() -> Any: |> Shop.schema()\n")
    assert main(["doctor", str(file)]) == code
    printed = capsys.readouterr()
    assert told in printed.out
    assert PASSWORD not in printed.out + printed.err
