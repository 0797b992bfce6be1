"""@retry, @timeout, @correct, and the policies around a call (spec 2.5, 2.7, 12.3)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

import halo_lang
from halo_runtime import ConfigError, ModelError, RunResult, ToolError
from halo_runtime.models.base import ModelReply, ModelRequest, ToolCall
from halo_runtime.policies.base import Decision, Examined, Finding, Point
from tests.runtime.support import FakeClock, StubModel, StubTool, run, runtime, stubbed

AGENT = "agent A [openai/gpt-4o-mini]\n"
MAIN = "pipeline Main(x: Any) -> Result: x |> A.go()"


async def play(text: str, *replies: Any, **options: Any) -> tuple[RunResult, StubModel, list[float]]:
    """Run `Main(x)` on a model that gives or raises these in turn; what was waited in between."""
    left = iter(replies)

    async def answer(request: ModelRequest) -> Any:
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply

    clock = FakeClock()
    world, model = stubbed(answer, clock=clock)
    return await world.run(halo_lang.parse(text), "Main", {"x": 1}, **options), model, clock.slept


def busy(retry_after: float | None = None) -> ModelError:
    return ModelError("busy", retryable=True, status=429, retry_after=retry_after)


# --- @retry -------------------------------------------------------------------------------------------------


async def test_a_call_is_tried_again_with_doubling_waits_until_it_works() -> None:
    result, model, slept = await play(f"@retry(3, 2s)\n{AGENT}{MAIN}", busy(), busy(), busy(), "ok")
    assert (result.output, len(model.requests), slept) == ("ok", 4, [2, 4, 8])
    assert result.context.meta["calls"][0]["attempts"] == 4


async def test_the_first_wait_is_a_second_where_nothing_is_said() -> None:
    _, _, slept = await play(f"@retry(1)\n{AGENT}{MAIN}", busy(), "ok")
    assert slept == [1]


async def test_the_last_failure_is_the_runs_and_knows_its_attempt() -> None:
    result, model, _ = await play(f"@retry(2)\n{AGENT}{MAIN}", busy(), busy(), ModelError("still busy", retryable=True))
    assert (str(result.error), len(model.requests)) == ("still busy", 3)
    assert result.error is not None
    assert result.error.attempt == 3
    assert result.context.meta["calls"][0]["attempts"] == 3


async def test_the_services_own_wait_is_obeyed() -> None:
    _, _, slept = await play(f"@retry(3, 2s)\n{AGENT}{MAIN}", busy(7.5), busy(0), busy(), "ok")
    assert slept == [7.5, 0, 8]


async def test_what_cannot_get_better_is_not_tried_again() -> None:
    result, model, slept = await play(f"@retry(3)\n{AGENT}{MAIN}", ModelError("bad request", status=400))
    assert (str(result.error), len(model.requests), slept) == ("bad request", 1, [])


async def test_without_the_directive_nothing_is_tried_again() -> None:
    _, model, _ = await play(f"{AGENT}{MAIN}", busy())
    assert len(model.requests) == 1


async def test_no_wait_is_begun_that_the_runs_time_would_not_outlast() -> None:
    result, model, slept = await play(f"@retry(3)\n{AGENT}@timeout(5s)\n{MAIN}", busy(60))
    assert (str(result.error), len(model.requests), slept) == ("busy", 1, [])


async def test_the_directive_on_a_pipeline_holds_for_its_agents_and_those_of_pipelines_inside() -> None:
    inner = "pipeline Inner(v: Any) -> Result: v |> A.go()\n"
    text = f"{AGENT}{inner}@retry(1)\npipeline Main(x: Any) -> Result: x |> Inner(x)"
    result, model, _ = await play(text, busy(), "ok")
    assert (result.output, len(model.requests)) == ("ok", 2)


async def test_the_agents_own_directive_wins_over_the_pipelines() -> None:
    _, model, _ = await play(f"@retry(1)\n{AGENT}@retry(5)\n{MAIN}", busy(), busy(), busy())
    assert len(model.requests) == 2


async def test_the_directive_on_an_agent_holds_for_the_tools_it_calls() -> None:
    failures = [ToolError("down", retryable=True), ToolError("down", retryable=True)]

    def answer(method: str, args: Any) -> Any:
        if failures:
            raise failures.pop()
        return "up"

    clock, tool = FakeClock(), StubTool(answer)
    world = runtime({"Bot.get_issue": "seen"}, clock=clock)
    world.register_tool_provider("GitHub", tool)
    text = (
        'tool Repo : GitHub("t")\n@retry(2, 1s)\nagent Bot [openai/gpt-4o-mini] equips Repo\n'
        "pipeline Main() -> Result: |> Bot.get_issue(tool: Repo, number: 1)"
    )
    result = await world.run(halo_lang.parse(text))
    assert (result.output, len(tool.calls), clock.slept) == ("seen", 3, [1.0, 2.0])


async def test_the_directive_on_a_pipeline_holds_for_its_tools() -> None:
    failures = [ToolError("down", retryable=True), ToolError("down", retryable=True)]

    def answer(method: str, args: Any) -> Any:
        if failures:
            raise failures.pop()
        return "up"

    clock, tool = FakeClock(), StubTool(answer)
    world = runtime({}, clock=clock)
    world.register_tool_provider("GitHub", tool)
    text = 'tool Repo : GitHub("t")\n@retry(2, 1s)\npipeline Main() -> Result: |> Repo.get_issue(number: 1)'
    result = await world.run(halo_lang.parse(text), "Main")
    assert (result.output, len(tool.calls), clock.slept) == ("up", 3, [1, 2])


async def test_a_tool_that_may_have_had_its_effect_is_not_called_again() -> None:
    def answer(method: str, args: Any) -> Any:
        raise ToolError("the connection broke after sending", retryable=False)

    tool = StubTool(answer)
    world = runtime({})
    world.register_tool_provider("GitHub", tool)
    text = 'tool Repo : GitHub("t")\n@retry(2)\npipeline Main() -> Result: |> Repo.create_issue("t")'
    assert (await world.run(halo_lang.parse(text), "Main")).status == "failed"
    assert len(tool.calls) == 1


# --- @timeout -----------------------------------------------------------------------------------------------


async def silent(request: ModelRequest) -> str:
    await asyncio.Event().wait()
    return ""


async def test_an_agents_time_limit_holds_for_each_try_and_is_tried_again() -> None:
    cancelled: list[str] = []

    async def answer(request: ModelRequest) -> str:
        try:
            await silent(request)
        finally:
            cancelled.append(request.method)
        return ""

    world, model = stubbed(answer)
    text = f"@timeout(5ms) @retry(2)\n{AGENT}{MAIN}"
    result = await world.run(halo_lang.parse(text), "Main", {"x": 1})
    assert type(result.error).__name__ == "TimeoutExceeded"
    assert (len(model.requests), cancelled) == (3, ["go"] * 3)


async def test_a_pipelines_time_limit_ends_the_whole_run_with_its_work_kept() -> None:
    async def answer(request: ModelRequest) -> str:
        return "done" if request.method == "first" else await silent(request)

    world, _ = stubbed(answer)
    text = f"{AGENT}@timeout(10ms)\npipeline Main() -> Result: |> A.first() |> A.go()"
    result = await world.run(halo_lang.parse(text), "Main")
    assert (result.status, type(result.error).__name__) == ("failed", "TimeoutExceeded")
    assert result.context.data["first"] == "done"


async def test_a_run_that_waits_for_nothing_can_be_stopped() -> None:
    endless = (
        f"{AGENT}pipeline Main(x: Any) -> Result: x |> A.go() |<> loop(A, \"context.data.go == 'again'\", max: 5000)"
    )
    world = runtime({"A": "again"})
    work = asyncio.ensure_future(world.run(halo_lang.parse(endless), "Main", {"x": 1}, run_id="r"))
    await asyncio.sleep(0)
    assert world.stop("r")
    result = await work
    assert result.status == "interrupted"


async def test_a_limit_given_to_the_run_holds_around_all_others() -> None:
    world, _ = stubbed(silent)
    text = f"{AGENT}@timeout(1h)\n{MAIN}"
    result = await world.run(halo_lang.parse(text), "Main", {"x": 1}, timeout=0.01)
    assert "the run took longer than 0.01 s" in str(result.error)


# --- @correct and output policies ---------------------------------------------------------------------------

SHORT = f"policy Short : MaxLength(5)\n@correct(2)\n{AGENT.rstrip()} requires Short\n"


async def test_a_refused_answer_is_shown_to_the_agent_with_the_reason_and_asked_again() -> None:
    result, model, _ = await play(SHORT + MAIN, "far too long", "short")
    assert result.output == "short"
    _, answer, advice = model.requests[1].messages
    assert (answer.role, answer.content, advice.role) == ("assistant", "far too long", "user")
    assert "MaxLength(5)" in advice.content
    (call,) = result.context.meta["calls"]
    assert (call["corrections"], call["attempts"], call["reply"]) == (1, 2, "short")
    violation = {
        "policy": "Short",
        "rule": "MaxLength(5)",
        "point": "output",
        "action": "block",
        "agent": "A",
        "method": "go",
    }
    assert result.context.meta["violations"] == [violation]


async def test_corrections_have_an_end_and_all_are_paid() -> None:
    result, model, _ = await play(SHORT + MAIN, *["far too long"] * 5)
    assert type(result.error).__name__ == "PolicyViolation"
    assert len(model.requests) == 3
    assert result.context.meta["calls"][0]["corrections"] == 2
    assert "far too long" not in str(result.error)


async def test_a_refused_answer_is_no_failure_to_retry() -> None:
    text = f"policy Short : MaxLength(5)\n@retry(3)\n{AGENT.rstrip()} requires Short\n{MAIN}"
    result, model, _ = await play(text, "far too long")
    assert (type(result.error).__name__, len(model.requests)) == ("PolicyViolation", 1)
    assert result.context.data == {}


async def test_the_directive_on_a_pipeline_corrects_all_its_agents() -> None:
    text = f"policy Short : MaxLength(5)\n{AGENT.rstrip()} requires Short\n@correct(1)\n{MAIN}"
    assert (await play(text, "far too long", "ok"))[0].output == "ok"


async def test_all_rules_of_all_policies_say_what_is_wrong_at_once() -> None:
    policies = "policy One : MaxLength(5) & Match('[0-9]')\npolicy Two : RequireJSON\n"
    text = f"{policies}{AGENT.rstrip()} requires One, Two\n{MAIN}"
    result, _, _ = await play(text, "neither of them")
    assert all(rule in str(result.error) for rule in ("MaxLength(5)", "Match('[0-9]')", "RequireJSON"))
    assert len(result.context.meta["violations"]) == 3


async def test_a_rule_that_cannot_be_enforced_refuses_the_run_before_its_start() -> None:
    text = f"policy P : Block(Toxicity)\n{AGENT.rstrip()} requires P\n{MAIN}"
    with pytest.raises(ConfigError, match=r"policy P.*Block"):
        await play(text)


# A rule is made by the factory of its name; these stand for rules that others may add.


class Rule:
    """A rule at one point that decides by a function."""

    def __init__(self, point: Point, decide: Callable[[str], Decision]) -> None:
        self.points: frozenset[Point] = frozenset({point})
        self._decide = decide

    def evaluate(self, examined: Examined) -> Decision:
        return self._decide(examined.text)


def redacted(text: str, value: str) -> Decision:
    """The decision to take every occurrence of a value out of a text."""
    found = (Finding("THING", *match.span(), value) for match in re.finditer(re.escape(value), text))
    return Decision("redact", findings=tuple(found))


def enforce(monkeypatch: pytest.MonkeyPatch, rule: Rule) -> str:
    """A program's beginning whose agent is under `rule`."""
    monkeypatch.setattr("halo_runtime.engine.policies.rule_factory", lambda name: lambda arguments: rule)
    return f'policy P : Block(PII)\ntool Repo : GitHub("t")\n{AGENT.rstrip()} equips Repo requires P\n'


@pytest.mark.parametrize("point", ["input", "output"])
async def test_a_rule_that_raises_blocks(monkeypatch: pytest.MonkeyPatch, point: Point) -> None:
    def decide(text: str) -> Decision:
        raise ValueError(text)

    result, model, _ = await play(enforce(monkeypatch, Rule(point, decide)) + MAIN, "a reply")
    assert type(result.error).__name__ == "PolicyViolation"
    assert "Block(PII)" in str(result.error)
    assert "a reply" not in str(result.error)
    assert len(model.requests) == (point == "output")


async def test_a_blocked_input_is_never_sent_and_stands_in_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule("input", lambda text: Decision("block", "it holds what it must not"))
    result, model, _ = await play(enforce(monkeypatch, rule) + MAIN, "never")
    assert (result.status, model.requests) == ("failed", [])
    (call,) = result.context.meta["calls"]
    assert (call["attempts"], call["error"]["type"]) == (0, "PolicyViolation")


async def test_a_redacting_rule_changes_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule("input", lambda text: redacted(text, "1"))
    _, model, _ = await play(enforce(monkeypatch, rule) + MAIN, "ok")
    assert model.requests[0].messages[0].content == "Task: go\n\nInput:\n[THING_1]"


async def test_a_rule_about_tools_answers_the_model_and_the_call_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule("tool", lambda text: Decision("block", "not that one", answers=True))
    tool = StubTool(lambda method, args: "never")
    text = enforce(monkeypatch, rule) + "pipeline Main() -> Result: |> A.go(tools: [Repo])"
    replies = iter([ModelReply("", (ToolCall("c", "Repo_get_issue", '{"number": 1}'),)), ModelReply("understood")])
    world, model = stubbed(lambda request: asyncio.sleep(0, next(replies)))
    world.register_tool_provider("GitHub", tool)
    result = await world.run(halo_lang.parse(text), "Main")
    assert (result.output, tool.calls) == ("understood", [])
    assert "not that one" in model.requests[1].messages[-1].content
    assert result.context.meta["violations"][0]["point"] == "tool"


async def test_a_result_of_a_tool_goes_through_the_rules_before_the_model_sees_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = Rule("result", lambda text: redacted(text, "private"))
    text = enforce(monkeypatch, rule) + "pipeline Main() -> Result: |> A.go(tools: [Repo])"
    replies = iter([ModelReply("", (ToolCall("c", "Repo_get_issue", '{"number": 1}'),)), ModelReply("ok")])
    world, model = stubbed(lambda request: asyncio.sleep(0, next(replies)))
    world.register_tool_provider("GitHub", StubTool(lambda method, args: "private"))
    await world.run(halo_lang.parse(text), "Main")
    assert model.requests[1].messages[-1].content == "[THING_1]"


def test_a_checkpoint_that_nothing_keeps_is_told() -> None:
    result = run("@checkpoint\npipeline Main(x: Any) -> Result: x", {"x": 1})
    assert [warning["message"] for warning in result.context.meta["warnings"]] == [
        "@checkpoint: without a store the run is not kept and cannot be continued later"
    ]
