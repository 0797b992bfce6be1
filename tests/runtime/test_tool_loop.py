"""The tool loop: what is run of what a model asks for, what it is told, what is counted (spec 2.5, 12.3).

The rows of the reference that these tests stand for are listed in tests/models/README.md.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

import halo_lang
from halo_runtime import RunResult
from halo_runtime.engine.journal import Journal
from halo_runtime.errors import ModelError, PolicyViolation, StepLimitError, ToolError
from halo_runtime.models.base import ModelReply, ModelRequest, ToolCall
from tests.runtime.support import StubModel, StubTool, stubbed

STORE = 'store Box: KV("box.db")\n'
AGENT = "agent A [openai/gpt-4o-mini] equips Box\n"
MAIN = "pipeline Main(x: Any) -> Result: x |> A.go(tools: [Box])"


def wants(*calls: tuple[str, Any]) -> ModelReply:
    """A reply that asks for functions; arguments that are no text are sent as JSON."""
    made = [
        ToolCall(f"c{number}", name, args if isinstance(args, str) else json.dumps(args))
        for number, (name, args) in enumerate(calls)
    ]
    return ModelReply("", tuple(made), stop="tool")


async def play(
    text: str, *replies: str | ModelReply | Exception, tool: StubTool | None = None, **options: Any
) -> tuple[RunResult, StubModel]:
    """Run `Main` on a model that gives or raises these in turn; `tool` plays every KV store."""
    left = iter(replies)

    async def answer(request: ModelRequest) -> str | ModelReply:
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply

    world, model = stubbed(answer)
    world.register_tool_provider("KV", tool or StubTool(lambda method, args: "value"))
    return await world.run(halo_lang.parse(STORE + text), "Main", {"x": 1}, **options), model


def told(model: StubModel, request: int = 1) -> list[tuple[str, bool]]:
    """What the model was told of the calls of its last turn, and whether as an error."""
    return [
        (message.content, message.is_error) for message in model.requests[request].messages if message.role == "tool"
    ]


def tools(result: RunResult) -> list[dict[str, Any]]:
    return result.context.meta["calls"][0]["tools"]


# --- what is run --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
async def test_no_arguments_at_all_are_an_empty_object(arguments: str) -> None:
    tool = StubTool(lambda method, args: [])
    result, _ = await play(AGENT + MAIN, wants(("Box_list", arguments)), "done", tool=tool)
    assert result.output == "done"
    [(method, args)] = tool.calls
    assert method == "list"
    assert args.get("prefix") in (None, "")
    assert tools(result)[0]["args"] == {}


async def test_an_optional_argument_that_is_null_is_left_out_and_a_value_that_may_be_null_is_not() -> None:
    tool = StubTool(lambda method, args: True)
    calls = wants(("Box_list", {"prefix": None, "limit": None}), ("Box_set", {"key": "k", "value": None, "ttl": None}))
    result, _ = await play(AGENT + MAIN, calls, "done", tool=tool)
    assert result.output == "done"
    assert [args.get("prefix", "") for method, args in tool.calls if method == "list"] == [""]
    assert [(args["value"], "ttl" in args) for method, args in tool.calls if method == "set"] == [(None, False)]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, ["missing argument key"]),
        ({"key": 5}, ["key takes a text, not a number"]),
        ({"key": "k", "odd": 1, "more": 2}, ["unknown argument odd", "unknown argument more"]),
        ({"odd": 1, "default": 2}, ["missing argument key", "unknown argument odd"]),
        ('{"key": "k"', ["no JSON"]),
        ('["k"]', ["must be a JSON object"]),
    ],
)
async def test_all_that_is_wrong_with_arguments_is_told_at_once_and_the_tool_is_not_called(
    arguments: Any, named: list[str]
) -> None:
    tool = StubTool(lambda method, args: "never")
    result, model = await play(AGENT + MAIN, wants(("Box_get", arguments)), "sorry", tool=tool)
    assert (result.output, tool.calls) == ("sorry", [])
    [(text, is_error)] = told(model)
    assert is_error
    assert all(problem in text for problem in named), text
    assert tools(result)[0]["name"] == "Box_get"


async def test_what_can_be_run_of_a_turn_is_run_beside_what_cannot() -> None:
    tool = StubTool(lambda method, args: f"value of {args['key']}")
    calls = wants(("Box_fly", {}), ("Box_get", {"key": "a"}), ("Box_get", {}), ("Box_get", {"key": "b"}))
    _, model = await play(AGENT + MAIN, calls, "done", tool=tool)
    texts = told(model)
    assert [is_error for _, is_error in texts] == [True, False, True, False]
    assert [text for text, is_error in texts if not is_error] == ["value of a", "value of b"]
    assert "no function Box_fly; there are Box_get" in texts[0][0]


async def test_of_a_turn_without_end_only_the_first_calls_are_made() -> None:
    tool = StubTool(lambda method, args: "value")
    result, model = await play(AGENT + MAIN, wants(*[("Box_get", {"key": "k"})] * 70), "done", tool=tool)
    assert len(tool.calls) == 64
    assert [is_error for _, is_error in told(model)] == [False] * 64 + [True] * 6
    assert "only the first 64" in tools(result)[-1]["error"]


async def test_methods_of_two_tools_that_come_to_one_name_are_told_apart() -> None:
    text = 'store Box_set: KV("other.db")\nagent A [openai/gpt-4o-mini] equips Box, Box_set\n'
    _, model = await play(text + "pipeline Main(x: Any) -> Result: x |> A.go(tools: [Box, Box, Box_set])", "done")
    names = [spec.name for spec in model.requests[0].tools]
    assert len(names) == len(set(names)) == 12


@pytest.mark.parametrize("result", ["", " \n", None, [], {}])
async def test_a_result_without_any_text_is_said_to_have_none(result: Any) -> None:
    _, model = await play(
        AGENT + MAIN, wants(("Box_get", {"key": "k"})), "done", tool=StubTool(lambda method, args: result)
    )
    expected = "(no output)" if isinstance(result, str) else json.dumps(result)
    assert told(model) == [(expected, False)]


async def test_a_long_result_is_cut_for_the_model_and_whole_in_the_figures() -> None:
    text = AGENT + MAIN.replace("[Box]", "[Box], tool_result_chars: 5")
    result, model = await play(
        text, wants(("Box_get", {"key": "k"})), "done", tool=StubTool(lambda method, args: "abcdefgh")
    )
    assert told(model) == [("abcde\n[… 3 more characters cut]", False)]
    assert tools(result)[0]["result"] == "abcdefgh"


# --- limits of steps and calls ------------------------------------------------------------------------------


async def test_at_the_limit_of_steps_the_run_fails_and_what_was_asked_for_last_is_not_done() -> None:
    tool = StubTool(lambda method, args: "again")
    text = AGENT + MAIN.replace("[Box]", "[Box], max_steps: 2")
    result, model = await play(
        text, wants(("Box_get", {"key": "a"})), wants(("Box_set", {"key": "b", "value": 1})), tool=tool
    )
    assert isinstance(result.error, StepLimitError)
    assert (result.status, len(model.requests), [method for method, _ in tool.calls]) == ("failed", 2, ["get"])
    made, left = tools(result)
    assert made["result"] == "again"
    assert left == {"name": "Box_set", "args": '{"key": "b", "value": 1}', "error": left["error"]}
    assert "max_steps (2)" in left["error"]
    assert [message["role"] for message in result.context.meta["calls"][0]["messages"]] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(("asked", "made"), [(6, 6), (7, 0), (8, 0)])
async def test_a_turn_of_more_calls_than_a_budget_allows_begins_none_of_them(asked: int, made: int) -> None:
    tool = StubTool(lambda method, args: asyncio.sleep(0, "value"))
    text = f"policy Few: MaxToolCalls(6)\n{AGENT.rstrip()} requires Few\n{MAIN}"
    result, _ = await play(text, wants(*[("Box_get", {"key": "k"})] * asked), "done", tool=tool)
    assert len(tool.calls) == made
    assert isinstance(result.error, PolicyViolation) == (made == 0)
    if not made:
        assert f"0 of 6 tool calls used up, and {asked} more are asked for at once" in str(result.error)


async def test_calls_that_are_not_made_count_for_nothing_in_a_turn() -> None:
    tool = StubTool(lambda method, args: "value")
    text = f"policy Few: MaxToolCalls(2)\n{AGENT.rstrip()} requires Few\n{MAIN}"
    calls = wants(("Box_get", {}), ("Box_get", {"key": "a"}), ("Box_fly", {}), ("Box_get", {"key": "b"}))
    result, _ = await play(text, calls, "done", tool=tool)
    assert (result.output, len(tool.calls)) == ("done", 2)


async def test_tries_of_one_call_count_one_by_one_after_its_turn_was_admitted() -> None:
    failures = [ToolError("busy", retryable=True)]

    def answer(method: str, args: dict[str, Any]) -> str:
        if failures:
            raise failures.pop()
        return "value"

    text = f"policy Few: MaxToolCalls(2)\n@retry(1, 1ms)\n{AGENT.rstrip()} requires Few\n{MAIN}"
    tool = StubTool(answer)
    result, _ = await play(text, wants(("Box_get", {"key": "a"})), "done", tool=tool)
    assert (result.output, len(tool.calls)) == ("done", 2)


# --- corrections --------------------------------------------------------------------------------------------

SHORT = "policy Short: MaxLength(5)\n"


@pytest.mark.parametrize("rounds", [0, 1, 2])
async def test_with_n_rounds_of_correction_there_are_exactly_one_and_n_requests(rounds: int) -> None:
    directive = f"@correct({rounds})\n" if rounds else ""
    text = f"{SHORT}{directive}{AGENT.rstrip()} requires Short\n{MAIN}"
    result, model = await play(text, *[f"far too long {number}" for number in range(9)])
    assert isinstance(result.error, PolicyViolation)
    assert len(model.requests) == 1 + rounds
    assert result.context.meta["calls"][0]["corrections"] == rounds


async def test_a_model_sees_its_last_refused_answer_alone_however_many_came_before() -> None:
    text = f"{SHORT}@correct(3)\n{AGENT.rstrip()} requires Short\n{MAIN}"
    result, model = await play(text, "too long one", "too long two", "too long three", "ok")
    assert result.output == "ok"
    seen = [[message.content for message in request.messages[1:]] for request in model.requests]
    assert [len(texts) for texts in seen] == [0, 2, 2, 2]
    assert [texts[0] for texts in seen[1:]] == ["too long one", "too long two", "too long three"]


async def test_results_of_tools_stay_where_a_refused_answer_goes() -> None:
    text = f"{SHORT}@correct(2)\n{AGENT.rstrip()} requires Short\n{MAIN}"
    ask = wants(("Box_get", {"key": "k"}))
    result, model = await play(text, ask, "too long one", ask, "too long two", "ok")
    assert result.output == "ok"
    last = [(message.role, message.content) for message in model.requests[-1].messages]
    assert [role for role, _ in last] == ["user", "assistant", "tool", "assistant", "tool", "assistant", "user"]
    assert last[-2] == ("assistant", "too long two")


async def test_corrections_and_tool_steps_are_counted_apart() -> None:
    text = f"{SHORT}@correct(1)\n{AGENT.rstrip()} requires Short\n{MAIN.replace('[Box]', '[Box], max_steps: 2')}"
    ask = wants(("Box_get", {}))  # arguments that do not fit use up no round of correction
    result, model = await play(text, ask, "far too long", ask, "ok")
    assert (result.output, len(model.requests)) == ("ok", 4)
    assert result.context.meta["calls"][0]["corrections"] == 1


# --- answers that cannot be used ----------------------------------------------------------------------------


def empty() -> ModelError:
    return ModelError("answered with an empty message", retryable=True, code="empty_response")


@pytest.mark.parametrize(("directive", "requests"), [("", 1), ("@retry(1, 1ms)\n", 2)])
async def test_an_empty_answer_is_asked_for_again_only_where_the_program_says_retry(
    directive: str, requests: int
) -> None:
    result, model = await play(directive + AGENT + MAIN, empty(), "ok")
    assert len(model.requests) == requests
    assert result.status == ("failed" if requests == 1 else "completed")
    if isinstance(result.error, ModelError):
        assert result.error.code == "empty_response"


async def test_a_call_that_was_cut_off_is_not_asked_for_again_and_its_kind_survives_the_journal() -> None:
    journal = Journal()
    cut = ModelError("was cut off inside a tool call", code="truncated_tool_call")
    program = "@retry(3, 1ms)\n" + AGENT + MAIN
    for answers in ([cut], []):
        result, model = await play(program, *answers, journal=journal)
        assert isinstance(result.error, ModelError)
        assert (result.error.code, len(model.requests)) == ("truncated_tool_call", len(answers))


# --- cancelling ---------------------------------------------------------------------------------------------


class Hanging:
    """A tool whose calls never end by themselves; `stopped` are those that were cancelled."""

    def __init__(self, ends: Callable[[str], bool] = lambda key: False) -> None:
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self._ends = ends

    async def __call__(self, method: str, args: dict[str, Any]) -> str:
        self.begun.append(args["key"])
        if self._ends(args["key"]):
            return "value"
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.append(args["key"])
        return "never"


async def test_a_pipelines_time_limit_stops_all_tools_of_a_turn() -> None:
    hanging = Hanging()
    calls = wants(("Box_get", {"key": "a"}), ("Box_get", {"key": "b"}))
    text = f"{AGENT}@timeout(20ms)\n{MAIN}"
    result, _ = await play(text, calls, tool=StubTool(hanging))
    assert type(result.error).__name__ == "TimeoutExceeded"
    assert hanging.begun == sorted(hanging.stopped) == ["a", "b"]


async def test_a_siblings_failure_stops_an_agents_tools() -> None:
    hanging = Hanging()

    async def answer(request: ModelRequest) -> str | ModelReply:
        if request.method == "go":
            return wants(("Box_get", {"key": "a"}))
        while not hanging.begun:  # noqa: ASYNC110 - a few turns of the loop
            await asyncio.sleep(0)
        raise ModelError("no")

    world, _ = stubbed(answer)
    world.register_tool_provider("KV", StubTool(hanging))
    main = "pipeline Main(x: Any) -> Result: x |* { A.go(tools: [Box]), A.fail() }"
    result = await world.run(halo_lang.parse(STORE + AGENT + main), "Main", {"x": 1})
    assert (str(result.error), hanging.stopped) == ("no", ["a"])


async def test_a_tool_that_takes_longer_than_the_agent_may_is_stopped_and_its_model_told() -> None:
    hanging = Hanging(ends=lambda key: key == "b")
    calls = wants(("Box_get", {"key": "a"}), ("Box_get", {"key": "b"}))
    result, model = await play(f"@timeout(20ms)\n{AGENT}{MAIN}", calls, "sorry", tool=StubTool(hanging))
    assert (result.output, hanging.stopped) == ("sorry", ["a"])
    assert told(model) == [("Error: Box.get took longer than 0.02 s", True), ("value", False)]


@pytest.mark.parametrize(("function", "tries"), [("Box_get", 3), ("Box_incr", 1)])
async def test_what_ran_out_of_time_is_tried_again_only_where_it_may_happen_twice(function: str, tries: int) -> None:
    hanging = Hanging()
    text = f"@timeout(5ms)\n@retry(2, 1ms)\n{AGENT}{MAIN}"
    result, _ = await play(text, wants((function, {"key": "a"})), "sorry", tool=StubTool(hanging))
    assert (result.output, hanging.stopped) == ("sorry", ["a"] * tries)


async def test_a_tool_before_the_prompt_is_held_to_the_agents_time_too() -> None:
    hanging = Hanging()
    main = 'pipeline Main(x: Any) -> Result: x |> A.get("use it", tool: Box, key: "a")'
    result, model = await play(f"@timeout(5ms)\n{AGENT}{main}", tool=StubTool(hanging))
    assert type(result.error).__name__ == "TimeoutExceeded"
    assert (hanging.stopped, model.requests) == (["a"], [])
