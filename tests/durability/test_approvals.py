"""Approvals outlive the process, serve one call each, and let nothing pass that is done anew unasked (spec 6, 3.2)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from halo_runtime import RunResult
from halo_runtime.errors import AlreadyAnswered, AmbiguousSignal, RunRefused, SignalError, ToolError, UnknownInterrupt
from tests.durability.support import STORE, Project, keys
from tests.runtime.support import StubTool

PROGRAM = """policy Guard : Approve(Deeds)
agent Bot [openai/gpt-4o-mini]
  equips Deeds
  requires Guard
{more}
@checkpoint
pipeline Main(x: Any) -> Any:
  {stages}
"""
GO = "x |> Bot.go(tools: [Deeds])"


def program(stages: str = GO, more: str = "") -> str:
    return STORE + PROGRAM.format(stages=stages, more=more)


def wants(*names: str) -> dict[str, Any]:
    """A turn in which the model asks for deeds."""
    return {"tool_calls": [{"tool": "Deeds_incr", "args": {"key": name}} for name in names]}


def of(*turns: Any) -> dict[str, Any]:
    return {"Bot": list(turns)}


async def answered(project: Project, result: RunResult, **answers: Any) -> RunResult:
    """Answer each open question, in a process of its own, by the key of the deed that it is about."""
    while result.status == "paused":
        question = result.interrupts[0]
        (answer,) = [value for key, value in answers.items() if f'"{key}"' in question.message]
        result = await project.runtime().signal(result.run_id, answer, interrupt=question.id)
    return result


# --- in another process -------------------------------------------------------------------------------------


async def test_an_approval_that_another_process_gives_lets_the_call_be_made_once(tmp_path: Path) -> None:
    project = Project(tmp_path, of(wants("a"), "done"))
    paused = await project.run(program(), {"x": 1})
    assert [question.kind for question in paused.interrupts] == ["approve"]
    assert keys(project.deeds) == []
    result = await project.runtime().signal(paused.run_id, "approve", by="Ann")
    assert (result.output, keys(project.deeds)) == ("done", ["a"])
    (answer,) = [line["answer"] for line in project.lines(paused.run_id) if line.get("kind") == "human"]
    assert answer["by"] == "Ann"


async def test_the_approvals_of_a_turn_may_be_answered_in_any_order(tmp_path: Path) -> None:
    for order in itertools.permutations("abc"):
        project = Project(tmp_path / "".join(order), of(wants("a", "b", "c"), "done"))
        result = await project.run(program(), {"x": 1})
        for key in order:
            assert keys(project.deeds) == []  # the calls of a turn wait for each other's answers
            (question,) = [one for one in result.interrupts if f'"{key}"' in one.message]
            answer = "refuse" if key == "b" else "approve"
            result = await project.runtime().signal(result.run_id, answer, interrupt=question.id)
        assert (result.status, sorted(keys(project.deeds))) == ("completed", ["a", "c"])


async def test_an_answer_that_names_no_question_is_refused_where_several_are_open(tmp_path: Path) -> None:
    project = Project(tmp_path, of(wants("a", "b"), "done"))
    paused = await project.run(program(), {"x": 1})
    with pytest.raises(AmbiguousSignal):
        await project.runtime().signal(paused.run_id, "approve")
    assert keys(project.deeds) == []


async def test_a_second_answer_is_refused_and_so_is_one_that_comes_too_late(tmp_path: Path) -> None:
    project = Project(tmp_path, of(wants("a", "b"), "done"))
    paused = await project.run(program(), {"x": 1})
    first, second = paused.interrupts
    await project.runtime().signal(paused.run_id, "refuse", interrupt=first.id)
    with pytest.raises(AlreadyAnswered):
        await project.runtime().signal(paused.run_id, "approve", interrupt=first.id)
    with pytest.raises(UnknownInterrupt):
        await project.runtime().signal(paused.run_id, "approve", interrupt="ask-000000000000")
    result = await project.runtime().signal(paused.run_id, "approve", interrupt=second.id)
    with pytest.raises((SignalError, RunRefused)):
        await project.runtime().signal(paused.run_id, "approve", interrupt=first.id)
    assert (result.status, keys(project.deeds)) == ("completed", ["b"])


async def test_an_approval_has_no_end_of_its_own(tmp_path: Path) -> None:
    project = Project(tmp_path, of(wants("a"), "done"))
    text = program().replace("@checkpoint", "@checkpoint\n@timeout(1s)")
    paused = await project.run(text, {"x": 1})
    assert paused.interrupts[0].expires_at is None
    project.clock.moment = project.clock.moment.replace(year=2036)  # type: ignore[attr-defined]
    result = await project.runtime().signal(paused.run_id, "approve")
    assert (result.status, keys(project.deeds)) == ("completed", ["a"])


@pytest.mark.parametrize("lines", range(1, 12))
async def test_wherever_the_process_is_killed_nothing_is_done_unasked_and_nobody_is_asked_twice(
    tmp_path: Path, lines: int
) -> None:
    project = Project(tmp_path, of(wants("a"), "done"))
    whole = await answered(project, await project.run(program(), {"x": 1}), a="approve")
    assert whole.status == "completed"
    made = keys(project.deeds)
    kept = itertools.count()
    project.cut(whole.run_id, lambda line: next(kept) < lines)
    left = project.lines(whole.run_id)
    was_answered = any(line.get("kind") == "human" for line in left)
    was_done = any(line.get("kind") == "tool" for line in left)
    was_begun = any(line["t"] == "begun" for line in left)
    if any(line["t"] == "status" and line["status"] == "completed" for line in left):
        return
    result = await project.runtime().resume(whole.run_id)
    kinds = [question.kind for question in result.interrupts]
    if not was_answered:
        assert (kinds, keys(project.deeds)) == (["approve"], made)
    elif was_begun and not was_done:
        assert (kinds, keys(project.deeds)) == (["in_doubt"], made)
    else:
        assert (result.output, len(keys(project.deeds))) == ("done", 1 if was_done else 2)


# --- one answer, one call -----------------------------------------------------------------------------------


async def test_in_a_loop_each_round_asks_anew(tmp_path: Path) -> None:
    project = Project(tmp_path, of(wants("a"), "again", wants("a"), "done"))
    text = program("x |> Bot.go(tools: [Deeds]) |<> loop(Bot, \"current == 'again'\", max: 3)")
    result = await project.run(text, {"x": 1})
    (first,) = result.interrupts
    result = await project.runtime().signal(result.run_id, "approve")
    (second,) = result.interrupts
    assert first.id != second.id
    assert first.message == second.message
    assert keys(project.deeds) == ["a"]
    result = await project.runtime().signal(result.run_id, "refuse")
    assert (result.output, keys(project.deeds)) == ("done", ["a"])


async def test_in_each_every_item_asks_for_itself(tmp_path: Path) -> None:
    project = Project(tmp_path, of(*[wants("same")] * 3, *["done"] * 3))
    text = program("x |* each(y in x, concurrency: 3) => Bot.go(y, tools: [Deeds])")
    paused = await project.run(text, {"x": [1, 2, 3]})
    assert len({question.id for question in paused.interrupts}) == 3
    result = paused
    for question, answer in zip(paused.interrupts, ["approve", "refuse", "approve"], strict=True):
        result = await project.runtime().signal(result.run_id, answer, interrupt=question.id)
    assert (result.output, keys(project.deeds)) == (["done"] * 3, ["same"] * 2)


async def test_a_refused_call_that_is_asked_for_again_is_asked_about_again(tmp_path: Path) -> None:
    """Refusing one call does not let the same call through by another way."""
    project = Project(tmp_path, of(wants("a"), wants("a"), "gave up", wants("a"), "done"))
    text = program("x |> Bot.go(tools: [Deeds]) |> Bot.more(tools: [Deeds])")
    result = await project.run(text, {"x": 1})
    ids: list[str] = []
    while result.status == "paused":
        ids.append(result.interrupts[0].id)
        result = await project.runtime().signal(result.run_id, "refuse")
    assert (result.output, len(set(ids)), keys(project.deeds)) == ("done", 3, [])


async def test_a_model_that_asks_for_a_refused_call_without_end_comes_to_its_bound(tmp_path: Path) -> None:
    project = Project(tmp_path, {"Bot": {"replies": [wants("a")], "repeat": True}})
    result = await project.run(program("x |> Bot.go(tools: [Deeds], max_steps: 3)"), {"x": 1})
    rounds = 0
    while result.status == "paused":
        rounds += 1
        result = await project.runtime().signal(result.run_id, "refuse")
    assert (type(result.error).__name__, rounds, keys(project.deeds)) == ("StepLimitError", 2, [])
    told = result.context.meta["calls"][0]["tools"][0]["error"]
    assert told == "a person refused the call of Deeds.incr"


# --- continued as a new run ---------------------------------------------------------------------------------


async def failing(project: Project, error: ToolError) -> RunResult:
    """A run whose approved call failed, and the run with it; later calls go well."""
    failures = iter([error])

    def deed(method: str, args: dict[str, Any]) -> str:
        for failure in failures:
            raise failure
        return "did"

    project.deeds = StubTool(deed)
    project.replies = of(wants("a"), {"error": 400})
    failed = await answered(project, await project.run(program(), {"x": 1}), a="approve")
    assert failed.status == "failed"
    project.deeds.calls.clear()
    return failed


async def test_what_was_approved_and_done_is_taken_with_its_approval(tmp_path: Path) -> None:
    project = Project(tmp_path, of(wants("a"), {"error": 400}))
    failed = await answered(project, await project.run(program(), {"x": 1}), a="approve")
    assert (failed.status, keys(project.deeds)) == ("failed", ["a"])
    project.replies = of(wants("a"), "done")
    result = await project.fork(program(), failed.run_id)
    assert (result.output, keys(project.deeds)) == ("done", ["a"])


async def test_a_call_that_failed_is_not_made_anew_on_the_old_approval(tmp_path: Path) -> None:
    """The stage did not end: the call is made anew, so a person is asked anew, with the former answer shown."""
    project = Project(tmp_path)
    failed = await failing(project, ToolError("no room"))
    project.replies = of(wants("a"), "done")
    fork = await project.fork(program(), failed.run_id)
    (question,) = fork.interrupts
    assert (question.kind, question.former, keys(project.deeds)) == ("approve", "approve", [])
    result = await project.runtime().signal(fork.run_id, "refuse")
    assert (result.output, keys(project.deeds)) == ("done", [])


async def test_reuse_answers_takes_the_old_approval(tmp_path: Path) -> None:
    project = Project(tmp_path)
    failed = await failing(project, ToolError("no room"))
    project.replies = of(wants("a"), "done")
    result = await project.fork(program(), failed.run_id, reuse_answers=True)
    assert (result.output, keys(project.deeds)) == ("done", ["a"])


async def test_a_run_that_is_killed_before_an_approved_call_asks_anew_where_it_is_continued_as_a_new_one(
    tmp_path: Path,
) -> None:
    """In the run itself the approval holds, the call having not been made; in a new run nobody has approved it."""
    project = Project(tmp_path, of(wants("a"), "done"))
    whole = await answered(project, await project.run(program(), {"x": 1}), a="approve")
    project.cut(whole.run_id, lambda line: line["t"] != "begun")
    project.deeds.calls.clear()
    fork = await project.fork(program(), whole.run_id)
    assert ([question.kind for question in fork.interrupts], keys(project.deeds)) == (["approve"], [])
    result = await project.runtime().resume(whole.run_id)
    assert (result.output, keys(project.deeds)) == ("done", ["a"])


async def test_behind_a_change_everything_is_asked_anew(tmp_path: Path) -> None:
    project = Project(tmp_path, of(wants("a"), "done"))
    whole = await answered(project, await project.run(program(), {"x": 1}), a="approve")
    assert keys(project.deeds) == ["a"]
    changed = program('x |> Bot.go("Now.", tools: [Deeds])')
    fork = await project.fork(changed, whole.run_id)
    assert ([question.kind for question in fork.interrupts], keys(project.deeds)) == (["approve"], ["a"])


async def test_a_policy_that_asks_now_lets_no_reply_from_before_it_pass(tmp_path: Path) -> None:
    """The old run needed no approval; the new one does, so its stage is not taken."""
    project = Project(tmp_path, of(wants("a"), "done"))
    whole = await project.run(program().replace("Approve(Deeds)", "MaxLength(999)"), {"x": 1})
    assert (whole.status, keys(project.deeds)) == ("completed", ["a"])
    fork = await project.fork(program(), whole.run_id)
    assert ([question.kind for question in fork.interrupts], keys(project.deeds)) == (["approve"], ["a"])


async def test_a_refusal_is_taken_as_nothing_follows_from_it(tmp_path: Path) -> None:
    project = Project(tmp_path, of(wants("a"), {"error": 400}))
    failed = await answered(project, await project.run(program(), {"x": 1}), a="refuse")
    assert failed.status == "failed"
    project.replies = of(wants("a"), "done")
    result = await project.fork(program(), failed.run_id)
    assert (result.output, keys(project.deeds)) == ("done", [])
