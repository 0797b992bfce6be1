"""A limit that asks is one question over pauses, kills and processes; what was allowed is read from the journal."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from halo_runtime import Interrupt, RunResult
from halo_runtime.errors import AlreadyAnswered, PolicyViolation, RunRefused, SignalError
from tests.durability.support import Project

ASKS = 'onLimit: "ask"'
USING = {"*": {"reply": "ok", "usage": {"input": 1000, "output": 1000}}}
"""Every call costs $0.00075."""


def guarded(stages: str, rule: str = f"MaxCalls(1, {ASKS})", before: str = "") -> str:
    agent = f"policy Guard : {rule}\nagent Bot [openai/gpt-4o-mini]\n  requires Guard\n"
    return f"{agent}{before}@checkpoint\npipeline Main(x: Any) -> Any:\n  {stages}\n"


THREE = "x |> Bot.one() |> Bot.two() |> Bot.three()"
PARALLEL = guarded(
    "x |* { Long(x) as long, Bot.short(x) as short } |> Bot.last()",
    f"MaxCalls(2, {ASKS})",
    "pipeline Long(x: Any) -> Any: x |> Bot.a() |> Bot.b() |> Bot.c()\n",
)


def calls_of(project: Project, run_id: str) -> int:
    """How many model calls of a run have ended that it made itself."""
    lines = [line for line in project.lines(run_id) if line.get("kind") == "model" and not line.get("reused")]
    return len([line for line in lines if "refused" not in line.get("charge", {})])


def begun(project: Project, run_id: str) -> int:
    """How many model calls a run has begun."""
    return len([line for line in project.lines(run_id) if line["t"] == "booked"])


def limits(result: RunResult) -> list[Interrupt]:
    return [question for question in result.interrupts if question.kind == "limit"]


async def test_another_process_raises_the_limit_and_the_next_reads_it_from_the_journal(tmp_path: Path) -> None:
    project = Project(tmp_path, USING)
    paused = await project.run(guarded(THREE), {"x": "t"})
    (first,) = limits(paused)
    paused = await project.runtime().signal(paused.run_id, {"add": 1}, by="Ann")
    (second,) = limits(paused)
    assert second.id != first.id
    assert second.budget is not None
    assert (second.budget["limit"], second.budget["spent"]) == (2, 2)
    result = await project.runtime().signal(paused.run_id, {"add": 1})
    assert (result.status, calls_of(project, result.run_id)) == ("completed", 3)
    answers = [line["answer"]["by"] for line in project.lines(result.run_id) if line.get("kind") == "human"]
    assert answers == ["Ann", None]


async def test_the_question_is_the_same_however_often_the_run_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path, USING)
    paused = await project.run(PARALLEL, {"x": "t"})
    ids = [question.id for question in paused.interrupts]
    for _ in range(3):
        paused = await project.runtime().resume(paused.run_id)
        assert [question.id for question in paused.interrupts] == ids
    assert len(ids) == 1


async def test_an_answer_is_taken_once(tmp_path: Path) -> None:
    project = Project(tmp_path, USING)
    paused = await project.run(guarded(THREE), {"x": "t"})
    (question,) = paused.interrupts
    paused = await project.runtime().signal(paused.run_id, {"add": 1}, interrupt=question.id)
    with pytest.raises(AlreadyAnswered):
        await project.runtime().signal(paused.run_id, {"add": 1}, interrupt=question.id)
    with pytest.raises(SignalError, match="is answered"):
        await project.runtime().signal(paused.run_id, "yes")
    with pytest.raises(SignalError, match="is answered"):
        project.runtime().post(paused.run_id, "yes")
    result = await project.runtime().signal(paused.run_id, "stop")
    assert isinstance(result.error, PolicyViolation)
    with pytest.raises(RunRefused):
        await project.runtime().signal(paused.run_id, {"add": 1})
    assert calls_of(project, paused.run_id) == 2


@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("lines", range(1, 40, 2))
async def test_wherever_the_process_is_killed_no_more_begin_than_were_allowed(
    tmp_path: Path, lines: int, stop: bool
) -> None:
    """Killed before the question, between question and answer, and behind the answer."""
    project = Project(tmp_path, {"*": "ok"})
    answers = ["stop"] if stop else [{"add": 1}, {"add": 1}, {"add": 1}]
    run_id = await answered(project, await project.run(PARALLEL, {"x": "t"}), iter(answers))
    kept = itertools.count()
    project.cut(run_id, lambda line: next(kept) < lines)
    if (status := project.lines(run_id)[-1]).get("status") in ("completed", "failed"):
        assert status["status"] == ("failed" if stop else "completed")
        return
    given = [line["result"] for line in project.lines(run_id) if line.get("kind") == "human"]
    result = await project.runtime().resume(run_id)
    if given == ["stop"]:
        assert isinstance(result.error, PolicyViolation)
        return
    allowed = 2 + len(given)
    assert begun(project, run_id) <= allowed
    assert len(limits(result)) == (1 if allowed < 5 else 0)
    await answered(project, result, iter(answers[len(given) :]))
    assert begun(project, run_id) <= 2 + (0 if stop else 3)
    assert project.lines(run_id)[-1]["status"] == ("failed" if stop else "completed")


async def answered(project: Project, result: RunResult, answers: Any) -> str:
    while result.status == "paused":
        result = await project.runtime().signal(result.run_id, next(answers))
    return result.run_id


async def test_a_kill_between_question_and_answer_leaves_it_to_be_answered(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    paused = await project.run(guarded(THREE), {"x": "t"})
    project.cut(paused.run_id, lambda line: line["t"] != "status")
    (question,) = project.store.load(paused.run_id).questions
    assert (question.kind, question.id) == ("limit", paused.interrupts[0].id)
    result = await project.runtime().signal(paused.run_id, {"add": 2}, interrupt=question.id)
    assert (result.status, calls_of(project, paused.run_id)) == ("completed", 3)


async def test_an_answer_that_is_left_while_the_run_is_at_work_is_taken_when_it_is_asked_for(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    paused = await project.run(guarded('x |! yield("?") |> Bot.one() |> Bot.two()'), {"x": "t"})
    world = project.runtime()
    world.post(paused.run_id, "yes")  # no answer to a limit, so it stays with the question that takes it
    result = await world.resume(paused.run_id)
    assert [question.kind for question in result.interrupts] == ["limit"]
    world.post(result.run_id, {"add": 1})
    assert (await world.resume(result.run_id)).status == "completed"


async def test_the_runs_own_limit_asks_in_every_process(tmp_path: Path) -> None:
    project = Project(tmp_path, USING)
    text = guarded(THREE, "MaxCalls(9)")
    paused = await project.run(text, {"x": "t"}, max_spend=Decimal("0.00075"), on_limit="ask")
    result = await project.runtime().signal(paused.run_id, {"add": 0.00075})
    assert (result.status, calls_of(project, result.run_id)) == ("paused", 2)
    result = await project.runtime().signal(paused.run_id, {"add": 1})
    assert result.context.meta["budget"]["run"]["MaxSpend"]["limit"] == 1.0015


async def test_what_was_read_of_a_budget_before_it_was_raised_is_read_so_again(tmp_path: Path) -> None:
    """A condition on what is left decides in the next process as it did, whatever has been added since."""
    project = Project(tmp_path, {"*": "ok"})
    left = "context.meta.budget.Guard.MaxCalls.left"
    branch = f"|? {{ ({left} == 0) => Bot.two(), else => Bot.other() }}"
    text = guarded(f'x |> Bot.one() {branch} |! yield("?") |> Bot.three()')
    result = await project.run(text, {"x": "t"})
    for answer in ({"add": 1}, "go on", {"add": 5}):
        assert result.status == "paused"
        result = await project.runtime().signal(result.run_id, answer)
    assert (result.status, list(result.context.data["Bot"])) == ("completed", ["one", "two", "three"])
    assert result.context.meta["budget"]["Guard"]["MaxCalls"] == {"limit": 7, "spent": 3, "left": 4}
    assert project.store.load(result.run_id).to_json()["context"]["meta"] == result.context.meta


async def test_calls_that_were_broken_off_are_in_the_figures_where_they_are_made_again(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    done = await project.run(guarded("x |> Bot.one() |> Bot.two()", "MaxCalls(5)"), {"x": "t"})
    project.cut(done.run_id, lambda line: not (line["t"] == "effect" and line["path"].startswith("Main/1")))
    result = await project.runtime().resume(done.run_id)
    assert result.context.meta["budget"]["Guard"]["MaxCalls"] == {"limit": 5, "spent": 3, "left": 2}


# --- continued as a new run ---------------------------------------------------------------------------------


async def raised_and_failed(project: Project) -> str:
    paused = await project.run(guarded('x |> Bot.one() |> Bot.two() |> System.Fail("no")'), {"x": "t"})
    return (await project.runtime().signal(paused.run_id, {"add": 1})).run_id


async def test_what_was_added_does_not_carry_over_to_a_new_run_which_asks_and_shows_it(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    failed = await raised_and_failed(project)
    fork = await project.fork(guarded("x |> Bot.one() |> Bot.two() |> Bot.three()"), failed)
    (question,) = fork.interrupts
    assert question.former == {"add": 1}
    assert "2 of 1 calls are used" in question.message
    result = await project.runtime().signal(fork.run_id, {"add": 2})
    assert (result.status, calls_of(project, fork.run_id)) == ("completed", 1)


async def test_reuse_answers_adds_it_again(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    failed = await raised_and_failed(project)
    fork = await project.fork(guarded("x |> Bot.one() |> Bot.two() |> Bot.three()"), failed, reuse_answers=True)
    (question,) = fork.interrupts
    assert "2 of 2 calls are used" in question.message
    result = await project.runtime().signal(fork.run_id, {"add": 1})
    assert result.status == "completed"


async def test_a_completed_run_that_was_raised_is_given_back_as_it_is(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    paused = await project.run(guarded("x |> Bot.one() |> Bot.two()"), {"x": "t"})
    done = await project.runtime().signal(paused.run_id, {"add": 1})
    again = await project.fork(guarded("x |> Bot.one() |> Bot.two()"), done.run_id)
    assert (again.run_id, again.status) == (done.run_id, "completed")
