"""No way around the rules: streams, retries, other models, nested and parallel calls, tools, shadows, corrections.

The reports of bugs elsewhere that these tests are made of are those of the reference, 4.6 rows 59 to 64, and 3.5.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import ModelError, RunResult, Runtime, ToolError
from halo_runtime.cassettes.cassette import Cassette
from halo_runtime.engine.calls.conversation import WITHHELD
from halo_runtime.engine.events import ModelDelta, RunEvent
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta, ToolCall
from tests.runtime.support import StubModel, StubTool, runtime, stubbed

SECRET = "phoenix-7"
HEAD = f"""
policy Guard : Block("{SECRET}")
store Notes : KV
"""
BOT = """
agent Bot [openai/gpt-4o-mini]
  equips Notes
  requires Guard
"""
MAIN = "pipeline Main(text: String) -> Result:\n"


def play(
    stages: str, replies: Sequence[Any], *, text: str = "hello", agents: str = BOT, tool: Any = None, **options: Any
) -> tuple[RunResult, StubModel, list[RunEvent]]:
    """A run of `Main` with these stages; each reply is a text, a ModelReply or an error, the last one repeated."""
    left = list(replies)

    async def answer(request: ModelRequest) -> str | ModelReply:
        said = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(said, Exception):
            raise said
        return said

    world, model = stubbed(answer, **options)
    world.register_tool_provider("KV", StubTool(tool or (lambda method, args: None)))
    events: list[RunEvent] = []
    world.subscribe(events.append)
    result = asyncio.run(world.run(halo_lang.parse(HEAD + agents + MAIN + stages), "Main", {"text": text}))
    return result, model, events


def assert_refused(result: RunResult) -> None:
    assert type(result.error).__name__ == "PolicyViolation", result.error
    assert result.output is None


def assert_nowhere(result: RunResult, events: Sequence[RunEvent] = ()) -> None:
    """What the model said is neither in the result nor in what was told of the run."""
    shown = json.dumps([result.context.data, result.context.meta["calls"], str(result.error), result.output])
    assert SECRET not in shown
    assert SECRET not in json.dumps([event.to_json() for event in events if event.type != "policy_decided"])


# --- streams ----------------------------------------------------------------------------------------------------


class Streaming(StubModel):
    """Streams an answer in pieces before it returns it."""

    def __init__(self, *pieces: str) -> None:
        super().__init__(lambda request: asyncio.sleep(0, "".join(pieces)))
        self._pieces = pieces

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        for piece in self._pieces if on_delta is not None else ():
            on_delta(piece)
        return await super().complete(request)


def streamed(*pieces: str) -> tuple[RunResult, list[RunEvent]]:
    world, events = runtime(), list[RunEvent]()
    world.register_model_provider("openai", lambda env: Streaming(*pieces))
    world.subscribe(events.append)
    program = halo_lang.parse(HEAD + BOT + MAIN + "  text |> Bot.answer()\n")
    return asyncio.run(world.run(program, "Main", {"text": "x"})), events


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_pattern_that_is_split_over_pieces_of_a_stream_is_found(cut: int) -> None:
    result, events = streamed("It is ", SECRET[:cut], SECRET[cut:], ".")
    assert_refused(result)
    assert_nowhere(result, events)


def test_nothing_of_a_guarded_answer_is_told_while_it_streams() -> None:
    result, events = streamed("It ", "is ", "fine.")
    assert result.output == "It is fine."
    assert not any(isinstance(event, ModelDelta) for event in events)


# --- other tries, other models, kept answers --------------------------------------------------------------------


def test_the_answer_of_a_retry_is_looked_at() -> None:
    agents = "@retry(2, 1s)" + BOT
    result, model, events = play(
        "  text |> Bot.answer()\n", [ModelError("busy", retryable=True), SECRET], agents=agents
    )
    assert len(model.requests) == 2
    assert_refused(result)
    assert_nowhere(result, events)


def test_the_rules_hold_for_the_model_that_takes_the_place_of_another() -> None:
    result, model, _ = play("  text |> Bot.answer()\n", [SECRET], model="openai/gpt-4o")
    assert [request.model for request in model.requests] == ["openai/gpt-4o"]
    assert_refused(result)


def test_an_answer_of_a_cassette_is_looked_at(tmp_path: Path) -> None:
    free = halo_lang.parse(HEAD + BOT.replace("  requires Guard\n", "") + MAIN + "  text |> Bot.answer()\n")
    guarded = halo_lang.parse(HEAD + BOT + MAIN + "  text |> Bot.answer()\n")

    async def both() -> RunResult:
        world, _ = stubbed(lambda request: asyncio.sleep(0, SECRET), cassette=Cassette.record(tmp_path / "c.jsonl"))
        assert (await world.run(free, "Main", {"text": "x"})).output == SECRET
        await world.close()
        return await Runtime(env={}, cassette=Cassette.replay(tmp_path / "c.jsonl")).run(guarded, "Main", {"text": "x"})

    assert_refused(asyncio.run(both()))


# --- where a call may stand -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stages",
    [
        "  text |* { Bot.one(), Bot.two() } as both\n",
        '  text |> System.Value(["a", "b"]) as items |* each(item in items) => Bot.one() as all\n',
        "  text |> Inner(text)\n",
        "  text |> Inner(text) |> Inner(text)\n",
        '  text |? { (text == "hello") => Bot.one(), else => Bot.two() }\n',
    ],
    ids=["fan-out", "each", "nested", "nested twice", "branch"],
)
def test_a_call_is_guarded_wherever_it_stands(stages: str) -> None:
    inner = "pipeline Inner(text: String) -> Result:\n  text |> Bot.answer()\n"
    source = HEAD + BOT + inner + MAIN + stages
    analysis = halo_lang.check(halo_lang.parse(source))
    assert [error.message for error in analysis.errors] == []
    for said, given in ((SECRET, "hello"), ("fine", "hello")):
        world, _ = stubbed(lambda request, said=said: asyncio.sleep(0, said))
        world.register_tool_provider("KV", StubTool(lambda method, args: None))
        result = asyncio.run(world.run(analysis, "Main", {"text": given}))
        assert (result.status == "failed") == (said == SECRET)


@pytest.mark.parametrize(
    "stage", ["text |> Bot.answer()", 'text |> Bot.answer("See {{text}}")', "text |> Bot.answer(about: text)"]
)
def test_a_text_is_found_by_whichever_way_it_comes_into_the_message(stage: str) -> None:
    result, model, _ = play(f"  {stage}\n", ["fine"], text=f"the {SECRET} project")
    assert_refused(result)
    assert model.requests == []


def test_a_value_in_a_system_prompt_is_found() -> None:
    agents = BOT.replace("  equips", '  system "You know {{text}}."\n  equips')
    result, model, _ = play("  text |> Bot.answer()\n", ["fine"], text=SECRET, agents=agents)
    assert_refused(result)
    assert model.requests == []


# --- tools ------------------------------------------------------------------------------------------------------

GET = ModelReply("", (ToolCall("1", "Notes_get", '{"key": "a"}'),))


def failing(method: str, args: Any) -> Any:
    raise ToolError(f"no such note: {SECRET}")


@pytest.mark.parametrize(
    "tool",
    [
        lambda method, args: f"it is {SECRET}",
        lambda method, args: {SECRET: 1},
        lambda method, args: [{"deep": [f"{SECRET}!"]}],
        failing,
    ],
    ids=["text", "key", "nested", "error"],
)
def test_a_result_of_a_tool_is_looked_at_before_the_model_sees_it(tool: Any) -> None:
    result, model, _ = play("  text |> Bot.answer(tools: [Notes])\n", [GET, "done"], tool=tool)
    assert_refused(result)
    assert len(model.requests) == 1
    assert [line["point"] for line in result.context.meta["violations"]] == ["result"]


def test_a_result_of_the_tool_before_the_prompt_is_looked_at() -> None:
    result, model, _ = play('  text |> Bot.get(tool: Notes, key: "a")\n', ["done"], tool=lambda method, args: SECRET)
    assert_refused(result)
    assert model.requests == []


@pytest.mark.parametrize("arguments", [f'{{"key": "{SECRET}"}}', '{"key": "phoenix\\u002d7"}'])
def test_a_tool_is_not_called_with_arguments_that_hold_it(arguments: str) -> None:
    asks = ModelReply("", (ToolCall("1", "Notes_get", arguments),))
    called: list[Any] = []
    result, model, _ = play(
        "  text |> Bot.answer(tools: [Notes])\n", [asks, "done"], tool=lambda method, args: called.append(args)
    )
    assert called == []
    assert_refused(result)
    assert len(model.requests) == 1
    assert [line["point"] for line in result.context.meta["violations"]] == ["tool"]


# --- corrections ------------------------------------------------------------------------------------------------


def test_a_refused_answer_is_not_sent_back_where_it_may_not_be_sent() -> None:
    agents = "@correct(1)" + BOT
    result, model, events = play("  text |> Bot.answer()\n", [f"It is {SECRET}.", "It is fine."], agents=agents)
    assert result.output == "It is fine."
    again = model.requests[1].messages
    assert [message.content for message in again if message.role == "assistant"] == [WITHHELD]
    reason = 'policy Guard, rule Block("…"): the text holds what a pattern stops'
    assert again[-1].content == f"Your answer was not accepted: {reason}. Answer again."
    assert_nowhere(result, events)


def test_an_answer_that_only_has_the_wrong_shape_is_sent_back() -> None:
    agents = "@correct(1)" + BOT.replace("requires Guard", "requires Brief") + "policy Brief : MaxLength(10)\n"
    _, model, _ = play("  text |> Bot.answer()\n", ["It is much too long.", "Fine."], agents=agents)
    assert "It is much too long." in [message.content for message in model.requests[1].messages]


# --- shadows ----------------------------------------------------------------------------------------------------


def test_a_shadow_sees_what_is_left_of_a_message_and_has_rules_of_its_own() -> None:
    agents = """
policy Private : Redact(Email)
agent Bot [openai/gpt-4o-mini]
  requires Private
@shadow(Bot)
agent Other [openai/gpt-4o]
  requires Guard
"""
    text = f"ann@example.com and {SECRET}"
    result, model, _ = play("  text |> Bot.answer()\n", ["fine"], text=text, agents=agents)
    assert result.output == "fine"
    assert [request.model for request in model.requests] == ["openai/gpt-4o-mini"]
    assert "ann@example.com" not in model.requests[0].messages[-1].content
    assert "rule Block" in result.context.meta["shadow"][0]["error"]
    assert SECRET not in result.context.meta["shadow"][0]["error"]


# --- what is said of it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [SECRET, f"{SECRET[:3]}\u200b{SECRET[3:]}"])
def test_a_refusal_repeats_neither_the_pattern_nor_the_text(said: str) -> None:
    result, _, events = play("  text |> Bot.answer()\n", [said])
    assert_refused(result)
    assert_nowhere(result, events)
    assert str(result.error) == (
        'Bot.answer was blocked by policy Guard, rule Block("…"): the text holds what a pattern stops'
    )
    assert result.context.meta["violations"][0]["rule"] == f'Block("{SECRET}")'


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ('Block("phoenix", PII, "blue")', 'rule Block("…", PII, "…")'),
        ('Audit(Block("x")) & Block("phoenix")', 'rule Block("…")'),
        ('Match("^never$")', 'rule Match("^never$")'),
    ],
)
def test_a_reason_names_the_rule_without_what_it_stops(rules: str, told: str) -> None:
    world, _ = stubbed(lambda request: asyncio.sleep(0, "phoenix"))
    source = f"policy Guard : {rules}\nagent Bot [openai/gpt-4o-mini]\n  requires Guard\n{MAIN}  text |> Bot.answer()\n"
    result = asyncio.run(world.run(halo_lang.parse(source), "Main", {"text": "x"}))
    assert f"policy Guard, {told}: " in str(result.error)
