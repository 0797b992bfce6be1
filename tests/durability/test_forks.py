"""A run continued with the program as it is now: what is as it was is taken, what differs runs anew and says why."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import RunResult
from halo_runtime.errors import InputError, RunRefused, StagesDiffer, StoreError
from halo_runtime.preflight import Preflight
from tests.durability.support import AGENTS, STORE, Project, figures, keys

PROGRAM = """
agent A [openai/gpt-4o-mini]
  requires Rules
  system "Be brief."
agent B [openai/gpt-4o-mini]
  equips Deeds
agent C [openai/gpt-4o-mini]
store Deeds: KV("deeds.db")
policy Rules:
  MaxLength(2000)

pipeline Main(x: Any) -> Any:
  x
    |> A.first("First of {{x}}")
    |> B.second("Second")
    |> Deeds.incr("third {{second}}")
    |> Sub(second) as sub
    |> A.last("Last")

pipeline Sub(v: Any) -> Any:
  v
    |> C.one("One")
    |> C.two("Two")

pipeline Unrelated(v: Any) -> Any:
  v |> C.other()
"""
USAGE = {"usage": {"input": 1000, "output": 1000}}
REPLIES: dict[str, Any] = {
    key: {"replies": [{"reply": f"{key} said", **USAGE}], "repeat": True}
    for key in ("A.first", "B.second", "C.one", "C.two", "A.last", "C.second")
}


def checked(text: str) -> str:
    errors = halo_lang.check(halo_lang.parse(text)).errors
    assert not errors, errors
    return text


def asked(result: RunResult) -> list[str]:
    """The calls that were made anew."""
    return [call["method"] for call in result.context.meta["calls"] if not call.get("reused")]


async def fork(project: Project, text: str, run_id: str, **options: Any) -> tuple[RunResult, Preflight]:
    told: list[Preflight] = []
    result = await project.fork(checked(text), run_id, told=told.append, **options)
    return result, told[0]


@pytest.fixture
async def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, REPLIES)
    result = await made.run(checked(PROGRAM), {"x": 1}, run_id="old")
    assert result.status == "completed"
    made.deeds.calls.clear()
    return made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("agent A", "// a comment\nagent A"),
        ('    |> B.second("Second")', '\n    |>   B.second(  "Second"  ) // why'),
        ("|> C.other()", "|> C.another()"),
        ('"Second"', "'Second'"),
        ("pipeline Unrelated(v: Any) -> Any:\n  v |> C.other()\n", ""),
        ("", "pipeline New(v: Any) -> Any:\n  v |> System.Value(1)\n"),
    ],
    ids=["comment", "layout", "unrelated pipeline", "quotes", "unrelated pipeline gone", "new pipeline"],
)
async def test_what_means_the_same_is_given_back_as_it_is(old: str, new: str, project: Project) -> None:
    text = PROGRAM.replace(old, new, 1) if old else new + PROGRAM
    assert text != PROGRAM
    project.replies = {"*": {"error": 400}}
    result, plan = await fork(project, text, "old")
    assert (result.run_id, result.output, keys(project.deeds)) == ("old", "A.last said", [])
    assert {stage.verdict for stage in plan.stages} == {"reused"}
    assert plan.again == 0


ALL = ["first", "second", "one", "two", "last"]
EDITS: dict[str, tuple[str, str, list[str], str, int]] = {
    "the text of a stage": ('"Second"', '"Second, better"', ALL[1:], "the prompt changed", 2),
    "an agent's system prompt": ("Be brief.", "Be long.", ALL, "texts of the agent A", 1),
    "an agent's model": ("agent B [openai/gpt-4o-mini]", "agent B [openai/gpt-4o]", ALL[1:], "the agent B changed", 2),
    "a tool of an agent": ('KV("deeds.db")', 'KV("other.db")', ALL[1:], "the store Deeds changed", 2),
    "a policy of an agent": ("MaxLength(2000)", "MaxLength(3000)", ALL, "the policy Rules changed", 1),
    "another agent of the same shape": ("B.second(", "C.second(", ALL[1:], "it was edited", 2),
    "the text of a tool's call": ('"third {{', '"fourth {{', ALL[2:], "the text changed", 3),
    "a stage of a nested pipeline": ('"Two"', '"Two!"', ALL[3:], "the prompt changed", 4),
    "a later stage": ('"Last"', '"Last!"', ALL[4:], "the prompt changed", 5),
    "the start value": ("  x\n    |> A.f", '  "{{x}}"\n    |> A.f', ALL, "the start value changed", 1),
    "a directive of a nested pipeline": (
        "pipeline Sub",
        "@timeout(9m)\npipeline Sub",
        ALL[2:],
        "pipeline Sub changed",
        4,
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
async def test_an_edit_runs_its_stage_and_all_after_it_anew(
    edit: tuple[str, str, list[str], str, int], project: Project
) -> None:
    old, new, anew, reason, stage = edit
    text = PROGRAM.replace(old, new, 1)
    assert text != PROGRAM
    before = project.bytes_of("old")
    paid = project.store.load("old").to_json()["context"]["meta"]["cost"]
    result, plan = await fork(project, text, "old")
    assert (result.status, asked(result)) == ("completed", anew)
    assert (plan.again, plan.saved) == pytest.approx((paid * len(anew) / 5, paid * (5 - len(anew)) / 5))
    assert result.run_id != "old"
    edited = plan.stages[stage - 1]
    assert (edited.verdict, reason in edited.reason) == ("edited after use", True), edited
    assert {verdict.verdict for verdict in plan.stages[: stage - 1]} <= {"reused"}
    assert {verdict.verdict for verdict in plan.stages[stage:]} <= {"re-run", "edited after use"}
    assert project.bytes_of("old") == before
    with pytest.raises(StagesDiffer, match=reason):
        await project.fork(text, "old", strict=True)


async def test_a_side_effect_before_the_edit_is_not_repeated_and_one_behind_it_is(project: Project) -> None:
    await fork(project, PROGRAM.replace('"Last"', '"L"'), "old")
    assert keys(project.deeds) == []
    await fork(project, PROGRAM.replace('"Second"', '"S"'), "old")
    assert keys(project.deeds) == ["third B.second said"]


async def test_what_is_taken_costs_nothing_and_says_so(project: Project) -> None:
    stored = project.store.load("old").to_json()["context"]["meta"]
    result, plan = await fork(project, PROGRAM.replace('"Last"', '"Last!"'), "old")
    [*reused, last] = result.context.meta["calls"]
    assert all(call["reused"] and call["cost"] == 0 and call["tokens"]["total"] == 0 for call in reused)
    assert last["cost"] == result.context.meta["cost"] == pytest.approx(stored["cost"] / 5)
    assert plan.saved == pytest.approx(stored["cost"] * 4 / 5)
    assert plan.again == pytest.approx(stored["cost"] / 5)


ITEMS = (
    "agent A [openai/gpt-4o-mini]\nagent B [openai/gpt-4o-mini]\n"
    'pipeline Main(xs: Array) -> Any:\n  xs |> A.first("First") |* each(x in xs) => One(x) |> A.last("Last")\n'
    'pipeline One(x: Any) -> Any:\n  x |> A.one("One {{x}}") |> B.two("Two") |! yield("Is {{x}} right?")\n'
)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("edit", "again", "saved"),
    [(("Last", "Last!"), 0, 7), (("Two", "Two!"), 3, 4), (("One {{", "One! {{"), 6, 1), (("First", "First!"), 7, 0)],
)
async def test_what_items_that_still_wait_have_cost_is_saved_or_paid_again(
    edit: tuple[str, str], again: int, saved: int, killed: bool, tmp_path: Path
) -> None:
    usage = {"usage": {"input": 1000, "output": 100}}
    said = ("A.first", "A.one", "B.two", "A.last")
    project = Project(tmp_path, {name: {"replies": [{"reply": "said", **usage}], "repeat": True} for name in said})
    paused = await project.run(ITEMS, {"xs": ["a", "b", "c"]}, run_id="old")
    each = paused.context.meta["cost"] / 7
    if killed:
        project.cut("old", lambda line: line["t"] != "status")
    result, plan = await fork(project, ITEMS.replace(*edit), "old")
    assert (plan.again, plan.saved) == pytest.approx((again * each, saved * each))
    assert result.context.meta["cost"] == pytest.approx(again * each)


async def test_a_stage_that_was_not_reached_may_change_freely(project: Project) -> None:
    project.cut("old", lambda line: line.get("path", "") != "Main/4/step1/try1")
    result, plan = await fork(project, PROGRAM.replace('"Last"', '"Last!"'), "old", strict=True)
    assert (result.status, asked(result)) == ("completed", ["last"])
    assert [stage.verdict for stage in plan.stages] == ["reused"] * 4 + ["new"]


async def test_other_input_runs_what_it_flows_into_anew(project: Project) -> None:
    result, plan = await fork(project, PROGRAM, "old", inputs={"x": 2})
    assert asked(result) == ["first", "second", "one", "two", "last"]
    assert (plan.stages[0].verdict, plan.stages[0].reason) == ("re-run", "another value flows into it")


async def test_stages_that_are_new_or_gone_are_told(project: Project) -> None:
    _, plan = await fork(project, PROGRAM.replace('    |> A.last("Last")\n', ""), "old")
    assert [(stage.stage, stage.verdict) for stage in plan.stages][-1] == ("|> A.last", "gone")
    _, plan = await fork(project, PROGRAM.replace('|> A.last("Last")', '|> A.last("Last") |> System.Value(1)'), "old")
    assert [(stage.stage, stage.verdict) for stage in plan.stages][-1] == ("|> System.Value", "new")


async def test_every_entry_can_be_gone_back_to(project: Project) -> None:
    stored = project.store.load("old")
    order = [entry["path"] for entry in stored.stages]
    assert order == ["Main/0", "Main/1", "Main/2", "Main/3/Sub/0", "Main/3/Sub/1", "Main/3", "Main/4"]
    after = {
        0: ["first", "second", "one", "two", "last"], 1: ["second", "one", "two", "last"], 2: ["one", "two", "last"],
        3: ["one", "two", "last"], 4: ["two", "last"], 5: ["last"], 6: ["last"], 7: [],
    }  # fmt: skip
    for seq, anew in after.items():
        project.deeds.calls.clear()
        result, _ = await fork(project, PROGRAM, "old", at=seq)
        assert asked(result) == anew, seq
        assert keys(project.deeds) == (["third B.second said"] if seq < 3 else [])
        assert result.context.trace == stored.trace
        assert project.store.load(result.run_id).header["parent"] == "old"
        assert project.store.load(result.run_id).header["forkedAt"] == seq


async def test_an_entry_that_is_not_there_is_refused(project: Project) -> None:
    with pytest.raises(StoreError, match="entries 0 to 8, not 9"):
        await project.fork(PROGRAM, "old", at=9)


async def test_another_pipeline_is_refused(project: Project) -> None:
    with pytest.raises(RunRefused, match="is one of Main, not of Sub"):
        await project.fork(PROGRAM, "old", pipeline="Sub")
    with pytest.raises(RunRefused, match="has no pipeline Main"):
        await project.fork(PROGRAM.replace("pipeline Main", "pipeline Other"), "old")
    with pytest.raises(InputError):
        await project.fork(PROGRAM, "old", inputs={"y": 1})


async def test_forks_of_forks_are_a_tree(project: Project) -> None:
    child, _ = await fork(project, PROGRAM.replace('"Last"', '"Last!"'), "old")
    grandchild, _ = await fork(project, PROGRAM.replace('"Last"', '"Last!!"'), child.run_id)
    assert asked(grandchild) == ["last"]
    assert project.store.load(grandchild.run_id).header["parent"] == child.run_id
    whole, _ = await fork(project, PROGRAM.replace('"Last"', '"Last!!"'), grandchild.run_id)
    assert whole.run_id == grandchild.run_id


# --- questions ----------------------------------------------------------------------------------------------------

ASKING = f"""{AGENTS}{STORE}
pipeline Main(x: Any) -> Any:
  x
    |> A.first()
    |! yield("One?") as one
    |> Deeds.incr("between")
    |! yield("Two?") as two
    |> B.second("{{{{one}}}} {{{{two}}}}")
"""


async def answered(tmp_path: Path) -> Project:
    project = Project(tmp_path, REPLIES)
    result = await project.run(checked(ASKING), {"x": 1}, run_id="old")
    result = await project.answer_all(result, lambda question: f"yes to {question.message}", lambda _: 0)
    assert result.status == "completed"
    project.deeds.calls.clear()
    return project


async def test_questions_behind_the_point_gone_back_to_ask_again_with_the_former_answer(tmp_path: Path) -> None:
    project = await answered(tmp_path)
    before = sha256(project.bytes_of("old")).hexdigest()
    result, _ = await fork(project, ASKING, "old", at=1)
    [question] = result.interrupts
    assert (question.message, question.former) == ("One?", "yes to One?")
    assert question.to_json()["formerAnswer"] == "yes to One?"
    result = await project.runtime().signal(result.run_id, "no")
    assert [(one.message, one.former) for one in result.interrupts] == [("Two?", "yes to Two?")]
    result = await project.runtime().signal(result.run_id, "no")
    assert (result.status, keys(project.deeds)) == ("completed", ["between"])
    assert result.context.data["one"] == result.context.data["two"] == "no"
    assert sha256(project.bytes_of("old")).hexdigest() == before


async def test_answers_are_taken_again_only_where_that_is_asked_for(tmp_path: Path) -> None:
    project = await answered(tmp_path)
    result, _ = await fork(project, ASKING, "old", at=1, reuse_answers=True)
    assert (result.status, keys(project.deeds), asked(result)) == ("completed", ["between"], ["second"])
    taken = [line["answer"] for line in project.lines(result.run_id) if line.get("kind") == "human"]
    assert len(taken) == 2


async def test_an_answer_is_not_taken_for_a_question_that_asks_something_else(tmp_path: Path) -> None:
    project = await answered(tmp_path)
    result, plan = await fork(project, ASKING.replace("One?", "One, really?"), "old", reuse_answers=True)
    assert [one.message for one in result.interrupts] == ["One, really?"]
    assert plan.stages[1].verdict == "edited after use"


async def test_a_question_that_is_asked_no_more_is_orphaned(tmp_path: Path) -> None:
    project = await answered(tmp_path)
    _, plan = await fork(project, ASKING.replace('    |! yield("Two?") as two\n', ""), "old")
    assert "question orphaned" in [stage.verdict for stage in plan.stages]


async def test_a_question_that_goes_and_a_stage_edited_behind_it_are_told_apart(tmp_path: Path) -> None:
    project = await answered(tmp_path)
    edited = ASKING.replace(
        '    |! yield("Two?") as two\n    |> B.second("{{one}} {{two}}")', '    |> B.second("{{one}}")'
    )
    assert edited != ASKING
    _, plan = await fork(project, edited, "old")
    verdicts = [(stage.stage, stage.verdict) for stage in plan.stages]
    assert verdicts[-2:] == [("|! yield", "question orphaned"), ("|> B.second", "edited after use")]


async def test_a_paused_run_is_forked_with_its_question_open_in_both(tmp_path: Path) -> None:
    project = Project(tmp_path, REPLIES)
    old = await project.run(checked(ASKING), {"x": 1}, run_id="old")
    new, _ = await fork(project, ASKING, "old")
    assert new.interrupts[0].id != old.interrupts[0].id
    done = await project.answer_all(new, lambda _: "yes", lambda _: 0)
    assert done.status == "completed"
    assert project.store.load("old").status == "paused"
    assert asked(done) == ["second"]


async def test_an_edit_behind_an_answered_question_does_not_ask_again(tmp_path: Path) -> None:
    project = await answered(tmp_path)
    result, _ = await fork(project, ASKING.replace("{{one}} {{two}}", "{{two}}"), "old")
    assert (result.status, asked(result), keys(project.deeds)) == ("completed", ["second"], [])


async def test_an_edited_gate_looks_at_the_answer_that_was_given(tmp_path: Path) -> None:
    project = Project(tmp_path, REPLIES)
    text = f'{AGENTS}pipeline Main(x: Any) -> Any:\n  x |! yield("Go?") as go |? (go == "yes") |> B.second()'
    halted = await project.run(checked(text), {"x": 1})
    halted = await project.runtime().signal(halted.run_id, "y")
    assert halted.status == "halted"
    result, plan = await fork(project, text.replace('"yes"', '"y"'), halted.run_id)
    assert (result.status, asked(result)) == ("completed", ["second"])
    assert [stage.verdict for stage in plan.stages] == ["reused", "edited after use", "new"]
    assert plan.stages[1].reason == "the condition changed"


# --- what ended otherwise -----------------------------------------------------------------------------------------


async def test_a_halted_runs_gate_is_evaluated_again_with_other_input(tmp_path: Path) -> None:
    project = Project(tmp_path, REPLIES)
    text = f"{AGENTS}pipeline Main(x: Any, go: Any) -> Any:\n  x |> A.first() |? (go == 1) |> B.second()"
    halted = await project.run(checked(text), {"x": 1, "go": 0})
    assert halted.status == "halted"
    again, _ = await fork(project, text, halted.run_id)
    assert (again.status, asked(again)) == ("halted", [])
    open_now, _ = await fork(project, text, halted.run_id, inputs={"go": 1})
    assert open_now.status == "completed"
    changed, _ = await fork(project, text.replace("go == 1", "go == 0"), halted.run_id)
    assert (changed.status, asked(changed)) == ("completed", ["second"])


async def test_a_branch_is_chosen_again_when_what_it_looks_at_changes(tmp_path: Path) -> None:
    project = Project(tmp_path, REPLIES)
    text = (
        AGENTS
        + """pipeline Main(x: Any, go: Any) -> Any:
  x
    |? { (go == 1) => A.first(), else => B.second() }
    |> A.last("L")"""
    )
    old = await project.run(checked(text), {"x": 1, "go": 0})
    new, _ = await fork(project, text, old.run_id, inputs={"go": 1})
    assert asked(new) == ["first", "last"]


@pytest.mark.parametrize("on_error", ["fail", "keep", "drop"])
async def test_the_items_that_failed_are_done_again_alone(on_error: str, tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": ["one", {"error": 400}, "three"], "B.last": {"error": 400}})
    text = (
        f"{AGENTS}pipeline Main(xs: Array) -> Any:\n"
        f'  xs |* each(x in xs, concurrency: 1, onError: "{on_error}") => A.go() |> B.last()'
    )
    failed = await project.run(checked(text), {"xs": [1, 2, 3]})
    assert failed.status == "failed"
    project.replies = {"A.go": {"replies": ["again"], "repeat": True}, "B.last": "end"}
    done, _ = await fork(project, text, failed.run_id)
    assert (done.status, done.output) == ("completed", "end")
    results = done.context.data["A"]["go"]
    assert results == (["one", "again", "again"] if on_error == "fail" else ["one", "again", "three"])


async def test_a_failed_stage_is_tried_again_and_what_went_well_is_not(tmp_path: Path) -> None:
    project = Project(tmp_path, {**REPLIES, "B.second": {"error": 400}})
    failed = await project.run(checked(PROGRAM), {"x": 1})
    assert (failed.status, failed.context.meta["calls"][0]["method"]) == ("failed", "first")
    project.replies = REPLIES
    done, plan = await fork(project, PROGRAM, failed.run_id)
    assert (done.status, asked(done)) == ("completed", ["second", "one", "two", "last"])
    assert plan.stages[0].verdict == "reused"
    undisturbed = await Project(tmp_path / "other", REPLIES).run(PROGRAM, {"x": 1})
    assert done.context.trace == undisturbed.context.trace
    assert done.output == undisturbed.output


async def test_loops_go_on_where_they_were_with_a_larger_bound(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": ["r"] * 4})
    text = f"{AGENTS}pipeline Main(x: Any) -> Any:\n  x |> A.go() |<> loop(A, \"go == 'r'\", max: 3)"
    failed = await project.run(checked(text), {"x": 1})
    assert (type(failed.error).__name__, len(failed.context.meta["calls"])) == ("LoopLimitError", 4)
    assert failed.context.data["go"] == "r"
    project.replies = {"A.go": {"replies": ["r", "r", "r", "r", "r", "end"]}}
    done, _ = await fork(project, text.replace("max: 3", "max: 5"), failed.run_id)
    assert (done.status, asked(done)) == ("completed", ["go"] * 2)
    assert len(done.context.meta["calls"]) == 6


async def test_a_fan_out_in_a_loop_gives_each_round_its_own_results(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": ["1", "2", "3"] * 2, "B.say": ["x", "y", "z"] * 2})
    text = (
        AGENTS
        + """pipeline Main(x: Any) -> Any:
  x
    |> A.go()
    |* { B.say() as b, System.Value(go) as a }
    |<> loop(A, "go != 3", max: 5)"""
    )
    result = await project.run(checked(text), {"x": 1})
    assert result.output == {"b": "z", "a": "3"}
    cut = await project.run(text, {"x": 1}, run_id="cut")
    project.cut("cut", lambda line: line["t"] != "status")
    assert figures(await project.runtime().resume("cut")) == figures(cut)


# --- forks that stop on their way ---------------------------------------------------------------------------------


async def test_a_fork_killed_anywhere_goes_on_with_taking_what_it_may(project: Project) -> None:
    whole, _ = await fork(project, PROGRAM.replace('"Last"', '"Last!"'), "old")
    data = project.bytes_of(whole.run_id)
    for count in range(1, data.count(b"\n")):
        path = project.store.folder / f"{whole.run_id}.jsonl"
        path.write_bytes(b"".join(data.splitlines(keepends=True)[:count]))
        result = await project.runtime().resume(whole.run_id)
        assert figures(result) == figures(whole), count
        assert keys(project.deeds) == []


async def test_a_fork_killed_behind_its_edit_takes_nothing_behind_it(project: Project) -> None:
    whole, _ = await fork(project, PROGRAM.replace('"One"', '"One!"'), "old")
    project.cut(whole.run_id, lambda line: line.get("path") != "Main/3/Sub/1/step1/try1")
    result = await project.runtime().resume(whole.run_id)
    assert asked(result) == ["one", "two", "last"]
    assert figures(result) == figures(whole)


async def test_a_fork_knows_its_parent_as_it_was_then(tmp_path: Path) -> None:
    project = Project(tmp_path, REPLIES)
    old = await project.run(checked(ASKING), {"x": 1}, run_id="old")
    new, _ = await fork(project, ASKING, "old", reuse_answers=True)
    await project.answer_all(old, lambda _: "yes", lambda _: 0)
    result = await project.runtime().signal(new.run_id, "no")
    assert [question.message for question in result.interrupts] == ["Two?"]
    assert result.context.data["one"] == "no"
    assert keys(project.deeds) == ["between", "between"]


async def test_a_fork_whose_parent_is_gone_goes_on_without_it(tmp_path: Path) -> None:
    project = await answered(tmp_path)
    result, _ = await fork(project, ASKING, "old", at=1)
    (project.store.folder / "old.jsonl").unlink()
    result = await project.answer_all(result, lambda _: "no", lambda _: 0)
    assert (result.status, result.context.data["two"]) == ("completed", "no")


async def test_answers_are_taken_again_also_after_the_fork_has_paused(tmp_path: Path) -> None:
    project = await answered(tmp_path)
    result, _ = await fork(project, ASKING.replace("One?", "One, really?"), "old", reuse_answers=True)
    result = await project.runtime().signal(result.run_id, "no")
    assert (result.status, result.context.data["two"]) == ("completed", "yes to Two?")
