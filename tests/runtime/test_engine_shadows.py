"""@shadow: whatever becomes of a shadow, the run beside it is the same, and its figures stand apart (spec 2.5)."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import pytest

import halo_lang
from halo_runtime import RunResult
from halo_runtime.errors import ModelError
from halo_runtime.models.base import ModelReply, ModelRequest, ToolCall, Usage
from halo_runtime.policies.base import Decision, Examined, Point
from tests.runtime.support import StubModel, StubTool, stubbed

AGENT = "agent A [openai/gpt-4o-mini]\n"
MAIN = "pipeline Main(x: Any) -> Result: x |> A.go() |> A.more()\n"
SHADOW = "@shadow(A)\n@timeout(20ms)\nagent S [openai/gpt-4o]\n"


async def play(text: str, shadow: Any, main: Any = "main") -> tuple[RunResult, StubModel]:
    """Run `Main` where `shadow` answers the agent S (a reply, an exception, or a function of the request)."""

    async def answer(request: ModelRequest) -> Any:
        meant = shadow if request.agent == "S" else main
        reply = await meant(request) if callable(meant) else meant
        if isinstance(reply, Exception):
            raise reply
        return reply

    world, model = stubbed(answer)
    world.register_tool_provider("KV", StubTool(lambda method, args: "value"))
    return await world.run(halo_lang.parse(text), "Main", {"x": 1}, run_id="r"), model


def apart(result: RunResult) -> dict[str, Any]:
    """All of a result but what its shadows left."""
    document = deepcopy(result.to_json())
    del document["context"]["meta"]["shadow"]
    return document


async def hangs(request: ModelRequest) -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize("target", ["A", "openai/gpt-4o-mini"])
@pytest.mark.parametrize(
    ("shadow", "output", "said"),
    [
        ("beside", "beside", None),
        (ModelError("down", retryable=True), None, "down"),
        (ValueError("a provider's defect"), None, "ValueError"),
        (hangs, None, ""),  # out of time by itself or with the run
        (ModelReply("dear", usage=Usage(10**6, 10**6)), "dear", None),
        (ModelReply("", (ToolCall("c", "Box_set", '{"key": "k", "value": 1}'),)), "", None),
    ],
)
async def test_whatever_a_shadow_does_the_run_is_as_without_it(
    target: str, shadow: Any, output: str | None, said: str | None
) -> None:
    text = AGENT + SHADOW.replace("(A)", f"({target})") + MAIN
    result, model = await play(text, shadow)
    alone, _ = await play(AGENT + "\n" * SHADOW.count("\n") + MAIN, shadow)
    beside, without = apart(result), apart(alone)
    for trace in (beside["context"], without["context"]):
        del trace["trace"]  # it begins with the hash of the program
    assert beside == without
    assert [request.tools for request in model.requests if request.agent == "S"] == [(), ()]
    for line in result.context.meta["shadow"]:
        assert (line["agent"], line["output"]) == ("S", output)
        assert (said is None) == (line["error"] is None)
        assert said is None or said in line["error"]


async def test_a_shadow_is_asked_once_for_each_call_and_not_for_steps_retries_or_corrections() -> None:
    left = iter([
        ModelReply("", (ToolCall("c", "Box_get", '{"key": "k"}'),)),
        ModelError("busy", retryable=True),
        "far too long",
        "ok",
    ])  # fmt: skip

    async def main(request: ModelRequest) -> Any:
        return next(left)

    text = (
        'store Box: KV("box.db")\npolicy Short: MaxLength(5)\n@retry(1, 1ms) @correct(1)\n'
        "agent A [openai/gpt-4o-mini] equips Box requires Short\n"
        f"{SHADOW}pipeline Main(x: Any) -> Result: x |> A.go(tools: [Box])"
    )
    result, model = await play(text, "beside", main)
    assert result.output == "ok"
    assert [request.agent for request in model.requests].count("S") == 1
    assert len(result.context.meta["shadow"]) == 1


async def test_the_cost_of_a_shadow_is_its_own_and_that_of_the_run_is_without_it() -> None:
    result, _ = await play(
        AGENT + SHADOW + MAIN, ModelReply("beside", usage=Usage(10**6, 0)), ModelReply("main", usage=Usage(10**6, 0))
    )
    meta = result.context.meta
    assert [line["cost"] for line in meta["shadow"]] == [2.5, 2.5]
    assert meta["cost"] == pytest.approx(2 * 0.15)
    assert meta["tokens"]["total"] == 2 * 10**6


class Closed:
    """A rule that lets nothing out."""

    points: frozenset[Point] = frozenset({"input"})

    def evaluate(self, examined: Examined) -> Decision:
        return Decision("block", "nothing goes out")


async def test_what_a_policy_holds_back_from_a_shadow_is_no_violation_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("halo_runtime.engine.policies.rule_factory", lambda name: lambda arguments: Closed())
    text = AGENT + "policy Few: Block(PII)\n" + SHADOW.rstrip() + " requires Few\n" + MAIN
    result, model = await play(text, "beside")
    assert [request.agent for request in model.requests] == ["A", "A"]
    assert result.context.meta["violations"] == []
    assert all("policy Few" in line["error"] for line in result.context.meta["shadow"])


async def test_a_shadow_has_the_values_of_the_moment_of_its_call() -> None:
    text = (
        f'{AGENT}@shadow(A)\nagent S [openai/gpt-4o]\n  system "after {{{{current}}}}"\n'
        "pipeline Main(x: Any) -> Result: x |> A.go() |> System.Value('later') |> A.more()"
    )
    _, model = await play(text, "beside")
    systems = [request.messages[0].content for request in model.requests if request.agent == "S"]
    assert systems == ["after 1", "after later"]


async def test_a_run_that_ends_at_once_does_not_leave_its_shadow_running() -> None:
    stopped: list[str] = []

    async def slow(request: ModelRequest) -> str:
        try:
            return await hangs(request)
        finally:
            stopped.append(request.agent)

    result, _ = await play(AGENT + SHADOW + 'pipeline Main(x: Any) -> Result: x |> A.go() |> System.Fail("over")', slow)
    assert (result.status, str(result.error), stopped) == ("failed", "over", ["S"])
