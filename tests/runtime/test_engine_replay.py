"""Journals of runs that ended in the middle of things: time limits, stops, shadows, parallel failures (spec 3)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halo_lang
from halo_runtime import Interrupt, Journal, ModelError, RunResult, Runtime, ScriptedModel
from halo_runtime.engine.events import ModelDelta, RunEvent
from halo_runtime.models.base import ModelReply, ModelRequest, Usage
from tests.runtime.runnable import Runnable
from tests.runtime.support import FakeClock, StubModel, runtime, stubbed

AGENT = "agent A [openai/gpt-4o-mini]\n"
LIMITED = [
    'each(n in [1, 2], onError: "keep") => A.go()',
    'each(n in [1, 2], onError: "drop", concurrency: 1) => A.go()',
    "{ A.go(), A.say() }",
]


async def silent(request: ModelRequest) -> str:
    """A model that never answers."""
    await asyncio.Event().wait()
    return ""


def told(event: RunEvent) -> str:
    """What an event says, apart from whether it is told for the first time."""
    marks = {"continued", "reused"} & {item.name for item in fields(event)}
    return repr(replace(event, **dict.fromkeys(marks, False)))


async def twice(text: str, answer: Any, *, directives: str = "") -> tuple[RunResult, RunResult, StubModel]:
    """A run, and its replay from its journal by a world whose model must not be asked."""
    program = halo_lang.parse(f"{directives}{AGENT}{text}")
    journal = Journal()
    world, _ = stubbed(answer)
    events: list[RunEvent] = []
    world.subscribe(events.append)
    result = await world.run(program, "Main", run_id="r", journal=journal)
    length = len(journal)
    again, model = stubbed(silent)
    repeated: list[RunEvent] = []
    again.subscribe(repeated.append)
    replayed = await asyncio.wait_for(again.run(program, "Main", run_id="r", journal=journal), 5)
    assert len(journal) == length
    assert sorted(map(told, repeated)) == sorted(map(told, events))
    return result, replayed, model


@pytest.mark.parametrize("block", LIMITED)
@pytest.mark.parametrize("retry", ["", "@retry(2)\n"])
async def test_a_run_that_ran_out_of_time_is_replayed_to_the_same_end(block: str, retry: str) -> None:
    result, replayed, model = await twice(
        f"@timeout(10ms)\npipeline Main() -> Result: |* {block}", silent, directives=retry
    )
    assert type(result.error).__name__ == "TimeoutExceeded"
    assert replayed.to_json() == result.to_json()
    assert model.requests == []


async def test_the_limit_of_a_nested_pipeline_is_replayed_too() -> None:
    text = """@timeout(10ms)
    pipeline Inner() -> Result: |> A.go()
    pipeline Main() -> Result: |* each(n in [1, 2], onError: "keep") => Inner()"""
    result, replayed, model = await twice(text, silent)
    assert [item["error"]["type"] for item in result.output] == ["TimeoutExceeded"] * 2
    assert replayed.to_json() == result.to_json()
    assert model.requests == []


async def test_a_stopped_runs_journal_goes_on_where_it_was_stopped() -> None:
    program = halo_lang.parse(f"{AGENT}pipeline Main() -> Result: |> A.first() |> A.second()")
    journal = Journal()
    started = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        if request.method == "second":
            started.set()
            await silent(request)
        return "one"

    world, _ = stubbed(answer)
    task = asyncio.create_task(world.run(program, run_id="r", journal=journal))
    await started.wait()
    assert world.stop("r")
    stopped = await task
    assert (stopped.status, stopped.context.data["first"]) == ("interrupted", "one")

    again, model = stubbed(lambda request: asyncio.sleep(0, "two"))
    ended = await asyncio.wait_for(again.run(program, run_id="r", journal=journal), 5)
    assert (ended.status, ended.output) == ("completed", "two")
    assert [request.method for request in model.requests] == ["second"]


async def test_the_journal_of_a_cancelled_task_goes_on_too() -> None:
    program = halo_lang.parse(f"{AGENT}pipeline Main() -> Result: |> A.go()")
    journal = Journal()
    world, model = stubbed(silent)
    task = asyncio.create_task(world.run(program, journal=journal))
    while not model.requests:  # noqa: ASYNC110 - a few turns of the loop
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    again, _ = stubbed(lambda request: asyncio.sleep(0, "done"))
    assert (await asyncio.wait_for(again.run(program, journal=journal), 5)).output == "done"


async def test_a_run_with_a_shadow_is_replayed_without_asking_it_again() -> None:
    program = halo_lang.parse(
        f"{AGENT}@shadow(A)\nagent S [openai/gpt-4o]\npipeline Main() -> Result: |> A.go() |> A.go()"
    )
    journal = Journal()
    replies = {"A": "main", "S": {"replies": ["one", "two"]}}
    result = await runtime(replies).run(program, run_id="r", journal=journal)
    assert [line["output"] for line in result.context.meta["shadow"]] == ["one", "two"]
    replayed = await runtime(replies).run(program, run_id="r", journal=journal)
    assert replayed.to_json() == result.to_json()


@pytest.mark.parametrize("end", ["|? (false)", '|> System.Fail("x")', '|! yield("?")'])
async def test_a_shadow_gets_its_time_at_every_kind_of_end(end: str) -> None:
    program = halo_lang.parse(f"{AGENT}@shadow(A)\nagent S [openai/gpt-4o]\npipeline Main() -> Result: |> A.go() {end}")
    result = await runtime({"A": "main", "S": "beside"}).run(program)
    (line,) = result.context.meta["shadow"]
    assert (line["agent"], line["for"], line["output"], line["error"]) == ("S", "A.go", "beside", None)


# --- failures in one moment ---------------------------------------------------------------------------------


def at_once(count: int, fails: Callable[[int], bool], answers: int | None = None) -> Callable[[ModelRequest], Any]:
    """Answers so many of the first `count` requests, in one turn of the loop and in any order; some fail with 500."""
    answers = count if answers is None else answers
    numbers = iter(range(10**6))
    gates = [asyncio.Event() for _ in range(count)]

    async def answer(request: ModelRequest) -> ModelReply:
        number = next(numbers)
        if number == count - 1:
            for gate in random.Random(count).sample(gates, answers):
                gate.set()
        if number < count:
            await gates[number].wait()
        else:
            await asyncio.Event().wait()
        if fails(number):
            raise ModelError(f"broken {number}", status=500)
        return ModelReply(f"{number}", usage=Usage(10, 1))

    return answer


@pytest.mark.parametrize("end", ["", " |> A.again(y)"])
@pytest.mark.parametrize(("count", "answers"), [(2, 2), (8, 8), (8, 5), (40, 40), (40, 33), (300, 300)])
async def test_what_came_in_the_moment_of_a_failure_comes_in_its_replay_too(count: int, answers: int, end: str) -> None:
    text = f"""pipeline One(y: Any) -> Result: y |> A.go(y){end}
    pipeline Main() -> Result: |* each(x in {list(range(count))}, concurrency: 500) => One(x)"""
    result, replayed, _ = await twice(text, at_once(count, lambda number: number % 7 == 1, answers))
    assert str(result.error).startswith("broken")
    assert replayed.to_json() == result.to_json()


async def test_a_failure_in_a_block_whose_failures_stay_is_replayed_too() -> None:
    text = """pipeline One(y: Any) -> Result: y |* each(z in [0, 1, 2], concurrency: 500) => A.go(z)
    pipeline Main() -> Result: |* each(x in [0, 1, 2, 3], concurrency: 500, onError: "keep") => One(x)"""
    result, replayed, _ = await twice(text, at_once(12, lambda number: number % 5 == 1))
    assert replayed.to_json() == result.to_json()


# --- any interleaving ---------------------------------------------------------------------------------------


async def turns(seconds: float) -> None:
    """Wait for one turn of the event loop a millisecond."""
    for _ in range(round(seconds * 1000)):
        await asyncio.sleep(0)


def world_of(program: Runnable, events: list[RunEvent]) -> Runtime:
    """A world whose replies come after their delays in turns of the loop, and whose people answer at once."""
    world = Runtime(env={}, replies=ScriptedModel(program.replies, sleep=turns), clock=FakeClock())
    world.subscribe(events.append)

    async def answer(interrupt: Interrupt) -> Any:
        return program.answers[len(interrupt.path) % len(program.answers)]

    world.on_interrupt(answer)
    world.on_listen(answer)
    return world


@st.composite
def races(draw: st.DrawFn, *, ties: bool) -> Runnable:
    """Pipelines of several calls that run side by side; replies come after delays, some calls fail.

    Without `ties` no two calls of an item ever end in the same moment: all sums of their delays differ.
    """
    lengths = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    delays = iter(draw(st.permutations([10 * 2**power for power in range(sum(lengths))])))
    replies: dict[str, Any] = {}
    text = "agent A [openai/gpt-4o-mini]\n"
    for runner, length in enumerate(lengths):
        steps = [f"step{runner}{number}" for number in range(length)]
        for step in steps:
            outcome: dict[str, Any] = draw(st.sampled_from([{"reply": "r"}, {"reply": "r"}, {"error": 400}]))
            delay = draw(st.integers(0, 6)) if ties else next(delays)
            replies[f"A.{step}"] = {**outcome, "delay": f"{delay}ms"}
        calls = " ".join(f"|> A.{step}()" for step in steps)
        end = draw(st.sampled_from(["", " |? (false)", ' |> System.Fail("end")', ' |! yield("?")']))
        text += f"pipeline P{runner}(v: Any) -> Result: v {calls}{end}\n"
    arms = ", ".join(f"P{runner}(v)" for runner in range(len(lengths)))
    text += f"pipeline Race(v: Any) -> Result: v |* {{ {arms} }}\n"
    how = draw(st.sampled_from(["fail", "keep", "drop"]))
    each = f'onError: "{how}", concurrency: {draw(st.integers(1, 3)) if ties else 1}'
    text += f"pipeline Main(text: Any, xs: Array) -> Result: xs |* each(x in xs, {each}) => Race(x)"
    return Runnable(text, {"text": "", "xs": [1, 2, 3]}, replies, ("yes",))


def live_and_replayed(program: Runnable) -> tuple[RunResult, RunResult, list[RunEvent], list[RunEvent]]:
    """A run and the replay of its journal, which must do nothing, and the events of both."""
    parsed = halo_lang.parse(program.text)
    journal = Journal()
    runs: list[tuple[RunResult, list[RunEvent]]] = []
    for _ in range(2):
        events: list[RunEvent] = []
        world = world_of(program, events)
        length = len(journal)
        runs.append((asyncio.run(world.run(parsed, "Main", program.inputs, run_id="r", journal=journal)), events))
    assert len(journal) == length
    (live, events), (replayed, repeated) = runs
    return live, replayed, events, repeated


@settings(max_examples=100)
@given(races(ties=False))
def test_a_replay_is_the_same_run_whatever_the_order_in_which_things_happened(program: Runnable) -> None:
    live, replayed, events, repeated = live_and_replayed(program)
    assert replayed.to_json() == live.to_json()
    # Deltas are told as they come and kept nowhere.
    assert Counter(map(told, repeated)) == Counter(told(one) for one in events if not isinstance(one, ModelDelta))


@settings(max_examples=100)
@given(races(ties=True))
def test_a_replay_comes_to_the_same_end_when_things_happened_in_one_moment(program: Runnable) -> None:
    live, replayed, _, _ = live_and_replayed(program)
    assert (replayed.status, replayed.output, str(replayed.error)) == (live.status, live.output, str(live.error))
