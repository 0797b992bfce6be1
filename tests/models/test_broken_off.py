"""What calls count for that were broken off: by a time limit, a failure beside them, or because the run was stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

import halo_lang
from halo_runtime import Journal, ModelError, Runtime
from halo_runtime.engine.events import ModelResponded
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta

PROGRAM = "agent Bot [openai/gpt-4o]\npipeline Main(text: String) -> Any: text |> Bot.say()"
ENDS = {
    "the time of a pipeline": ("@timeout(20ms)", "text |> Bot.say()", None),
    "the time of a run": ("", "text |> Bot.say()", 0.02),
    "a failure beside it": ("", 'text |* { Bot.say(), Late("x") }', None),
}


class Hanging:
    """A model that says a little and then nothing more."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        if request.method == "fail":
            await self.asked.wait()
            raise ModelError("broken", status=500)
        if on_delta is not None:
            on_delta("x" * 40)
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    def missing(self) -> str | None:
        return None

    def restore(self, cursors: Sequence[Any]) -> None:
        pass

    async def close(self) -> None:
        pass


def hanging(told: list[ModelResponded]) -> tuple[Runtime, Hanging]:
    runtime, model = Runtime(env={}), Hanging()
    runtime.register_model_provider("openai", lambda env: model)
    runtime.subscribe(lambda event: told.append(event) if isinstance(event, ModelResponded) else None)
    return runtime, model


@pytest.mark.parametrize("model", ["gpt-4o", "our-own"])
@pytest.mark.parametrize("end", ENDS)
async def test_a_call_that_is_broken_off_is_in_the_figures_by_an_estimate(end: str, model: str) -> None:
    directive, stages, timeout = ENDS[end]
    program = halo_lang.parse(f"""agent Bot [openai/{model}]
    pipeline Late(text: String) -> Any: text |> Bot.fail()
    {directive}
    pipeline Main(text: String) -> Any: {stages}""")
    told, journal = list[ModelResponded](), Journal()
    first, again = [
        await hanging(told)[0].run(program, "Main", {"text": "hi"}, run_id="r", journal=journal, timeout=timeout)
        for _ in range(2)
    ]
    assert first.status == "failed"
    say = first.context.meta["calls"][0]
    assert (say["method"], say["estimated"], say["tokens"]["output"]) == ("say", True, 10)
    assert say["tokens"]["input"] > 0
    price = None if model == "our-own" else float((say["tokens"]["input"] * Decimal("2.5") + 100) / 1_000_000)
    assert say["cost"] == price
    assert again.context.meta == first.context.meta
    live, replayed = (one for one in told if one.method == "say")
    assert (live.tokens, live.cost and float(live.cost), live.reused) == (say["tokens"], price, False)
    assert live.error is not None
    assert live.error["type"] == "Cancelled"
    assert (replayed.tokens, replayed.cost, replayed.reused) == (live.tokens, live.cost, True)


async def test_what_was_broken_off_because_the_run_was_stopped_is_in_its_figures() -> None:
    runtime, model = hanging([])
    running = asyncio.create_task(runtime.run(halo_lang.parse(PROGRAM), "Main", {"text": "hi"}, run_id="r"))
    await model.asked.wait()
    assert runtime.stop("r")
    stopped = await running
    await runtime.close()
    assert (stopped.status, stopped.context.meta["tokens"]["output"]) == ("interrupted", 10)
    assert stopped.context.meta["calls"][0]["estimated"] is True
    assert stopped.context.meta["cost"] > 0
