"""What can go wrong before, in and around a run: refused starts, strangers' code, results that keep the work."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

import halo_lang
from halo_runtime import ConfigError, HaloError, ModelError, ProgramError, Runtime, verify_trace
from halo_runtime.errors import InputError
from halo_runtime.models.base import ModelReply, ModelRequest
from tests.runtime.support import StubModel, StubTool, run, runtime, stubbed

ONE = "agent A [openai/gpt-4o-mini]\npipeline Main(x: Any) -> Result: x |> A.go()"
TOOL = 'tool Repo : GitHub("tok")\npipeline Main(x: Any) -> Result: x |> Repo.get_issue(number: 1) |> System.Value(2)'


# --- refused before anything runs ---------------------------------------------------------------------------


async def refused(text: str, kind: type[HaloError], inputs: dict[str, Any] | None = None, **options: Any) -> str:
    """The message of a run that never starts: nothing was asked, nobody was told."""
    world = runtime(**options)
    model = StubModel(lambda request: asyncio.sleep(0, "never"))
    world.register_model_provider("openai", lambda env: model)
    events: list[Any] = []
    world.subscribe(events.append)
    with pytest.raises(kind) as error:
        await world.run(halo_lang.parse(text), "Main", {"x": 1} if inputs is None else inputs)
    assert (model.requests, events) == ([], [])
    return str(error.value)


async def test_a_program_with_errors_does_not_start() -> None:
    with pytest.raises(ProgramError) as error:
        await runtime({}).run(halo_lang.parse("pipeline Main() -> Result: |> Nobody.go() |> Nowhere.go()"))
    assert [problem.code for problem in error.value.diagnostics] == ["HL203", "HL203"]


async def test_missing_and_unknown_arguments_are_named_at_once() -> None:
    text = "pipeline Main(x: Any, y: Any) -> Result: x |> System.Value(y)"
    message = await refused(text, InputError, {"z": 1, "w": 2})
    assert all(f"argument {name}" in message for name in "xyzw")


async def test_an_unknown_pipeline_is_refused_with_those_that_there_are() -> None:
    program = halo_lang.parse("pipeline A() -> Result: 1\npipeline B() -> Result: 2")
    for name in ("C", None):
        with pytest.raises(InputError, match="A, B"):
            await runtime({}).run(program, name)


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan"), [float("inf")]])
async def test_an_argument_that_is_no_json_value_is_refused(value: Any) -> None:
    assert "x" in await refused(ONE, InputError, {"x": value})


@pytest.mark.parametrize(("inputs", "kind"), [("text", "String"), ([1], "List")])
async def test_an_input_that_is_no_object_is_refused(inputs: Any, kind: str) -> None:
    assert f"not a {kind}" in await refused(ONE, InputError, inputs)


async def test_all_that_is_missing_outside_is_named_at_once() -> None:
    text = """policy Strange : Block(Toxicity)
    store One : KV(Env.FIRST)
    store Two : KV(Env.SECOND)
    agent A [anthropic/claude-sonnet-4-5] requires Strange
    pipeline Main(x: Any) -> Result: x |> A.go() |> One.get("k") |> Two.get("k")"""
    message = await refused(text, ConfigError)
    assert all(name in message for name in ("Toxicity", "FIRST", "SECOND", "claude-sonnet-4-5"))


async def test_what_only_another_pipeline_uses_is_not_asked_for() -> None:
    text = "store One : KV(Env.FIRST)\npipeline Other() -> Result: |> One.get('k')\npipeline Main(x: Any) -> Result: x"
    assert (await runtime({}).run(halo_lang.parse(text), "Main", {"x": 5})).output == 5


async def test_a_model_provider_that_cannot_be_made_is_refused_by_name() -> None:
    def broken(env: Any) -> Any:
        raise ValueError("bad address")

    world = runtime()
    world.register_model_provider("openai", broken)
    with pytest.raises(ConfigError, match=r"openai/gpt-4o-mini.*bad address"):
        await world.run(halo_lang.parse(ONE), "Main", {"x": 1})


# --- strangers' code ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [ValueError("a bug"), KeyError("k"), TimeoutError("slow"), ConnectionResetError(), RecursionError()]
)
async def test_whatever_a_model_provider_raises_is_a_model_error_with_its_name(error: Exception) -> None:
    async def answer(request: ModelRequest) -> str:
        raise error

    world, _ = stubbed(answer)
    result = await world.run(halo_lang.parse(ONE), "Main", {"x": 1})
    assert type(result.error) is ModelError
    assert "openai/gpt-4o-mini" in str(result.error)
    assert type(error).__name__ in str(result.error)
    assert result.context.meta["calls"][0]["error"]["type"] == "ModelError"


@pytest.mark.parametrize("reply", [None, {"text": "t"}, ModelReply(None)])  # pyright: ignore[reportArgumentType]
async def test_a_model_provider_that_gives_no_reply_is_a_model_error(reply: Any) -> None:
    class Broken(StubModel):
        async def complete(self, request: Any, on_delta: Any = None) -> Any:
            return reply

    world = runtime()
    world.register_model_provider("openai", lambda env: Broken(lambda request: asyncio.sleep(0, "")))
    result = await world.run(halo_lang.parse(ONE), "Main", {"x": 1})
    assert type(result.error) is ModelError


@pytest.mark.parametrize("error", [ValueError("a bug"), TimeoutError("slow"), OSError(5, "io")])
async def test_whatever_a_tool_provider_raises_is_a_tool_error_with_its_name(error: Exception) -> None:
    def answer(method: str, args: Any) -> Any:
        raise error

    world = runtime({})
    world.register_tool_provider("GitHub", StubTool(answer))
    result = await world.run(halo_lang.parse(TOOL), "Main", {"x": 1})
    assert type(result.error).__name__ == "ToolError"
    assert f"Repo.get_issue failed inside its provider: {type(error).__name__}" in str(result.error)


async def test_a_tool_that_cannot_be_opened_fails_at_its_first_call() -> None:
    def factory(config: Any) -> Any:
        raise ValueError("no such host")

    world = runtime({})
    world.register_tool_provider("GitHub", factory)
    result = await world.run(halo_lang.parse(TOOL), "Main", {"x": 1})
    assert "no such host" in str(result.error)
    assert result.error is not None
    assert result.error.place is not None
    assert result.error.place.stage == "|> Repo.get_issue"


async def test_a_tool_result_becomes_json_at_the_tools_edge() -> None:
    tool = StubTool(lambda method, args: {"price": Decimal("1.50"), "raw": b"\x00", "odd": [float("nan")], 7: (1, 2)})
    world = runtime({})
    world.register_tool_provider("GitHub", tool)
    result = await world.run(halo_lang.parse(TOOL), "Main", {"x": 1})
    assert result.context.data["get_issue"] == {"price": 1.5, "raw": "AA==", "odd": [None], "7": [1, 2]}
    assert "odd.0" in result.context.meta["warnings"][0]["message"]


async def test_a_tool_result_without_a_json_form_fails_there_with_path_and_type() -> None:
    world = runtime({})
    world.register_tool_provider("GitHub", StubTool(lambda method, args: {"a": [{1, 2}]}))
    result = await world.run(halo_lang.parse(TOOL), "Main", {"x": 1})
    assert type(result.error).__name__ == "ToolError"
    assert "a.0" in str(result.error)
    assert "set" in str(result.error)


async def test_tools_are_closed_at_the_end_however_it_came_and_a_failing_close_is_no_failure() -> None:
    class Stuck(StubTool):
        async def close(self) -> None:
            self.closed = True
            raise OSError("already gone")

    for answer in (lambda method, args: 1, lambda method, args: [][1]):
        tool = Stuck(answer)
        world = runtime({})
        world.register_tool_provider("GitHub", tool)
        await world.run(halo_lang.parse(TOOL), "Main", {"x": 1})
        assert tool.closed


async def test_a_tool_whose_close_is_no_coroutine_does_not_lose_the_result() -> None:
    class Plain(StubTool):
        def close(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            self.closed = True

    world = runtime({})
    world.register_tool_provider("GitHub", Plain(lambda method, args: 1))
    assert (await world.run(halo_lang.parse(TOOL), "Main", {"x": 1})).output == 2


def test_a_provider_is_registered_once() -> None:
    world = runtime({})
    world.register_tool_provider("GitHub", StubTool(lambda method, args: 1))
    with pytest.raises(ValueError, match="GitHub"):
        world.register_tool_provider("GitHub", StubTool(lambda method, args: 1))


# --- what is left after a failure ---------------------------------------------------------------------------


def test_a_failed_run_keeps_its_context_and_closes_its_trace() -> None:
    text = "agent A [openai/gpt-4o-mini]\npipeline Main(x: Any) -> Result: x |> A.go() |> A.no() |> A.never()"
    result = run(text, {"x": 1}, {"A.go": "done", "A.no": {"error": 400}})
    assert (result.status, result.output) == ("failed", None)
    assert result.context.data["go"] == result.context.current == "done"
    assert [call["reply"] for call in result.context.meta["calls"]] == ["done", None]
    assert result.context.trace[-1]["status"] == "failed"
    assert str(verify_trace(result.context.trace, head=result.head)) == "valid"
    with pytest.raises(ModelError):
        result.raise_for_status()


def test_an_error_knows_the_innermost_stage_that_failed() -> None:
    text = """pipeline Inner(v: Any) -> Result:
      v |> System.Value(v)
        |? (v > 1)
    pipeline Main(x: Any) -> Result: x |> Inner("a text")"""
    error = run(text, {"x": 1}).to_json()["error"]
    assert (error["type"], error["line"], error["column"]) == ("ConditionError", 3, 9)
    assert "String" in error["message"]


def test_a_result_has_the_documented_shape() -> None:
    text = """agent A [openai/gpt-4o-mini]
    pipeline Main(x: Any) -> Result: x |> A.go("say") |> System.Publish("p") |! yield("?")"""
    document = run(text, {"x": 1}, {"A": {"reply": "r", "usage": {"input": 10, "output": 5}}}).to_json()
    assert list(document) == ["runId", "status", "output", "error", "interrupts", "context"]
    assert list(document["context"]) == ["current", "input", "data", "meta", "trace"]
    meta = document["context"]["meta"]
    assert {"cost", "tokens", "calls", "violations", "shadow", "warnings", "events"} <= set(meta)
    assert meta["tokens"] == {"input": 10, "output": 5, "total": 15}
    assert meta["events"] == [{"name": "Publish", "payload": "p"}]
    expected = {"agent", "method", "model", "messages", "reply", "tokens", "cost", "attempts", "tools", "durationMs"}
    assert expected <= set(meta["calls"][0])
    assert meta["calls"][0]["messages"] == [{"role": "user", "content": "Task: go\n\nInstructions:\nsay\n\nInput:\n1"}]
    assert document["interrupts"][0]["kind"] == "yield"


def test_the_real_environment_is_the_default() -> None:
    assert asyncio.run(Runtime().run(halo_lang.parse("pipeline Main() -> Result: 1"))).output == 1


def test_an_output_that_does_not_fit_points_at_its_pipeline() -> None:
    result = run("schema S { a: Number }\npipeline Main(x: Any) -> S: x |> System.Value(1)", {"x": 1})
    assert result.error is not None
    assert result.error.place is not None
    assert (result.error.place.stage, result.error.place.line, result.error.place.column) == ("Main", 2, 10)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
async def test_a_time_limit_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="over 0"):
        await runtime({}).run(halo_lang.parse("pipeline Main() -> Result: 1"), timeout=timeout)
