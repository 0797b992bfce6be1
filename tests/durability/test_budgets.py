"""Budgets go on with the run: what was spent before a pause, a kill or in the run that is continued stays spent."""

from __future__ import annotations

import asyncio
import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import Runtime
from halo_runtime.errors import PolicyViolation
from halo_runtime.models.base import ModelRequest
from tests.durability.support import Project
from tests.runtime.support import StubModel

COSTLY = {"*": {"reply": "ok", "usage": {"input": 1000, "output": 1000}}}
"""Every call costs $0.00075."""


def guarded(stages: str, rule: str = "MaxCalls(2)", *, before: str = "", inputs: str = "x: Any") -> str:
    agent = f"policy Guard : {rule}\nagent Bot [openai/gpt-4o-mini]\n  requires Guard\n"
    return f"{agent}{before}@checkpoint\npipeline Main({inputs}) -> Any:\n  {stages}\n"


def calls_of(project: Project, run_id: str) -> int:
    """How many model calls a run's journal tells of that were made by it and have ended."""
    lines = project.lines(run_id)
    made = [line for line in lines if line.get("kind") == "model" and "refused" not in line.get("charge", {})]
    return len([line for line in made if not line.get("reused")])


def begun(project: Project, run_id: str) -> int:
    """How many model calls a run has begun."""
    return len([line for line in project.lines(run_id) if line["t"] == "booked"])


async def test_a_pause_does_not_start_a_budget_from_zero(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    paused = await project.run(guarded('x |> Bot.one() |! yield("Go on?") |> Bot.two() |> Bot.three()'), {"x": "t"})
    result = await project.runtime().signal(paused.run_id, "yes")
    assert isinstance(result.error, PolicyViolation)
    assert calls_of(project, paused.run_id) == 2


async def test_a_run_that_only_its_process_remembers_goes_on_with_its_budgets() -> None:
    from tests.runtime.support import runtime

    made = runtime({"*": "ok"})
    text = guarded('x |> Bot.one() |! yield("Go on?") |> Bot.two() |> Bot.three()')
    paused = await made.run(halo_lang.parse(text), "Main", {"x": "t"})
    result = await made.signal(paused.run_id, "yes")
    assert isinstance(result.error, PolicyViolation)
    assert list(result.context.data["Bot"]) == ["one", "two"]


async def test_what_a_run_may_spend_stays_so_where_it_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path, COSTLY)
    text = guarded('x |> Bot.one() |! yield("Go on?") |> Bot.two()', "MaxCalls(9)")
    paused = await project.run(text, {"x": "t"}, max_spend=Decimal("0.00075"))
    result = await project.runtime().signal(paused.run_id, "yes")
    assert "rule MaxSpend(0.00075)" in str(result.error)


PARALLEL = guarded(
    'x |* { Long(x) as long, Bot.short(x) as short } |> Bot.last()',
    "MaxCalls(4)",
    before="pipeline Long(x: Any) -> Any: x |> Bot.a() |> Bot.b() |> Bot.c()\n",
)  # fmt: skip


@pytest.mark.parametrize("lines", range(1, 14))
async def test_wherever_a_run_is_killed_it_begins_no_more_calls_than_it_may(tmp_path: Path, lines: int) -> None:
    """Begun before the kill and begun after it are together never more than the limit."""
    project = Project(tmp_path, {"*": "ok"})
    whole = await project.run(PARALLEL, {"x": "t"})
    kept = itertools.count()
    project.cut(whole.run_id, lambda line: next(kept) < lines and line["t"] != "status")
    result = await project.runtime().resume(whole.run_id)
    assert isinstance(result.error, PolicyViolation)
    assert begun(project, whole.run_id) == 4


async def test_calls_taken_from_the_journal_are_counted_before_any_new_one_begins(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    text = PARALLEL.replace("MaxCalls(4)", "MaxCalls(3)").replace("Bot.short(x) as short", "Late(x) as short")
    text = text.replace("@checkpoint", 'pipeline Late(x: Any) -> Any: x |! yield("?") |> Bot.short()\n@checkpoint')
    paused = await project.run(text, {"x": "t"})
    assert paused.status == "paused"
    result = await project.runtime().signal(paused.run_id, "yes")
    assert isinstance(result.error, PolicyViolation)
    assert calls_of(project, paused.run_id) == 3


async def test_items_that_were_refused_stay_refused_where_the_run_goes_on(tmp_path: Path) -> None:
    each = 'x |* each(y in x, concurrency: 2, onError: "keep") => Bot.one(y) |! yield("Go on?")'
    project = Project(tmp_path, {"*": "ok"})
    paused = await project.run(guarded(each), {"x": [1, 2, 3, 4]})
    result = await project.runtime().signal(paused.run_id, "yes")
    assert result.status == "completed"
    assert [one["rule"] for one in result.context.meta["violations"]] == ["MaxCalls(2)"] * 2
    assert [call["attempts"] for call in result.context.meta["calls"]] == [1, 1, 0, 0]


async def test_a_call_that_was_broken_off_counts_and_so_does_its_repetition(tmp_path: Path) -> None:
    project = Project(tmp_path)
    begun = asyncio.Event()

    async def hangs(request: ModelRequest) -> str:
        begun.set()
        await asyncio.sleep(60)
        return "late"

    async def answers(request: ModelRequest) -> str:
        return "ok"

    def process(answer: Any) -> tuple[Runtime, StubModel]:
        model = StubModel(answer)
        made = Runtime(env={}, clock=project.clock, store=project.store)
        made.register_model_provider("openai", lambda env: model)
        return made, model

    text = halo_lang.parse(guarded("x |> Bot.one() |> Bot.two()"))
    first, _ = process(hangs)
    running = asyncio.ensure_future(first.run(text, "Main", {"x": "t"}, run_id="r1"))
    await begun.wait()
    first.stop("r1")
    stopped = await running
    assert stopped.status == "interrupted"
    second, model = process(answers)
    result = await second.resume("r1")
    assert isinstance(result.error, PolicyViolation)
    assert len(model.requests) == 1
    undisturbed = await process(answers)[0].run(text, "Main", {"x": "t"}, run_id="r2")
    broken_off, whole, both = (one.context.meta["calls"][0] for one in (stopped, undisturbed, result))
    assert broken_off["tokens"]["input"] > 0
    assert both["tokens"]["input"] == broken_off["tokens"]["input"] + whole["tokens"]["input"]
    assert (both["cost"], both["estimated"]) == (pytest.approx(broken_off["cost"] + whole["cost"]), True)
    assert result.context.meta["cost"] == both["cost"]


# --- forks --------------------------------------------------------------------------------------------------


async def test_a_fork_includes_the_calls_it_reuses(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    failed = await project.run(guarded('x |> Bot.one() |> System.Fail("not yet")'), {"x": "t"})
    result = await project.fork(guarded("x |> Bot.one() |> Bot.two() |> Bot.three()"), failed.run_id)
    assert isinstance(result.error, PolicyViolation)
    assert calls_of(project, result.run_id) == 1
    assert result.context.meta["cost"] == 0


async def test_a_run_goes_on_behind_its_limit_where_that_is_raised(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    stages = "x |> Bot.one() |> Bot.two() |> Bot.three()"
    failed = await project.run(guarded(stages), {"x": "t"})
    assert isinstance(failed.error, PolicyViolation)
    result = await project.fork(guarded(stages, "MaxCalls(3)"), failed.run_id)
    assert result.status == "completed"
    assert calls_of(project, result.run_id) == 1


async def test_a_limit_between_corrections_does_not_cost_the_replies_before_it(tmp_path: Path) -> None:
    project = Project(tmp_path, {"Bot": ["no", "no", "yes"]})
    stages = "x |> Bot.one()"
    rules = 'Match("^yes$") & MaxCalls'
    correct = "@correct(4)\nagent"
    failed = await project.run(guarded(stages, f"{rules}(2)").replace("agent", correct), {"x": "t"})
    result = await project.fork(guarded(stages, f"{rules}(3)").replace("agent", correct), failed.run_id)
    assert result.output == "yes"
    assert calls_of(project, result.run_id) == 1


async def test_a_fork_that_goes_back_counts_only_what_it_keeps(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    text = guarded("x |> Bot.one() |> Bot.two()")
    whole = await project.run(text, {"x": "t"})
    result = await project.fork(text, whole.run_id, at=1)
    assert result.status == "completed"
    assert calls_of(project, result.run_id) == 1


async def test_a_forks_new_arm_does_not_run_ahead_of_what_the_other_arms_reuse(tmp_path: Path) -> None:
    project = Project(tmp_path, {"Bot.short": {"error": 400}, "*": "ok"})
    failed = await project.run(PARALLEL, {"x": "t"})
    assert failed.status == "failed"
    project.replies = {"*": "ok"}
    result = await project.fork(PARALLEL.replace("MaxCalls(4)", "MaxCalls(3)"), failed.run_id)
    reused = [line for line in project.lines(result.run_id) if line.get("reused")]
    assert calls_of(project, result.run_id) + len(reused) <= 3


async def test_what_reused_calls_have_cost_counts_against_what_a_fork_may_spend(tmp_path: Path) -> None:
    project = Project(tmp_path, COSTLY)
    failed = await project.run(guarded('x |> Bot.one() |> System.Fail("not yet")'), {"x": "t"})
    result = await project.fork(guarded("x |> Bot.one() |> Bot.two()"), failed.run_id, max_spend=Decimal("0.00075"))
    assert "rule MaxSpend(0.00075): $0.00075 of $0.00075 used up" in str(result.error)


async def test_a_fork_that_was_killed_counts_what_it_is_still_to_take(tmp_path: Path) -> None:
    project = Project(tmp_path, {"*": "ok"})
    failed = await project.run(guarded('x |> Bot.one() |> System.Fail("not yet")'), {"x": "t"})
    fork = await project.fork(guarded("x |> Bot.one() |> Bot.two() |> Bot.three()"), failed.run_id)
    project.cut(fork.run_id, lambda line: line["t"] == "run")
    result = await project.runtime().resume(fork.run_id)
    assert isinstance(result.error, PolicyViolation)
    assert calls_of(project, fork.run_id) == 1
