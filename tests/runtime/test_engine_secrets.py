"""Secret values appear nowhere that anybody looks: results, errors, events, journals, traces, questions (spec 2.7)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import halo_lang
from halo_runtime import Interrupt, Journal, RunResult, ToolError, verify_trace
from halo_runtime.engine.events import RunEvent
from halo_runtime.models.base import ModelRequest
from tests.runtime.support import StubTool, runtime, stubbed, user_text

TOKEN, KEY = 'tok"en-0123456789', "sk-abcdef0123456789"
ENV = {"REPO_TOKEN_NAME": TOKEN, "OPENAI_API_KEY": KEY, "PORT": "8080"}
HEAD = "tool Repo : GitHub(Env.REPO_TOKEN_NAME)\nagent A [openai/gpt-4o-mini]\n  equips Repo\n"


class Seen:
    """Everything that a run lets anybody see."""

    def __init__(self, *results: Any) -> None:
        self.tool = StubTool(lambda method, args: results[0] if results else f"I was opened with {TOKEN} and {KEY}")
        self.journal = Journal()
        self.events: list[RunEvent] = []
        self.asked: list[Interrupt] = []
        self.told: list[Any] = []
        self.model_saw: list[str] = []

    async def run(self, stages: str) -> RunResult:
        async def answer(request: ModelRequest) -> str:
            self.model_saw.append(user_text(request))
            return f"the key is {KEY}"

        async def handler(interrupt: Interrupt) -> Any:
            self.asked.append(interrupt)
            return f"answer {TOKEN}"

        world, _ = stubbed(answer, env=ENV)
        world.register_tool_provider("GitHub", self.tool)
        world.subscribe(self.events.append)
        world.on_interrupt(handler)
        world.on_system_event(self.told.append)
        program = halo_lang.parse(f"{HEAD}pipeline Main(x: Any) -> Result: x {stages}")
        return await world.run(program, "Main", {"x": f"typed {KEY}"}, journal=self.journal)

    def all_text(self, result: RunResult) -> str:
        documents = [
            result.to_json(),
            [event.to_json() for event in self.events],
            [record.to_json() for record in self.journal],
            [interrupt.to_json() for interrupt in self.asked],
            [event.to_json() for event in self.told],
        ]
        return json.dumps(documents, ensure_ascii=False) + str(documents)


def assert_clean(text: str) -> None:
    for secret in (TOKEN, KEY, json.dumps(TOKEN)[1:-1]):
        assert secret not in text


@pytest.mark.parametrize(
    "stages",
    [
        "|> Repo.get_issue(number: 1)",
        "|> Repo.get_issue(number: 1) |> A.go()",
        '|> Repo.get_issue(number: 1) |> System.Print("{{get_issue}}") |> System.Publish(get_issue)',
        '|> Repo.get_issue(number: 1) |! yield("{{get_issue}}?", channel: get_issue, attachments: [get_issue]) as ok',
        "|> Repo.get_issue(number: 1) |* { A.go(), System.Value(get_issue) }",
        '|> Repo.get_issue(number: 1) |> System.Fail("cannot use {{get_issue}}")',
        "|> Repo.get_issue(number: 1) |? (get_issue > 3)",
        '|> Repo.get_issue(number: 1) |> A.get_issue("look", tool: Repo, number: 2)',
        "|> A.go(system: x)",
    ],
)
async def test_a_secret_is_in_nothing_that_a_run_shows(stages: str) -> None:
    seen = Seen()
    result = await seen.run(stages)
    assert_clean(seen.all_text(result))
    assert_clean(str(result.error) + repr(result))
    assert "[REDACTED]" in seen.all_text(result)


async def test_the_provider_itself_gets_the_real_value() -> None:
    seen = Seen("nothing")
    await seen.run("|> Repo.get_issue(number: 1)")
    assert seen.tool.config is not None
    assert seen.tool.config.settings["token"] == TOKEN


async def test_an_error_of_a_provider_that_repeats_the_secret_is_redacted_with_its_detail() -> None:
    seen = Seen()

    def answer(method: str, args: Any) -> Any:
        raise ToolError(f"401 for {TOKEN}", status=401, detail=f"bad credentials {TOKEN}")

    seen.tool = StubTool(answer)
    result = await seen.run("|> Repo.get_issue(number: 1)")
    assert str(result.error) == "401 for [REDACTED]"
    assert_clean(seen.all_text(result) + str(vars(result.error)))


async def test_a_strangers_error_is_redacted_too() -> None:
    seen = Seen()

    def answer(method: str, args: Any) -> Any:
        raise ValueError(f"cannot parse {TOKEN}")

    seen.tool = StubTool(answer)
    result = await seen.run('|* each(n in [1], onError: "keep") => Repo.get_issue(number: 1)')
    assert result.status == "completed"
    assert "[REDACTED]" in result.output[0]["error"]["message"]
    assert_clean(seen.all_text(result))


async def test_redaction_comes_before_hashing_so_the_chain_verifies_and_hides() -> None:
    first, second = Seen(f"a {TOKEN}"), Seen("a [REDACTED]")
    one, two = await first.run("|> Repo.get_issue(number: 1)"), await second.run("|> Repo.get_issue(number: 1)")
    assert one.head == two.head
    assert str(verify_trace(one.context.trace, head=one.head)) == "valid"


async def test_a_replay_of_a_journal_without_secrets_is_the_same_run() -> None:
    seen = Seen()
    stages = "|> Repo.get_issue(number: 1) |> A.go() |> System.Value(get_issue)"
    result = await seen.run(stages)
    length = len(seen.journal)
    replayed = await seen.run(stages)
    assert (len(seen.journal), len(seen.tool.calls)) == (length, 1)
    assert replayed.context.trace == result.context.trace
    assert replayed.context.data == result.context.data


async def test_env_is_never_filled_into_a_prompt() -> None:
    seen = Seen("nothing")
    await seen.run('|> A.go("key {{Env.OPENAI_API_KEY}}")')
    assert seen.model_saw == ["Task: go\n\nInstructions:\nkey {{Env.OPENAI_API_KEY}}"]


async def test_ordinary_variables_stay_readable() -> None:
    result = await Seen("port 8080").run("|> Repo.get_issue(number: 1)")
    assert result.output == "port 8080"


async def test_a_paused_question_is_clean_and_can_still_be_answered() -> None:
    world = runtime({}, env=ENV)
    text = 'pipeline Main(x: Any) -> Result: x |! yield("Send {{x}}?") as ok |> System.Value("{{ok}}")'
    paused = await world.run(halo_lang.parse(text), "Main", {"x": KEY}, run_id="r")
    assert paused.interrupts[0].message == "Send [REDACTED]?"
    assert (await world.signal("r", "yes")).output == "yes"


def test_a_missing_variable_is_named_and_nothing_is_opened() -> None:
    tool = StubTool(lambda method, args: 1)
    world = runtime({}, env={})
    world.register_tool_provider("GitHub", tool)
    program = halo_lang.parse(f"{HEAD}pipeline Main() -> Result: |> Repo.get_issue(number: 1)")
    with pytest.raises(Exception, match="REPO_TOKEN_NAME"):
        asyncio.run(world.run(program))
    assert tool.config is None
