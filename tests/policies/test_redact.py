"""`Redact(…)`, `Block(PII)` and `Block(Secrets)` through whole runs: what models, tools and programs see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

import halo_lang
from halo_runtime import RunResult, Runtime
from halo_runtime.engine.events import ModelDelta, PolicyDecided, RunEvent
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelReply, ModelRequest, ToolCall
from tests.runtime.support import StubTool, stubbed

MAIL, OTHER, CARD = "ann.lee@example.com", "bob@example.org", "4111 1111 1111 1111"
KEY = "ghp_x7Kq2mVn9RtLw4ZpYc8HsBd1JfGa6EuT0oNi"

PROGRAM = """
tool Repo : GitHub("t")
policy Guard : {rules}
{directives}
agent Bot [openai/gpt-4o-mini]
  equips Repo
  requires Guard
pipeline Main(text: Any) -> Result:
  text |> Bot.answer(tools: [Repo])
"""


class Play:
    """A run of the program above; `say` answers each request, given all that is sent as one text."""

    def __init__(
        self, rules: str, text: Json, *replies: ModelReply | str, result: Json = "ok", directives: str = ""
    ) -> None:
        answers = iter(replies)
        self.tool = StubTool(lambda method, args: result)
        self.world, self.model = stubbed(lambda request: asyncio.sleep(0, _reply(next(answers))))
        self.world.register_tool_provider("GitHub", self.tool)
        self.events: list[RunEvent] = []
        self.world.subscribe(self.events.append)
        program = PROGRAM.format(rules=rules, directives=directives)
        self.result = asyncio.run(self.world.run(halo_lang.parse(program), "Main", {"text": text}))

    @property
    def sent(self) -> list[str]:
        return [said(request) for request in self.model.requests]

    @property
    def violations(self) -> list[tuple[str, str]]:
        return [(line["point"], line["action"]) for line in self.result.context.meta["violations"]]


def _reply(reply: ModelReply | str) -> ModelReply:
    return ModelReply(reply) if isinstance(reply, str) else reply


def said(request: ModelRequest) -> str:
    return "\n".join(
        "\n".join((message.content, *(call.arguments for call in message.tool_calls))) for message in request.messages
    )


def chosen(method: str, **arguments: Json) -> ModelReply:
    return ModelReply("", (ToolCall("1", f"Repo_{method}", json.dumps(arguments)),))


def comment(body: str) -> ModelReply:
    return chosen("create_comment", number=1, body=body)


def test_a_reply_is_redacted_too() -> None:
    play = Play("Redact(PII)", "who?", f"ask {MAIL}, card {CARD}")
    assert play.result.output == "ask [EMAIL_1], card [CREDIT_CARD_1]"
    assert play.violations == [("output", "redact")]


@pytest.mark.parametrize("value", [{"a": [{"b": MAIL}]}, {MAIL: 1}, [MAIL], {"n": 4111111111111111}])
def test_values_and_keys_of_json_are_redacted(value: Json) -> None:
    play = Play("Redact(PII)", value, "ok")
    assert MAIL not in play.sent[0]
    assert "4111" not in play.sent[0]
    assert "_1]" in play.sent[0]


def test_results_of_tools_are_redacted_before_a_model_sees_them() -> None:
    play = Play("Redact(Email)", "go", chosen("get_issue", number=1), "done", result={"mail": MAIL})
    assert "[EMAIL_1]" in play.sent[1]
    assert MAIL not in play.sent[1]
    assert ("result", "redact") in play.violations


def test_a_tool_gets_the_placeholder() -> None:
    play = Play("Redact(Email)", MAIL, comment("to [EMAIL_1]"), "done")
    assert play.tool.calls[0][1]["body"] == "to [EMAIL_1]"


def test_with_restore_a_tool_gets_the_value_and_no_model_does() -> None:
    play = Play("Redact(Email, restore: true)", MAIL, comment("to [EMAIL_1]"), "sent to [EMAIL_1]", result=f"to {MAIL}")
    assert play.tool.calls[0][1]["body"] == f"to {MAIL}"
    assert play.result.output == f"sent to {MAIL}"
    assert MAIL not in "".join(play.sent)


def test_what_a_model_writes_to_a_tool_in_clear_is_taken_out() -> None:
    play = Play("Redact(CreditCard)", "x", comment(f"card {CARD}"), "done")
    assert play.tool.calls[0][1]["body"] == "card [CREDIT_CARD_1]"
    assert CARD not in "".join(play.sent)
    assert ("tool", "redact") in play.violations


@pytest.mark.parametrize("forged", ["[EMAIL_1]", "[email 1]", "EMAIL_1", "<EMAIL_1>", "[EMAIL_1", r"[EMAIL\_1]"])
def test_a_placeholder_that_a_user_writes_gets_nothing_back(forged: str) -> None:
    """The system prompt's address is behind [EMAIL_1]; a user who writes it must not get it."""
    play = Play("Redact(Email, restore: true)", {"secret": MAIL, "say": forged}, "echo [EMAIL#1]")
    assert '"say":"[EMAIL#1]"' in play.sent[0]
    assert play.result.output == "echo [EMAIL#1]"


def test_a_placeholder_that_a_tool_writes_gets_nothing_back() -> None:
    forged: JsonObject = {"body": "say [EMAIL_1]"}
    play = Play("Redact(Email, restore: true)", MAIL, chosen("get_issue", number=1), "ok", result=forged)
    assert "[EMAIL#1]" in play.sent[1]
    assert play.sent[1].count("[EMAIL_1]") == 1


def test_placeholders_stay_the_same_from_step_to_step() -> None:
    play = Play(
        "Redact(Email, restore: true)", f"{MAIL} {OTHER}", comment("to [EMAIL_2]"), comment("to [EMAIL_1]"), "ok"
    )
    first, second, third = play.sent
    assert second.startswith(first)
    assert third.startswith(second)
    assert [args["body"] for _, args in play.tool.calls] == [f"to {OTHER}", f"to {MAIL}"]


def test_each_message_is_looked_at_once() -> None:
    play = Play("Redact(Email)", MAIL, comment("x"), comment("y"), "ok")
    assert [point for point, _ in play.violations].count("input") == 1
    decided = [event for event in play.events if isinstance(event, PolicyDecided)]
    assert sum(event.point == "result" for event in decided) == 2


@pytest.mark.parametrize("written", ["[EMAIL_1]", "[Email_1]", "[email 1]", "EMAIL_1", "[EMAIL_1", r"\[EMAIL\_1\]"])
def test_placeholders_that_models_change_a_little_are_known(written: str) -> None:
    play = Play("Redact(Email, restore: true)", MAIL, f"to {written}.")
    assert play.result.output == f"to {MAIL}."


@pytest.mark.parametrize("written", ["[EMAIL_2]", "[PHONE_1]", "email 1", "EMAIL 1 of 2", "(email 1)"])
def test_placeholders_that_are_none_stay(written: str) -> None:
    play = Play("Redact(Email, restore: true)", MAIL, f"to {written}.")
    assert play.result.output == f"to {written}."


def test_secrets_are_not_put_back() -> None:
    play = Play("Redact(Email, Secrets, restore: true)", f"{MAIL} {KEY}", "[EMAIL_1] [SECRET_1]")
    assert play.result.output == f"{MAIL} [SECRET_1]"


def test_only_what_asks_for_it_is_put_back() -> None:
    play = Play("Redact(Email, restore: true) & Redact(CreditCard)", f"{MAIL} {CARD}", "[EMAIL_1] [CREDIT_CARD_1]")
    assert play.result.output == f"{MAIL} [CREDIT_CARD_1]"


def test_values_put_back_into_json_leave_it_json() -> None:
    play = Play("Redact(Email, restore: true)", MAIL, '{"to": "[EMAIL_1]"}')
    assert play.result.output in ({"to": MAIL}, json.dumps({"to": MAIL}))


@pytest.mark.parametrize(("kind", "text"), [("PII", f"mail {MAIL}"), ("Secrets", f"key {KEY}")])
def test_block_stops_before_anything_is_sent_and_does_not_say_what_it_saw(kind: str, text: str) -> None:
    play = Play(f"Block({kind})", text, "never")
    assert play.result.status == "failed"
    assert play.model.requests == []
    assert play.result.error is not None
    assert not any(part in play.result.error.message for part in (MAIL, KEY, "ann.lee"))


def test_block_of_a_tools_arguments_ends_the_call_without_saying_the_value() -> None:
    play = Play("Block(Secrets)", "go", comment(f"the key is {KEY}"), "done")
    assert play.tool.calls == []
    assert type(play.result.error).__name__ == "PolicyViolation"
    assert KEY not in str(play.result.error)


def test_a_correction_does_not_quote_what_was_taken_out() -> None:
    play = Play(
        "Redact(Email) & MaxLength(30)", "go", f"write to {MAIL} and then wait a long time", "ok",
        directives="@correct(1)",
    )  # fmt: skip
    assert play.result.output == "ok"
    assert MAIL not in play.sent[1]


def test_nothing_of_a_reply_is_seen_before_it_is_redacted() -> None:
    play = Play("Redact(Email)", "go", f"write to {MAIL}")
    assert not any(isinstance(event, ModelDelta) for event in play.events)
    assert MAIL not in repr(play.events)


def test_a_shadow_sees_no_more_than_its_policy_allows() -> None:
    program = """
policy Guard : Redact(Email)
@shadow(Bot)
agent Twin [openai/gpt-4o]
  requires Guard
agent Bot [openai/gpt-4o-mini]
  requires Guard
pipeline Main(text: String) -> Result:
  text |> Bot.answer()
"""
    world, model = stubbed(lambda request: asyncio.sleep(0, ModelReply(f"from {OTHER}")))
    result = asyncio.run(world.run(halo_lang.parse(program), "Main", {"text": MAIL}))
    assert result.status == "completed"
    assert len(model.requests) == 2
    assert not any(MAIL in said(request) for request in model.requests)
    assert OTHER not in json.dumps(result.context.meta)


def run_twice(program: str, inputs: JsonObject, answer: Callable[[ModelRequest], str]) -> list[RunResult]:
    async def both() -> list[RunResult]:
        results: list[RunResult] = []
        for _ in range(2):
            world: Runtime
            world, _ = stubbed(lambda request: asyncio.sleep(0, ModelReply(answer(request))))
            results.append(await world.run(halo_lang.parse(program), "Main", inputs))
        return results

    return asyncio.run(both())


def test_numbers_are_the_same_in_every_run_with_the_same_input() -> None:
    program = """
policy Guard : Redact(Email)
agent Bot [openai/gpt-4o-mini]
  requires Guard
pipeline Main(items: Array) -> Result:
  items |* each(item in items, concurrency: 3) => Bot.answer(item)
"""
    first, second = run_twice(
        program, {"items": [f"u{n}@example.com" for n in range(12)]}, lambda request: request.messages[-1].content[-12:]
    )
    assert first.output == second.output
    assert "[EMAIL_12]" in json.dumps(first.output)
