"""Agent calls: settings, what is asked, tools before and by choice, what comes back (spec 2.5, 12.3)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import halo_lang
from halo_runtime import RunResult, ToolError
from halo_runtime.models.base import ModelReply, ToolCall, Usage
from tests.runtime.support import StubModel, StubTool, runtime, stubbed

MAIN = "pipeline Main(x: Any) -> Result: x "


async def play(text: str, *replies: str | ModelReply, tool: StubTool | None = None) -> tuple[RunResult, StubModel]:
    """Run `Main(x)` with x = 1 on a model that gives these replies in turn; `tool` plays every GitHub tool."""
    left = iter(replies or ("ok",))
    world, model = stubbed(lambda request: asyncio.sleep(0, next(left)))
    if tool is not None:
        world.register_tool_provider("GitHub", tool)
    return await world.run(halo_lang.parse(text), "Main", {"x": 1}), model


# --- settings -----------------------------------------------------------------------------------------------


async def test_the_calls_settings_win_over_the_agents() -> None:
    agent = 'agent A [openai/gpt-4o-mini, temp: 0.5, max_tokens: 100, top_p: 0.9, role: "from brackets"]\n'
    _, model = await play(
        f'{agent}{MAIN}|> A.go() |> A.go(temperature: 0, max_tokens: 7, system: "call {{{{x}}}}")', "a", "b"
    )
    first, second = model.requests
    assert (first.temperature, first.max_tokens, first.top_p) == (0.5, 100, 0.9)
    assert first.messages[0].to_json() == {"role": "system", "content": "from brackets"}
    assert (second.temperature, second.max_tokens, second.top_p) == (0, 7, 0.9)
    assert second.messages[0].content == "call 1"
    assert "temperature" not in second.messages[1].content


async def test_the_system_modifier_wins_over_the_brackets_and_is_filled_at_the_call() -> None:
    agent = 'agent A [openai/gpt-4o-mini, system: "brackets"]\n  system "modifier {{Value}} {{Env.KEY}}"\n'
    _, model = await play(f'{agent}{MAIN}|> System.Value("v") |> A.go()')
    assert model.requests[0].messages[0].content == "modifier v {{Env.KEY}}"


async def test_settings_that_nobody_names_are_left_to_the_service() -> None:
    _, model = await play(f"agent A [openai/gpt-4o-mini]\n{MAIN}|> A.go()")
    (request,) = model.requests
    assert (request.model, request.agent, request.method) == ("openai/gpt-4o-mini", "A", "go")
    assert (request.temperature, request.top_p, request.max_tokens, request.tools) == (None, None, None, ())
    assert [message.role for message in request.messages] == ["user"]


async def test_a_setting_of_the_wrong_kind_fails_the_call_before_it_is_sent() -> None:
    result, model = await play(
        f'agent A [openai/gpt-4o-mini]\n{MAIN}|> System.Value("warm") as t |> A.go(temperature: t)'
    )
    assert type(result.error).__name__ == "RunError"
    assert "temperature" in str(result.error)
    assert model.requests == []


# --- the prompt ---------------------------------------------------------------------------------------------


async def test_strings_are_instructions_other_values_input_and_names_parameters() -> None:
    _, model = await play(
        f'agent A [openai/gpt-4o-mini]\n{MAIN}|> A.findBugs("first", "second", x, [x, "s"], note: "n", deep: [1])'
    )
    assert model.requests[0].messages[0].content == (
        'Task: find bugs\n\nInstructions:\nfirst\nsecond\n\nParameters:\n- note: n\n- deep: [1]\n\nInput:\n1\n[1,"s"]'
    )


async def test_an_instruction_with_a_placeholder_takes_the_flowing_value_out_of_the_prompt() -> None:
    _, model = await play(f'agent A [openai/gpt-4o-mini]\n{MAIN}|> A.go("about {{{{x}}}}")')
    assert model.requests[0].messages[0].content == "Task: go\n\nInstructions:\nabout 1"


# --- replies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("```json\n[1]\n```", [1]),
        ("7", "7"),
        ("true", "true"),
        ('Sure: {"a": 1}', 'Sure: {"a": 1}'),
    ],
)
async def test_a_whole_reply_in_json_is_its_value_and_all_else_is_text(reply: str, value: Any) -> None:
    result, _ = await play(f"agent A [openai/gpt-4o-mini]\n{MAIN}|> A.go()", reply)
    assert result.output == value


@pytest.mark.parametrize("asked", ['A.go("as json")', 'A.go(format: "Json please")', 'A.go(system: "JSON only")'])
async def test_prose_around_json_is_tolerated_where_json_was_asked_for(asked: str) -> None:
    result, _ = await play(f"agent A [openai/gpt-4o-mini]\n{MAIN}|> {asked}", 'Here you go:\n{"a": "`}`"} Enjoy!')
    assert result.output == {"a": "`}`"}


async def test_two_candidates_stay_text_with_a_warning() -> None:
    result, _ = await play(f'agent A [openai/gpt-4o-mini]\n{MAIN}|> A.go("JSON")', '{"a": 1} or {"a": 2}')
    assert result.output == '{"a": 1} or {"a": 2}'
    assert result.context.meta["warnings"][0]["line"] == 2


async def test_a_value_from_outside_that_holds_the_word_is_no_request_for_json() -> None:
    text = f'agent A [openai/gpt-4o-mini]\n{MAIN}|> System.Value("JSON") as word |> A.go("{{{{word}}}}")'
    assert (await play(text, 'Well: {"a": 1}'))[0].output == 'Well: {"a": 1}'


async def test_the_call_that_makes_the_output_asks_for_its_schema() -> None:
    text = """schema S { n: Number }
    agent A [openai/gpt-4o-mini]
    pipeline Main(x: Any) -> S: x |> A.first() |> A.last()"""
    result, model = await play(text, "a", 'It is {"n": 4}.')
    first, last = model.requests
    assert first.json_schema is None
    assert last.json_schema is not None
    assert last.json_schema["properties"] == {"n": {"type": "number"}}
    assert result.output == {"n": 4}


# --- tool: T ------------------------------------------------------------------------------------------------

EQUIPPED = 'tool Repo : GitHub("t")\nagent A [openai/gpt-4o-mini] equips Repo\n'


async def test_a_tool_before_the_prompt_gets_the_parameters_and_its_result_is_stored() -> None:
    tool = StubTool(lambda method, args: {"title": "Bug"})
    text = f'{EQUIPPED}{MAIN}|> A.get_issue("Review it.", tool: Repo, number: x)'
    result, model = await play(text, "fine", tool=tool)
    assert tool.calls == [("get_issue", {"number": 1})]
    assert model.requests[0].messages[0].content.endswith('Tool result (Repo.get_issue):\n{"title":"Bug"}')
    assert result.context.data == {
        "Repo": {"get_issue": {"title": "Bug"}},
        "A": {"get_issue": "fine"},
        "get_issue": "fine",
    }


async def test_wrong_arguments_of_a_tool_fail_before_it_is_called() -> None:
    tool = StubTool(lambda method, args: 1)
    result, model = await play(
        f'{EQUIPPED}{MAIN}|> System.Value("seven") |> A.get_issue("x", tool: Repo, number: Value)', tool=tool
    )
    assert type(result.error).__name__ == "ToolError"
    assert "number" in str(result.error)
    assert (tool.calls, model.requests) == ([], [])


async def test_a_long_result_of_a_tool_is_cut_with_a_mark() -> None:
    tool = StubTool(lambda method, args: "abcdefgh")
    _, model = await play(
        f'{EQUIPPED}{MAIN}|> A.get_issue("x", tool: Repo, number: 1, tool_result_chars: 3)', tool=tool
    )
    assert "Tool result (Repo.get_issue):\nabc\n[… 5 more characters cut]" in model.requests[0].messages[0].content


# --- tools: [T] ---------------------------------------------------------------------------------------------


def wants(*calls: tuple[str, Any]) -> ModelReply:
    """A reply that asks for tools; arguments that are no text are sent as JSON."""
    return ModelReply(
        "",
        tuple(
            ToolCall(f"c{number}", name, args if isinstance(args, str) else json.dumps(args))
            for number, (name, args) in enumerate(calls)
        ),
        stop="tool",
    )


CHOOSES = f"{EQUIPPED}{MAIN}|> A.go(tools: [Repo])"


async def test_calls_of_one_turn_run_side_by_side_and_are_answered_in_the_order_asked() -> None:
    second = asyncio.Event()

    async def answer(method: str, args: Any) -> Any:
        if args["number"] == 1:
            await second.wait()
        second.set()
        return f"issue {args['number']}"

    tool = StubTool(answer)
    reply = wants(("Repo_get_issue", {"number": 1}), ("Repo_get_issue", {"number": 2}))
    result, model = await play(CHOOSES, reply, "done", tool=tool)
    assert result.output == "done"
    turn = model.requests[1].messages[-3:]
    assert [message.role for message in turn] == ["assistant", "tool", "tool"]
    assert [(message.tool_call_id, message.content) for message in turn[1:]] == [("c0", "issue 1"), ("c1", "issue 2")]
    assert result.context.meta["calls"][0]["tools"] == [
        {"name": "Repo_get_issue", "args": {"number": 1}, "result": "issue 1"},
        {"name": "Repo_get_issue", "args": {"number": 2}, "result": "issue 2"},
    ]


async def test_equipped_methods_are_offered_with_their_schemas() -> None:
    _, model = await play(CHOOSES, "done", tool=StubTool(lambda method, args: 1))
    offered = {spec.name: spec for spec in model.requests[0].tools}
    schema = offered["Repo_get_issue"].parameters
    assert schema["properties"]["number"]["type"] == "integer"
    assert schema["required"] == ["number"]


@pytest.mark.parametrize(("setting", "offered"), [("auto", True), ("none", False), ("[]", False)])
async def test_tools_can_be_all_or_none(setting: str, offered: bool) -> None:
    _, model = await play(f"{EQUIPPED}{MAIN}|> A.go(tools: {setting})", tool=StubTool(lambda method, args: 1))
    assert bool(model.requests[0].tools) is offered


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("Repo_unknown", {}, "no function Repo_unknown"),
        ("Other_get_issue", {}, "no function Other_get_issue"),
        ("Repo_get_issue", "{not json", "no JSON"),
        ("Repo_get_issue", "[1]", "object"),
        ("Repo_get_issue", {"number": "seven"}, "number"),
        ("Repo_get_issue", {}, "number"),
        ("Repo_get_issue", {"number": 1, "odd": 2}, "odd"),
    ],
)
async def test_what_is_wrong_with_a_chosen_call_goes_back_to_the_model(name: str, args: Any, said: str) -> None:
    tool = StubTool(lambda method, args: "never")
    result, model = await play(CHOOSES, wants((name, args)), "corrected", tool=tool)
    assert (result.status, result.output, tool.calls) == ("completed", "corrected", [])
    assert said in model.requests[1].messages[-1].content
    assert said in result.context.meta["calls"][0]["tools"][0]["error"]


async def test_a_failing_tool_is_a_result_for_the_model_that_chose_it() -> None:
    def answer(method: str, args: Any) -> Any:
        raise ToolError("no such issue", status=404)

    result, model = await play(CHOOSES, wants(("Repo_get_issue", {"number": 9})), "sorry", tool=StubTool(answer))
    assert result.output == "sorry"
    assert "no such issue" in model.requests[1].messages[-1].content


@pytest.mark.parametrize(("setting", "requests"), [("", 8), (", max_steps: 2", 2)])
async def test_a_model_that_never_stops_asking_ends_at_its_limit_with_the_transcript_kept(
    setting: str, requests: int
) -> None:
    tool = StubTool(lambda method, args: "again")
    replies = [wants(("Repo_get_issue", {"number": 1}))] * 20
    result, model = await play(f"{EQUIPPED}{MAIN}|> A.go(tools: [Repo]{setting})", *replies, tool=tool)
    assert type(result.error).__name__ == "StepLimitError"
    assert len(model.requests) == requests
    (call,) = result.context.meta["calls"]
    assert len(call["messages"]) == 1 + 2 * (requests - 1)
    assert len(tool.calls) == requests - 1
    *made, last = call["tools"]
    assert [line["result"] for line in made] == ["again"] * len(tool.calls)
    assert "max_steps" in last["error"]


# --- figures ------------------------------------------------------------------------------------------------


async def test_tokens_and_cost_are_summed_over_requests_and_calls() -> None:
    used = ModelReply("ok", usage=Usage(1000, 500))
    result, _ = await play(f"agent A [openai/gpt-4o-mini]\n{MAIN}|> A.go() |> A.go()", used, used)
    meta = result.context.meta
    assert meta["tokens"] == {"input": 2000, "output": 1000, "total": 3000}
    one = 1000 * 0.15e-6 + 500 * 0.60e-6
    assert meta["cost"] == pytest.approx(2 * one)
    assert [call["cost"] for call in meta["calls"]] == [pytest.approx(one)] * 2


async def test_an_unknown_price_makes_the_cost_null_and_not_zero() -> None:
    used = ModelReply("ok", usage=Usage(10, 5))
    result, _ = await play(f"agent A [openai/my-own-model]\n{MAIN}|> A.go()", used)
    assert (result.context.meta["cost"], result.context.meta["calls"][0]["cost"]) == (None, None)
    assert result.context.meta["tokens"]["total"] == 15


async def test_a_run_without_calls_costs_nothing() -> None:
    assert (await play(MAIN))[0].context.meta["cost"] == 0


async def test_the_model_override_answers_for_every_agent_and_the_declared_id_stays_in_the_figures() -> None:
    world = runtime(model="openai/gpt-4o")
    model = StubModel(lambda request: asyncio.sleep(0, "ok"))
    world.register_model_provider("openai", lambda env: model)
    text = f"agent A [anthropic/claude-sonnet-4-5]\n{MAIN}|> A.go()"
    result = await world.run(halo_lang.parse(text), "Main", {"x": 1})
    assert model.requests[0].model == "openai/gpt-4o"
    (call,) = result.context.meta["calls"]
    assert (call["model"], call["modelUsed"]) == ("anthropic/claude-sonnet-4-5", "openai/gpt-4o")
