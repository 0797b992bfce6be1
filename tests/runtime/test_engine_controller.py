"""A debugger holds a run: it replaces, skips, jumps and mends, and a replay does the same without it (spec 2.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import halo_lang
from halo_runtime import HaloError, Journal, RunResult
from halo_runtime.engine.controller import PROCEED, Command, Jump, Replace, Skip, StagePoint
from tests.runtime.support import runtime

Rule = Callable[[str, StagePoint, int], Command | None]


class Debugger:
    """Answers by `rule(moment, point, how often this moment of this stage has come)`; None proceeds."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.seen: list[tuple[str, int, Any]] = []

    async def before_stage(self, point: StagePoint) -> Command:
        return self._answer("before", point)

    async def after_stage(self, point: StagePoint) -> Command:
        return self._answer("after", point)

    async def on_error(self, point: StagePoint, error: HaloError) -> Command:
        return self._answer(type(error).__name__, point)

    def _answer(self, moment: str, point: StagePoint) -> Command:
        times = sum((moment, point.index) == (seen, index) for seen, index, _ in self.seen)
        self.seen.append((moment, point.index, point.current))
        return self._rule(moment, point, times) or PROCEED


def debug(stages: str, rule: Rule, replies: dict[str, Any] | None = None) -> tuple[RunResult, Debugger]:
    """Run `Main(x)` with x = 1 under a debugger; the same run is replayed from its journal without it."""
    program = halo_lang.parse(f"agent A [openai/gpt-4o-mini]\npipeline Main(x: Any) -> Result: x {stages}")
    journal = Journal()
    debugger = Debugger(rule)
    result = asyncio.run(
        runtime(replies or {}).run(program, "Main", {"x": 1}, run_id="r", journal=journal, controller=debugger)
    )
    replayed = asyncio.run(runtime({}).run(program, "Main", {"x": 1}, run_id="r", journal=journal))
    assert replayed.to_json() == result.to_json()
    return result, debugger


THREE = "|> System.Value([current, 0]) |> System.Value([current, 1]) |> System.Value([current, 2])"


def at(moment: str, index: int, command: Command, *, once: bool = False) -> Rule:
    """Give `command` at one moment of one stage, each time or the first time only."""
    return lambda now, point, times: command if (now, point.index) == (moment, index) and not (once and times) else None


def test_it_is_asked_before_and_after_each_stage_with_the_flowing_value() -> None:
    result, debugger = debug(THREE, lambda *_: None)
    assert debugger.seen[:4] == [
        ("before", 0, 1),
        ("after", 0, [1, 0]),
        ("before", 1, [1, 0]),
        ("after", 1, [[1, 0], 1]),
    ]
    assert result.output == [[[1, 0], 1], 2]


def test_it_replaces_the_value_before_and_after_a_stage() -> None:
    assert debug(THREE, at("before", 1, Replace("new")))[0].output == [["new", 1], 2]
    assert debug(THREE, at("after", 1, Replace("new")))[0].output == ["new", 2]


def test_it_skips_a_stage_with_a_value_in_its_place() -> None:
    result, debugger = debug(THREE, at("before", 1, Skip("instead")))
    assert result.output == ["instead", 2]
    assert ("after", 1, "instead") not in debugger.seen


def test_it_jumps_over_stages_and_back_again() -> None:
    assert debug(THREE, at("after", 0, Jump(2)))[0].output == [[1, 0], 2]
    assert debug(THREE, at("after", 1, Jump(1), once=True))[0].output == [[[[1, 0], 1], 1], 2]
    assert debug(THREE, at("before", 1, Jump(3)))[0].output == [1, 0]


def test_a_jump_back_before_a_stage_lets_it_run_when_it_comes_again() -> None:
    result, debugger = debug(
        "|> A.go() |> System.Value([current, 1])", at("before", 1, Jump(0), once=True), {"A": ["a", "b"]}
    )
    assert result.output == ["b", 1]
    assert [index for moment, index, _ in debugger.seen if moment == "before"] == [0, 1, 0, 1]


def test_a_stage_skipped_in_one_round_of_a_loop_is_asked_about_in_the_next() -> None:
    stages = '|> A.go() |> System.Value("second") |<> loop(A, "go != \'ok\'")'
    result, debugger = debug(stages, at("before", 1, Skip("skipped"), once=True), {"A": ["no", "ok"]})
    assert result.output == "second"
    assert [seen[0] for seen in debugger.seen if seen[1] == 1] == ["before", "before", "after"]


def test_it_mends_a_failed_stage_with_a_value() -> None:
    stages = '|> System.Fail("broken") |> System.Value([current, 1])'
    result, debugger = debug(stages, at("ProgramFailure", 0, Replace("mended")))
    assert (result.status, result.output) == ("completed", ["mended", 1])
    assert debugger.seen[1][:2] == ("ProgramFailure", 0)


def test_it_tries_a_failed_stage_again_by_a_jump_to_it() -> None:
    replies = {"A": [{"error": 400}, "better"]}
    result, _ = debug("|> A.go()", at("ModelError", 0, Jump(0)), replies)
    assert (result.status, result.output) == ("completed", "better")


def test_proceeding_from_an_error_fails_the_run() -> None:
    result, _ = debug('|> System.Fail("broken")', lambda *_: None)
    assert (result.status, str(result.error)) == ("failed", "broken")


@pytest.mark.parametrize("index", [-1, 4])
def test_a_jump_to_a_stage_that_is_not_there_fails_the_run(index: int) -> None:
    program = halo_lang.parse(f"pipeline Main(x: Any) -> Result: x {THREE}")
    debugger = Debugger(at("after", 0, Jump(index), once=True))
    result = asyncio.run(runtime({}).run(program, "Main", {"x": 1}, controller=debugger))
    assert type(result.error).__name__ == "RunError"


def test_a_debugger_that_raises_fails_the_run_with_its_error() -> None:
    def rule(moment: str, point: StagePoint, times: int) -> Command | None:
        raise ValueError("lost its terminal")

    program = halo_lang.parse(f"pipeline Main(x: Any) -> Result: x {THREE}")
    result = asyncio.run(runtime({}).run(program, "Main", {"x": 1}, controller=Debugger(rule)))
    assert (result.status, type(result.error).__name__) == ("failed", "RunError")
    assert "lost its terminal" in str(result.error)


def test_it_holds_the_stages_of_nested_pipelines_too() -> None:
    program = halo_lang.parse(
        f"pipeline Inner(v: Any) -> Result: v {THREE}\npipeline Main(x: Any) -> Result: x |> Inner(x)"
    )
    debugger = Debugger(lambda now, point, times: Skip("s") if point.pipeline == "Inner" and point.index == 1 else None)
    result = asyncio.run(runtime({}).run(program, "Main", {"x": 1}, controller=debugger))
    assert result.output == ["s", 2]


async def test_time_in_which_it_holds_the_run_is_not_run_time() -> None:
    class Slow(Debugger):
        async def before_stage(self, point: StagePoint) -> Command:
            await asyncio.sleep(0.03)
            return PROCEED

    program = halo_lang.parse("@timeout(15ms)\npipeline Main(x: Any) -> Result: x |> System.Value(2)")
    result = await runtime({}).run(program, "Main", {"x": 1}, controller=Slow(lambda *_: None))
    assert result.status == "completed"
