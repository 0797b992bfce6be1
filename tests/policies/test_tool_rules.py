"""Rules about the tools, models and pace of an agent's calls, through whole runs (spec 6, 12.4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import halo_lang
from halo_runtime import PAUSE, Interrupt, ModelError, RunResult, Runtime, ScriptedModel
from halo_runtime.json_types import Json
from halo_runtime.models.base import ModelReply, ToolCall
from tests.runtime.support import FakeClock, StubTool, stubbed

PROGRAM = """
tool Repo : GitHub("t")
policy Guard : {rules}
agent Bot [openai/gpt-4o-mini]
  equips Repo
  requires Guard
pipeline Main(text: String) -> Result:
  text |> Bot.answer(tools: [Repo])
"""
READ = ToolCall("1", "Repo_get_issue", '{"number": 1}')
LABEL = ToolCall("2", "Repo_add_labels", '{"number": 1, "labels": ["bug"]}')


class Play:
    """A run of the program above: `calls` are chosen by the model one turn after another, then it answers "done"."""

    def __init__(self, rules: str, *turns: tuple[ToolCall, ...], answers: dict[str, Json] | None = None) -> None:
        replies = iter([*(ModelReply("", turn) for turn in turns), ModelReply("done")])
        self.asked: list[Interrupt] = []
        self.tool = StubTool(lambda method, args: {"ok": method})
        self.world, self.model = stubbed(lambda request: asyncio.sleep(0, next(replies)))
        self.world.on_interrupt(self._answer)
        self.world.register_tool_provider("GitHub", self.tool)
        self._answers = answers or {}
        self.result = asyncio.run(self.world.run(halo_lang.parse(PROGRAM.format(rules=rules)), "Main", {"text": "x"}))

    async def _answer(self, interrupt: Interrupt) -> Any:
        self.asked.append(interrupt)
        found = [answer for part, answer in self._answers.items() if part in interrupt.message]
        return found[0] if found else PAUSE

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.tool.calls]

    @property
    def violations(self) -> list[tuple[str, str]]:
        return [(line["rule"], line["action"]) for line in self.result.context.meta["violations"]]


@pytest.mark.parametrize(
    ("rules", "made"),
    [
        ("AllowTools(Repo)", ["get_issue", "add_labels"]),
        ("AllowTools(Repo.get_issue)", ["get_issue"]),
        ("AllowTools(Repo.getIssue)", ["get_issue"]),
        ("DenyTools(Repo)", []),
        ("DenyTools(Repo.addLabels)", ["get_issue"]),
        ("AllowTools(Repo) & DenyTools(Repo.get_issue)", ["add_labels"]),
    ],
)
def test_tools_that_may_not_be_called_are_not(rules: str, made: list[str]) -> None:
    play = Play(rules, (READ, LABEL))
    assert play.methods == made
    assert play.result.output == "done"
    assert len(play.violations) == 2 - len(made)


def test_the_model_is_told_that_a_tool_may_not_be_called() -> None:
    play = Play("DenyTools(Repo.add_labels)", (LABEL,))
    told = play.model.requests[1].messages[-1]
    assert (told.role, told.is_error) == ("tool", True)
    assert "DenyTools(Repo.add_labels)" in told.content
    assert "Repo.add_labels may not be called" in told.content


@pytest.mark.parametrize("answer", [True, "yes", "approve", " Approve "])
def test_an_approved_call_is_made(answer: Json) -> None:
    play = Play("Approve(Repo.add_labels)", (READ, LABEL), answers={"add_labels": answer})
    assert play.methods == ["get_issue", "add_labels"]
    assert play.violations == []


@pytest.mark.parametrize("answer", [False, "no", "refuse", "", None, 1, "yes please", ["yes"], {"approve": True}])
def test_every_other_answer_refuses_and_the_run_goes_on(answer: Json) -> None:
    play = Play("Approve(Repo.add_labels)", (READ, LABEL), answers={"add_labels": answer})
    assert play.methods == ["get_issue"]
    assert play.violations == [("Approve(Repo.add_labels)", "block")]
    assert play.result.status == "completed"
    assert "refused" in play.model.requests[1].messages[-1].content


def test_a_call_that_needs_approval_pauses_the_run_with_what_would_be_called() -> None:
    play = Play("Approve(Repo)", (LABEL,))
    (question,) = play.result.interrupts
    assert (play.result.status, question.kind, question.choices) == ("paused", "approve", ("approve", "refuse"))
    assert question.message == 'Bot.answer wants to call Repo.add_labels({"number":1,"labels":["bug"]}); may it?'
    assert [attachment["name"] for attachment in question.attachments] == ["arguments", "reason"]
    assert play.methods == []


def test_two_approvals_of_one_turn_are_open_at_once() -> None:
    play = Play("Approve(Repo)", (READ, LABEL))
    assert len(play.result.interrupts) == 2
    assert len({question.id for question in play.result.interrupts}) == 2


def test_after_a_result_of_the_source_the_sink_needs_approval() -> None:
    before = Play("Taint(from: Repo.get_issue, to: Repo.add_labels)", (LABEL,))
    assert before.methods == ["add_labels"]
    after = Play("Taint(from: Repo.get_issue, to: Repo.add_labels)", (READ,), (LABEL,), answers={"add_labels": "no"})
    assert after.methods == ["get_issue"]
    assert len(after.asked) == 1


def test_a_result_that_a_stage_had_taints_too() -> None:
    text = PROGRAM.format(rules="Taint(from: Repo.get_issue, to: Repo)").replace(
        "text |> Bot", "text |> Repo.get_issue(1) |> Bot"
    )
    replies = iter([ModelReply("", (LABEL,)), ModelReply("done")])
    world, _ = stubbed(lambda request: asyncio.sleep(0, next(replies)))
    world.register_tool_provider("GitHub", StubTool(lambda method, args: {}))
    result = asyncio.run(world.run(halo_lang.parse(text), "Main", {"text": "x"}))
    assert [question.kind for question in result.interrupts] == ["approve"]


@pytest.mark.parametrize("rule", ["DenyTools(Repo)", "Approve(Repo)"])
def test_an_audited_rule_is_told_and_decides_nothing(rule: str) -> None:
    play = Play(f"Audit({rule})", (LABEL,))
    assert play.methods == ["add_labels"]
    assert play.violations == [(f"Audit({rule})", "audit")]


def test_a_rule_that_looks_at_no_text_cannot_be_audited() -> None:
    with pytest.raises(Exception, match=r"Audit\(MaxCalls\(1\)\).*take Audit away"):
        Play("Audit(MaxCalls(1))")


# --- models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "sent"),
    [
        ('AllowModels("openai/*")', True),
        ('AllowModels("gpt-4o-mini")', True),
        ('AllowModels("anthropic/*", "openai/gpt-4o-mini")', True),
        ('AllowModels("anthropic/*")', False),
        ('DenyModels("openai/gpt-4*")', False),
        ('DenyModels("anthropic/*")', True),
        ('AllowModels("openai/gpt-4o")', False),
        ('AllowModels("OpenAI/GPT-4o-mini")', True),
        ('DenyModels("GPT-4o-mini")', False),
    ],
)
def test_only_models_that_may_be_used_are_asked(rule: str, sent: bool) -> None:
    play = Play(rule)
    assert bool(play.model.requests) == sent
    assert type(play.result.error).__name__ == ("NoneType" if sent else "PolicyViolation")


def answered_by(model: str, rule: str) -> RunResult:
    world, _ = stubbed(lambda request: asyncio.sleep(0, ModelReply("done", model_used=model)))
    world.register_tool_provider("GitHub", StubTool(lambda method, args: {}))
    return asyncio.run(world.run(halo_lang.parse(PROGRAM.format(rules=rule)), "Main", {"text": "x"}))


@pytest.mark.parametrize(
    ("model", "status"),
    [
        ("gpt-4o-mini-2024-07-18", "completed"),
        ("gpt-4o-mini-0613", "completed"),
        ("openai/gpt-4o-mini", "completed"),
        ("GPT-4o-mini:latest", "completed"),
        (None, "completed"),
        ("o1-pro", "failed"),
        ("gpt-4o-mini-audio", "failed"),
        ("gpt-4o-mini2", "failed"),
    ],
)
def test_the_model_that_answered_must_be_one_that_may_be_used(model: str, status: str) -> None:
    result = answered_by(model, 'AllowModels("openai/gpt-4o-mini")')
    assert result.status == status
    assert result.error is None or f"openai/{model} may not be used" in result.error.message


@pytest.mark.parametrize("rule", ['AllowModels("openai/gpt-4o-mini")', 'DenyModels("openai/scripted")'])
def test_a_script_answers_in_the_name_of_the_model_that_is_asked(rule: str) -> None:
    program = halo_lang.parse(PROGRAM.format(rules=rule))
    world = Runtime(replies=ScriptedModel({"Bot.answer": "done"}))
    world.register_tool_provider("GitHub", StubTool(lambda method, args: {}))
    assert asyncio.run(world.run(program, "Main", {"text": "x"})).output == "done"


# --- pace -------------------------------------------------------------------------------------------------------


def test_a_call_that_takes_longer_than_the_policy_allows_is_cancelled_and_not_retried() -> None:
    cancelled: list[str] = []

    async def hang(request: object) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("request")
            raise
        return "never"

    text = PROGRAM.format(rules="MaxLatency(20ms)").replace("agent Bot", "@retry(3)\nagent Bot")
    world, model = stubbed(hang)
    world.register_tool_provider("GitHub", StubTool(lambda method, args: {}))
    result = asyncio.run(world.run(halo_lang.parse(text), "Main", {"text": "x"}))
    assert type(result.error).__name__ == "PolicyViolation"
    assert "longer than the 0.02 s that policy Guard, rule MaxLatency(20ms) allows" in str(result.error)
    assert (len(model.requests), cancelled) == (1, ["request"])
    [call] = result.context.meta["calls"]
    assert call["tokens"]["input"] > 0  # the service was at work on it
    assert (call["estimated"], call["attempts"], call["cost"] > 0) == (True, 1, True)


class TickingClock(FakeClock):
    """Time passes by sleeping only."""

    def monotonic(self) -> float:
        return sum(self.slept)


def limited(world: Runtime, program: str) -> None:
    asyncio.run(world.run(halo_lang.parse(program), "Main", {"items": [1, 2, 3, 4, 5]}))


def test_calls_beyond_the_rate_wait_also_over_runs() -> None:
    program = """
policy Slow : RateLimit(2, 10s)
agent Bot [openai/gpt-4o-mini]
  requires Slow
pipeline Main(items: Array) -> Result:
  items |* each(item in items) => Bot.answer(item)
"""
    clock = TickingClock()
    world, model = stubbed(lambda request: asyncio.sleep(0, "ok"), clock=clock)
    limited(world, program)
    assert len(model.requests) == 5
    assert clock.monotonic() == 20.0
    limited(world, program)
    assert clock.monotonic() == 40.0


def test_a_failure_in_time_is_the_services_own() -> None:
    world, _ = stubbed(_broken)
    world.register_tool_provider("GitHub", StubTool(lambda method, args: {}))
    result = asyncio.run(world.run(halo_lang.parse(PROGRAM.format(rules="MaxLatency(5s)")), "Main", {"text": "x"}))
    assert isinstance(result.error, ModelError)


async def _broken(request: object) -> str:
    raise ModelError("the service is down")
