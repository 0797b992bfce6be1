"""What a kept run is beyond its questions: blocks, limits, figures, secrets, size."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_lang.source import Source
from halo_runtime import RunResult, Runtime, ScriptedModel
from halo_runtime.errors import RunBusy, StoreError, ToolError, UnknownInterrupt, UnknownRun
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.verification import verify_journal
from tests.durability import victim
from tests.durability.support import AGENTS, STORE, Project, figures, keys, sealed
from tests.runtime.support import FakeClock, StubTool

USAGE = {"usage": {"input": 1_000_000, "output": 0}}
SECRET = "sk-very-secret-0123456789"


def main(stages: str, *, before: str = "", parameters: str = "x: Any", start: str = "x") -> str:
    return f"{AGENTS}{STORE}{before}pipeline Main({parameters}) -> Any:\n  {start} {stages}"


def all_bytes(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


# --- blocks and loops ---------------------------------------------------------------------------------------------


async def test_a_finished_arm_waits_for_the_one_that_asks_and_the_join_sees_both(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": {"reply": "done", **USAGE}})
    text = main('|* { A.go() as one, Ask(x) as two } |> Deeds.incr("join") |> System.Value([one, two])')
    result = await project.run(f'{text}\npipeline Ask(v: Any) -> Any:\n  v |! yield("?")', {"x": 1}, keep=False)
    assert (result.status, keys(project.deeds)) == ("paused", [])
    cost = result.context.meta["cost"]
    result = await project.runtime().signal(result.run_id, "yes")
    assert (result.output, keys(project.deeds)) == (["done", "yes"], ["join"])
    assert result.context.meta["cost"] == cost > 0


async def test_what_an_arm_spent_before_its_question_is_still_counted_after_it(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.before": {"reply": "b", **USAGE}, "A.after": {"reply": "a", **USAGE}})
    text = main("|* { Ask(x) as one, System.Value(1) as two }")
    text += '\npipeline Ask(v: Any) -> Any:\n  v |> A.before() |! yield("?") |> A.after()'
    paused = await project.run(text, {"x": 1})
    done = await project.runtime().signal(paused.run_id, "yes")
    assert done.context.meta["cost"] == pytest.approx(2 * paused.context.meta["cost"])
    assert done.context.meta["tokens"]["total"] == 2_000_000
    assert project.store.runs(FakeClock().moment)[0]["cost"] == done.context.meta["cost"]


async def test_a_block_cut_in_the_middle_does_its_finished_arms_once(tmp_path: Path) -> None:
    project = Project(tmp_path)
    text = main('|* { Deeds.incr("a") as a, Deeds.incr("b") as b, Deeds.incr("c") as c } as all |> Deeds.incr("join")')
    whole = await project.run(text, {"x": 1}, run_id="r")
    data = project.bytes_of("r").splitlines(keepends=True)
    for count in range(1, len(data)):
        project.deeds.calls.clear()
        (project.store.folder / "r.jsonl").write_bytes(b"".join(data[:count]))
        before = {record.path for record in project.store.load("r").records}
        result = await project.runtime().resume("r")
        result = await project.answer_all(result, lambda question: {"skip": None}, lambda _: 0)
        assert result.status == "completed"
        assert len(keys(project.deeds)) + len(before) <= len(whole.context.trace)
        assert len(keys(project.deeds)) == len(set(keys(project.deeds)))


@pytest.mark.parametrize("fast", ["a", "b", "c"])
async def test_arms_of_different_speed_are_each_done_once(fast: str, tmp_path: Path) -> None:
    delays = {"a": "5ms", "b": "5ms", "c": "5ms", fast: "0ms"}
    project = Project(tmp_path, {f"A.{name}": [{"reply": name, "delay": delay}] for name, delay in delays.items()})
    text = main('|* { One("a") as a, One("b") as b, One("c") as c }', before="@checkpoint\n")
    for name in "abc":
        text = text.replace(f'One("{name}")', f"P{name}(x)")
        text += f'\npipeline P{name}(v: Any) -> Any:\n  v |> A.{name}() |> Deeds.incr("{name}")'
    result = await project.run(text, {"x": 1})
    assert (result.status, sorted(keys(project.deeds))) == ("completed", ["a", "b", "c"])


async def test_results_of_items_stand_in_the_order_of_the_items_and_a_failure_names_its_own(tmp_path: Path) -> None:
    replies = [{"reply": str(n), "delay": f"{5 - n}ms"} for n in range(5)]
    replies[3] = {"error": 400}
    project = Project(tmp_path, {"A.go": replies})
    result = await project.run(
        main('|* each(x in xs, onError: "keep") => A.go()', parameters="xs: Array", start="xs"), {"xs": list("vwxyz")}
    )
    assert [item if isinstance(item, str) else item["error"]["index"] for item in result.output] == [
        "0",
        "1",
        "2",
        3,
        "4",
    ]
    assert result.output[3]["error"]["item"] == "y"
    assert project.store.load(result.run_id).to_json()["output"] == result.output


async def test_a_retried_call_repeats_nothing_that_went_well_before_it(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": [{"error": 503}, {"error": 503}, "done"]})
    inner = '@retry(3, 1ms)\npipeline Inner(v: Any) -> Any:\n  v |> Deeds.incr("k") |> A.go()'
    result = await project.run(f"{main('|> Inner(x)')}\n{inner}", {"x": 1}, run_id="r")
    assert (result.output, keys(project.deeds)) == ("done", ["k"])
    for tries in (1, 2):
        data = project.bytes_of("r").splitlines(keepends=True)
        project.cut("r", lambda line, last=f"try{tries}": not str(line.get("path")).endswith(f"{last}/backoff"))
        again = await project.runtime().resume("r")
        assert (again.output, keys(project.deeds)) == ("done", ["k"])
        assert again.context.meta["calls"][0]["attempts"] == 3
        (project.store.folder / "r.jsonl").write_bytes(b"".join(data))


async def test_every_operator_survives_its_journal(tmp_path: Path) -> None:
    result = await victim.to_the_end(tmp_path, await victim.runtime(tmp_path).run(
        halo_lang.parse(victim.PROGRAM), "Main", victim.INPUTS, run_id=victim.RUN
    ))  # fmt: skip
    stored = FileRunStore(tmp_path / ".halo").load(victim.RUN)
    assert stored.to_json() == result.to_json()
    assert {entry["kind"] for entry in stored.stages} >= {
        "pipe",
        "fanout",
        "each",
        "branch",
        "gate",
        "yield",
        "listen",
        "loop",
        "item",
    }
    assert stored.context(len(stored.stages))["data"] == result.context.data


async def test_a_value_that_is_no_json_fails_its_stage_with_its_place(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.deeds = StubTool(lambda method, args: {"deep": [1, {"set": {1, 2}}]})
    result = await project.run(main('|> System.Value(1) |> Deeds.incr("k")'), {"x": 1})
    assert isinstance(result.error, ToolError)
    assert "deep.1.set" in str(result.error)
    assert "set" in str(result.error)
    assert str(verify_journal(project.store, result.run_id)) == "valid"


# --- limits -------------------------------------------------------------------------------------------------------


async def test_time_limits_go_on_where_they_were(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": {"replies": [{"reply": "r", "delay": "60ms"}], "repeat": True}})
    text = f'{AGENTS}@timeout(100ms)\npipeline Main(x: Any) -> Any:\n  x |> A.go() |! yield("?") |> A.go() |> A.go()'
    paused = await project.run(text, {"x": 1})
    assert paused.status == "paused"
    [left] = project.lines(paused.run_id)[-1]["timeLeft"].values()
    assert 0 < left < 0.05
    result = await project.runtime().signal(paused.run_id, "yes")
    assert (result.status, type(result.error).__name__) == ("failed", "TimeoutExceeded")


async def test_what_is_only_replayed_takes_no_time_of_a_limit(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": {"replies": ["r"], "repeat": True}})
    stages = "|> A.go() " * 30
    inner = f'@timeout(1m)\npipeline Inner(v: Any) -> Any:\n  v {stages} |! yield("?") |> System.Value(1)'
    text = main("|> Inner(x)", before="@timeout(1m)\n") + f"\n{inner}"
    paused = await project.run(text, {"x": 1})
    *lines, closing = project.lines(paused.run_id)
    left = dict.fromkeys(closing["timeLeft"], 1e-6)
    documents = [{name: value for name, value in line.items() if name != "sum"} for line in [*lines, closing]]
    path = project.store.folder / f"{paused.run_id}.jsonl"
    path.write_bytes(sealed(*documents[:-1], {**documents[-1], "timeLeft": left}))
    again = await project.runtime().resume(paused.run_id)
    assert again.status == "paused"
    result = await project.runtime().signal(paused.run_id, "yes")
    assert (result.status, result.output) == ("completed", 1)


async def test_loops_count_on_over_pauses(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": {"replies": ["r"], "repeat": True}})
    result = await project.run(main('|> A.go() |! yield("?") |<> loop(A, "true", max: 2)'), {"x": 1})
    result = await project.answer_all(result, lambda _: "again", lambda _: 0)
    assert type(result.error).__name__ == "LoopLimitError"
    assert len(result.context.meta["calls"]) == 3


# --- one at a time ------------------------------------------------------------------------------------------------


async def test_a_run_at_work_is_refused_to_others_and_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halo_runtime.store.files._PATIENCE_SECONDS", 0.0)
    project = Project(tmp_path)
    refused: list[str] = []

    async def at_work(method: str, args: dict[str, Any]) -> int:
        for attempt in (project.runtime().resume("r"), project.runtime().signal("r", 1), project.fork(text, "r")):
            with pytest.raises(RunBusy) as busy:
                await attempt
            refused.append(str(busy.value))
        return 1

    project.deeds = StubTool(at_work)
    text = main('|> Deeds.incr("k")')
    result = await project.run(text, {"x": 1}, run_id="r")
    assert (result.status, len(project.deeds.calls), len(refused)) == ("completed", 1, 3)
    assert all("is at work on the run r" in reason for reason in refused)


async def test_a_fault_of_one_run_holds_up_no_other(tmp_path: Path) -> None:
    project = Project(tmp_path)
    text = main('|! yield("?")')
    for run_id in ("a", "b", "c"):
        await project.run(text, {"x": 1}, run_id=run_id)
    path = project.store.folder / "b.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"yield"', b'"yeild"', 1))
    with pytest.raises(StoreError, match="halo checkpoints repair b"):
        await project.runtime().resume("b")
    for run_id in ("a", "c"):
        assert (await project.runtime().signal(run_id, "yes")).status == "completed"
    found = {line["runId"]: line["status"] for line in project.store.runs(FakeClock().moment)}
    assert found == {"a": "completed", "b": "damaged", "c": "completed"}


async def test_a_run_without_a_store_is_known_only_to_its_runtime(tmp_path: Path) -> None:
    runtime = Runtime(env={}, replies=ScriptedModel({}), clock=FakeClock())
    result = await runtime.run(halo_lang.parse(main('|! yield("?")')), "Main", {"x": 1})
    with pytest.raises(UnknownRun):
        await Project(tmp_path).runtime().resume(result.run_id)
    assert (await runtime.signal(result.run_id, "yes")).status == "completed"


async def test_a_program_file_that_changed_changes_nothing_for_a_run_that_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path)
    result = await project.run(main('|! yield("?") |> System.Value("old")'), {"x": 1})
    assert project.store.load(result.run_id).header["program"].endswith('System.Value("old")')
    assert (await project.runtime().signal(result.run_id, "yes")).output == "old"


# --- secrets ------------------------------------------------------------------------------------------------------


async def test_no_secret_is_in_any_file(tmp_path: Path) -> None:
    project = Project(tmp_path / ".halo", {"A.go": f"the key is {SECRET}"})
    project.env = {"SERVICE_TOKEN": SECRET}

    def leak(method: str, args: dict[str, Any]) -> Any:
        if args["key"] == "bad":
            raise ToolError(f"refused: Bearer {SECRET}")
        return {"echo": f"Bearer {SECRET}", SECRET: 1}

    project.deeds = StubTool(leak)
    text = main('|> A.go() |> Deeds.incr("k") |! yield("Is {{current}} right?", attachments: [x]) |> Deeds.incr("bad")')
    paused = await project.run(text, {"x": f"mine is {SECRET}"})
    assert SECRET.encode() not in all_bytes(tmp_path)
    project.runtime().post(paused.run_id, f"early {SECRET}", interrupt=paused.interrupts[0].id)
    assert SECRET.encode() not in all_bytes(tmp_path)
    result = await project.runtime().resume(paused.run_id)
    assert result.status == "failed"
    assert SECRET.encode() not in all_bytes(tmp_path)
    assert str(verify_journal(project.store, paused.run_id)) == "valid"
    assert SECRET not in str(result.to_json())


async def test_a_run_with_a_secret_in_its_input_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": {"replies": ["r"], "repeat": True}})
    project.env = {"SERVICE_TOKEN": SECRET}
    text = main('|> A.go("Use {{x}}") |! yield("?") |> A.go("Again {{x}}")')
    result = await project.run(text, {"x": SECRET})
    result = await project.runtime().signal(result.run_id, "yes")
    assert (result.status, result.output) == ("completed", "r"), result.error
    again = await project.fork(text, result.run_id)
    assert again.run_id == result.run_id


async def test_what_is_sent_to_a_run_holds_nothing_that_its_tools_read_from_the_environment(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.env = {"SPACE": SECRET}  # not by its name
    text = f'{AGENTS}store Deeds: KV("d.db", namespace: Env.SPACE)\n'
    text += 'pipeline Main(x: Any) -> Any:\n  x |! yield("?") ~> listen(A.B) |> Deeds.incr("k")'
    paused = await project.run(text, {"x": 1})
    project.runtime().post(paused.run_id, f"early {SECRET}", event="A.B", by=SECRET)
    await project.runtime().signal(paused.run_id, f"early {SECRET}", event="A.B")
    with pytest.raises(UnknownInterrupt):
        await project.runtime().signal(paused.run_id, f"lost {SECRET}", interrupt="ask-0")
    assert SECRET.encode() not in all_bytes(tmp_path)
    done = await project.runtime().signal(paused.run_id, SECRET)
    assert (done.status, SECRET.encode() in all_bytes(tmp_path)) == ("completed", False)


async def test_a_program_with_a_secret_in_its_text_goes_on_while_its_file_is_what_it_was(tmp_path: Path) -> None:
    project = Project(tmp_path / ".halo")
    project.env = {"SERVICE_TOKEN": SECRET}
    file = tmp_path / "main.halo"
    file.write_text(main(f'|! yield("?") |> System.Value("{SECRET}, ")'))
    paused = await project.runtime().run(halo_lang.parse(Source(file.read_text(), str(file))), "Main", {"x": 1})
    assert SECRET.encode() not in all_bytes(project.root)
    text = file.read_text()
    file.write_text(f"{text}// edited")
    with pytest.raises(StoreError, match=r"held a value that is secret.*main\.halo is not what it was.*--checkpoint"):
        await project.runtime().signal(paused.run_id, "yes")
    file.write_text(text)
    done = await project.runtime().signal(paused.run_id, "yes")
    assert (done.status, done.output) == ("completed", "[REDACTED], ")


async def test_a_run_that_no_longer_fits_its_journal_fails_and_leaves_the_journal_alone(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": {"replies": ["r"], "repeat": True}})
    paused = await project.run(main('|> A.go("Use {{x}}") |! yield("?")'), {"x": "before"})
    lines = [{**line, "input": {"x": "after"}} if line["t"] == "run" else line for line in project.lines(paused.run_id)]
    documents = [{name: value for name, value in line.items() if name != "sum"} for line in lines]
    path = project.store.folder / f"{paused.run_id}.jsonl"
    path.write_bytes(sealed(*documents))
    result = await project.runtime().resume(paused.run_id)
    assert (result.status, type(result.error).__name__) == ("failed", "ReplayError")
    assert project.store.load(paused.run_id).status == "paused"
    assert len(project.lines(paused.run_id)) == len(lines)


# --- size ---------------------------------------------------------------------------------------------------------


async def test_a_journal_grows_with_what_each_round_adds(tmp_path: Path) -> None:
    sizes: dict[int, int] = {}
    for rounds in (50, 100):
        replies = [{"reply": "x" * 1000 + str(n)} for n in range(rounds)] + ["end"]
        project = Project(tmp_path / str(rounds), {"A.go": replies})
        text = main(f'|> A.go("Go") |<> loop(A, "go != \'end\'", max: {rounds})', before="@checkpoint\n")
        result = await project.run(text, {"x": 1}, run_id="r")
        assert result.status == "completed"
        sizes[rounds] = len(project.bytes_of("r"))
    assert sizes[100] / sizes[50] < 2.2


async def test_the_state_at_every_entry_is_what_it_was_then(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": ["1", "2", "3"], "B.go": {"replies": ["b"], "repeat": True}})
    result = await project.run(main('|> A.go() as a |> B.go() as b |<> loop(A, "a != 3", max: 5) as rounds'), {"x": 1})
    stored = project.store.load(result.run_id)
    seen = [(stored.context(seq)["current"], stored.context(seq)["data"].get("a")) for seq in range(len(stored.trace))]
    assert seen[:5] == [(1, None), ("1", "1"), ("b", "1"), ("b", "1"), ("2", "2")]
    assert stored.context()["data"] == result.context.data
    assert [len(stored.context(seq)["trace"]) for seq in (0, 3)] == [1, 4]


async def test_a_stopped_run_says_interrupted_and_closes_its_journal(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": {"replies": ["r"], "repeat": True}})
    runtime = project.runtime()

    async def at_work(method: str, args: dict[str, Any]) -> int:
        runtime.stop("r")
        await asyncio.sleep(60)
        return 1

    project.deeds = StubTool(at_work)
    runtime = project.runtime()
    text = main('|> A.go() |> Deeds.get("k") |> A.go()')
    stopped: RunResult = await runtime.run(halo_lang.parse(text), "Main", {"x": 1}, run_id="r", keep=True)
    assert stopped.status == "interrupted"
    assert project.lines("r")[-1]["status"] == "interrupted"
    assert str(verify_journal(project.store, "r")) == "open"
    project.clock.moment += timedelta(days=1)
    project.deeds = StubTool(lambda method, args: 1)
    done = await project.runtime().resume("r")
    assert (done.status, len(done.context.meta["calls"])) == ("completed", 2)
    whole = Project(tmp_path / "whole", project.replies)
    whole.deeds = project.deeds
    assert figures(done) == figures(await whole.run(text, {"x": 1}))
