"""Fan-out and each: who runs beside whom, and how different endings are put together (spec 2.2, 12.2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import halo_lang
from halo_runtime import PAUSE, ModelError, RunResult
from halo_runtime.engine.events import RunEvent, StageFinished
from halo_runtime.models.base import ModelRequest
from tests.runtime.support import Answer, StubModel, run, runtime, stubbed, user_text

AGENTS = "".join(f"agent {name} [openai/gpt-4o-mini]\n" for name in "ABCD")
EACH = 'pipeline Main(xs: Array) -> Result: xs |* each(n in xs{}) => A.go("{{{{n}}}}") as all'


async def play(text: str, answer: Answer, inputs: dict[str, Any]) -> tuple[RunResult, StubModel]:
    """Run `Main` with a stub for all models."""
    world, model = stubbed(answer)
    return await world.run(halo_lang.parse(AGENTS + text), "Main", inputs), model


class Crowd:
    """A model that answers only when as many requests as ever will be are in flight; counts the most of them."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    async def __call__(self, request: ModelRequest) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20):  # lets everybody start who may
            await asyncio.sleep(0)
        self.now -= 1
        return "ok"


@pytest.mark.parametrize(("setting", "expected"), [("", 4), (", concurrency: 1", 1), (", concurrency: 7", 7)])
async def test_each_has_exactly_its_concurrency_in_flight(setting: str, expected: int) -> None:
    crowd = Crowd()
    result, model = await play(EACH.format(setting), crowd, {"xs": list(range(20))})
    assert (crowd.most, len(model.requests)) == (expected, 20)
    assert result.output == ["ok"] * 20


async def test_a_fan_out_starts_all_its_items_at_once() -> None:
    crowd = Crowd()
    await play("pipeline Main() -> Result: |* { A.a(), B.b(), C.c(), D.d(), A.e(), B.f() }", crowd, {})
    assert crowd.most == 6


async def test_results_stand_in_the_order_of_the_items_when_they_finish_in_reverse() -> None:
    done = [asyncio.Event() for _ in range(4)]

    async def answer(request: ModelRequest) -> str:
        number = int(user_text(request)[-1])
        if number < 3:
            await done[number + 1].wait()
        done[number].set()
        return f"r{number}"

    result, _ = await play(EACH.format(""), answer, {"xs": [0, 1, 2, 3]})
    assert result.output == ["r0", "r1", "r2", "r3"]


# --- failures -----------------------------------------------------------------------------------------------


async def test_the_first_failure_cancels_the_siblings_and_waits_for_their_clean_up() -> None:
    order: list[str] = []
    waiting = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        if request.agent == "A":
            await waiting.wait()
            raise ModelError("refused", status=400)
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            order.append("cleaned up")
        return "never"

    result, _ = await play("pipeline Main() -> Result: |* { A.go(), B.go() }", answer, {})
    order.append("ended")
    assert (result.status, str(result.error)) == ("failed", "refused")
    assert order == ["cleaned up", "ended"]


async def test_a_failure_in_each_starts_no_further_item_and_names_the_place() -> None:
    async def answer(request: ModelRequest) -> str:
        if user_text(request).endswith("2"):
            raise ModelError("refused", status=400)
        return "ok"

    result, model = await play(EACH.format(", concurrency: 1"), answer, {"xs": [1, 2, 3]})
    assert len(model.requests) == 2
    assert result.error is not None
    assert result.error.place is not None
    assert result.error.place.stage == "|* each(n) => A.go"
    assert [call["reply"] for call in result.context.meta["calls"]] == ["ok", None]


FAILING: dict[str, Any] = {"A": ["one", {"error": 500}, "three"]}


def test_keep_puts_an_error_with_item_and_index_in_the_items_place() -> None:
    result = run(AGENTS + EACH.format(', onError: "keep", concurrency: 1'), {"xs": ["a", "b", "c"]}, FAILING)
    assert (result.status, len(result.output)) == ("completed", 3)
    error = result.output[1]["error"]
    assert (error["type"], error["item"], error["index"]) == ("ModelError", "b", 1)
    assert "500" in error["message"]
    assert result.output[::2] == ["one", "three"]


def test_drop_leaves_the_item_out_with_a_warning() -> None:
    result = run(AGENTS + EACH.format(', onError: "drop", concurrency: 1'), {"xs": ["a", "b", "c"]}, FAILING)
    assert result.output == result.context.data["all"] == ["one", "three"]
    (warning,) = result.context.meta["warnings"]
    assert "item 1" in warning["message"]


def test_fail_ends_the_run_with_what_was_done_in_its_figures() -> None:
    result = run(AGENTS + EACH.format(', onError: "fail", concurrency: 1'), {"xs": ["a", "b", "c"]}, FAILING)
    assert (result.status, result.output) == ("failed", None)
    assert len(result.context.meta["calls"]) == 2


def test_keep_is_for_failures_and_lets_no_gate_and_no_question_by() -> None:
    text = """pipeline Inner(v: Any) -> Result: v |? (v != 2) |! yield("{{v}}?")
    pipeline Main(xs: Array) -> Result: xs |* each(n in xs, onError: "keep", concurrency: 1) => Inner(n)"""
    assert run(text, {"xs": [1, 3]}).status == "paused"
    assert run(text, {"xs": [1, 2]}).status == "halted"


# --- halts and pauses ---------------------------------------------------------------------------------------


async def test_a_halt_in_each_starts_no_new_item_and_lets_those_that_run_finish() -> None:
    halted, loop = asyncio.Event(), asyncio.get_running_loop()

    def is_halt(event: RunEvent) -> bool:
        return isinstance(event, StageFinished) and event.kind == "item" and event.outcome == "halted"

    async def answer(request: ModelRequest) -> str:
        if user_text(request).endswith("0"):
            return "stop"
        await halted.wait()
        return "done"

    text = """pipeline Inner(v: Any) -> Result: v |> A.go("{{v}}") |? (context != 'stop') |> B.go("{{v}}")
    pipeline Main(xs: Array) -> Result: xs |* each(n in xs, concurrency: 2) => Inner(n)"""
    world, model = stubbed(answer)
    world.subscribe(lambda event: loop.call_soon_threadsafe(halted.set) if is_halt(event) else None)
    result = await world.run(halo_lang.parse(AGENTS + text), "Main", {"xs": [0, 1, 2, 3]})
    assert (result.status, result.output) == ("halted", "stop")
    assert [(request.agent, user_text(request)[-1]) for request in model.requests] == [
        ("A", "0"),
        ("A", "1"),
        ("B", "1"),
    ]


ENDINGS = """pipeline Fails(v: Any) -> Result: v |> A.wait() |> System.Fail("failed")
pipeline Halts(v: Any) -> Result: v |? (v == "never")
pipeline Asks(v: Any) -> Result: v |! yield("Go on?")
pipeline Works(v: Any) -> Result: v |> A.wait() |> System.Value("worked")
pipeline Main() -> Result: |* {{ {} }}"""


@pytest.mark.parametrize(
    ("arms", "status", "questions"),
    [
        ("Halts(1), Asks(2), Fails(3)", "failed", 0),
        ("Asks(1), Halts(2), Works(3)", "halted", 0),
        ("Asks(1), Works(2), Asks(3) as second", "paused", 2),
    ],
)
def test_failure_wins_over_halt_and_halt_over_pause(arms: str, status: str, questions: int) -> None:
    result = run(AGENTS + ENDINGS.format(arms), {}, {"A": "waited"})
    assert (result.status, len(result.interrupts)) == (status, questions)


async def test_what_runs_beside_a_question_finishes_first_and_is_not_done_again() -> None:
    release = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        await release.wait()
        return "worked"

    async def ask(interrupt: Any) -> Any:
        release.set()
        return PAUSE

    world, model = stubbed(answer)
    world.on_interrupt(ask)
    text = 'pipeline Asks() -> Result: |! yield("?")\npipeline Main() -> Result: |* { Asks(), A.go() }'
    paused = await world.run(halo_lang.parse(AGENTS + text), "Main")
    assert (paused.status, len(model.requests)) == ("paused", 1)
    ended = await world.signal(paused.run_id, "yes")
    assert (ended.output, len(model.requests)) == ({"Asks": "yes", "go": "worked"}, 1)


def test_a_paused_item_frees_its_place() -> None:
    text = """pipeline Asks(v: Any) -> Result: v |! yield("{{v}}?")
    pipeline Main(xs: Array) -> Result: xs |* each(n in xs, concurrency: 1) => Asks(n)"""
    result = run(text, {"xs": [1, 2, 3]})
    assert [interrupt.message for interrupt in result.interrupts] == ["1?", "2?", "3?"]


# --- size ---------------------------------------------------------------------------------------------------


async def test_ten_thousand_items_stay_in_order() -> None:
    items = list(range(10_000))
    text = """pipeline Inner(v: Any) -> Result: v |> System.Value(v)
    pipeline Main(xs: Array) -> Result: xs |* each(n in xs, concurrency: 50) => Inner(n)"""
    result = await runtime().run(halo_lang.parse(text), "Main", {"xs": items})
    assert result.output == items
    assert len(result.context.trace) == 2 * len(items) + 3
