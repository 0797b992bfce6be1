"""Spans of runs, as an exporter gets them: the tree, what they say, and what they never say (spec 2.8)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import halo_lang
from halo_runtime import FileRunStore, Runtime
from halo_runtime.errors import ModelError
from halo_runtime.models.base import ModelReply, ModelRequest, ToolCall, Usage
from halo_runtime.telemetry.ids import RunIds, root_context
from halo_runtime.telemetry.spans import SpanObserver
from tests.runtime.support import StubTool, runtime, stubbed

AGENT = "agent A [openai/gpt-4o-mini]\n"


class Watched:
    """A Runtime whose spans are kept."""

    def __init__(self, world: Runtime, *, content: bool = False, ids: RunIds | None = None) -> None:
        self.world = world
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(id_generator=ids, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.world.subscribe(SpanObserver(provider, content=content))

    def run(self, text: str, **inputs: Any) -> list[ReadableSpan]:
        """The spans of a run of `Main`, in the order in which they ended."""
        asyncio.run(self.world.run(halo_lang.parse(text), "Main", inputs, run_id="r"))
        return self.taken()

    def taken(self) -> list[ReadableSpan]:
        spans = list(self.exporter.get_finished_spans())
        self.exporter.clear()
        return spans


def tree(spans: list[ReadableSpan]) -> Any:
    """The spans as `[name, [children]]`, children in the order in which they started; there is one root."""
    below: dict[int | None, list[ReadableSpan]] = {}
    for span in sorted(spans, key=lambda span: span.start_time or 0):
        below.setdefault(None if span.parent is None else span.parent.span_id, []).append(span)
    known = {span.context.span_id for span in spans}
    assert all(parent is None or parent in known for parent in below)

    def shown(span: ReadableSpan) -> Any:
        children = [shown(child) for child in below.get(span.context.span_id, ())]
        return [span.name, children] if children else span.name

    (root,) = below[None]
    return shown(root)


def named(spans: list[ReadableSpan], start: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name.startswith(start)]


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def happened(span: ReadableSpan) -> list[str]:
    return [event.name for event in span.events]


# --- the tree -------------------------------------------------------------------------------------------------


def test_stages_agents_requests_and_nested_pipelines_lie_in_each_other() -> None:
    text = (
        f"{AGENT}pipeline Inner(x: Any) -> Result: x |> A.deep() |? (true)\n"
        "pipeline Main(x: Any) -> Result: x |> A.first() |> Inner(x)\n"
    )
    ask = ["invoke_agent A", ["chat gpt-4o-mini"]]
    assert tree(Watched(runtime({"A": "ok"})).run(text, x=1)) == [
        "invoke_workflow Main",
        [["|> A.first", [ask]], ["|> Inner", [["|> A.deep", [ask]], "|? (true)"]]],
    ]


def test_arms_and_items_are_children_of_their_block() -> None:
    stages = "|* { A.l(), A.r() } |? (true) |> System.Value(x) |* each(i in x) => A.e()"
    text = f"{AGENT}pipeline Main(x: Any) -> Result: x {stages}"
    spans = Watched(runtime({"A": "ok"})).run(text, x=[1, 2])
    (root, children) = tree(spans)
    assert root == "invoke_workflow Main"
    ask = [["invoke_agent A", ["chat gpt-4o-mini"]]]
    fan_out, _, _, each = children
    assert fan_out[1] == [["A.l", ask], ["A.r", ask]]
    assert each[1] == [["A.e", ask], ["A.e", ask]]


def test_an_arm_of_a_branch_is_an_agent_of_its_stage() -> None:
    text = f"{AGENT}pipeline Main(x: Any) -> Result: x |? {{ (x == 1) => A.one(), else => A.two() }}"
    (_, ((_, inside),)) = tree(Watched(runtime({"A": "ok"})).run(text, x=1))
    assert inside == [["invoke_agent A", ["chat gpt-4o-mini"]]]


def test_a_tool_loop_has_its_requests_and_calls_in_the_agents_span() -> None:
    turns = [ModelReply("", (ToolCall("1", "Sh_run", '{"command": "ls"}'),), "tool"), ModelReply("done")]

    async def answer(request: ModelRequest) -> ModelReply:
        return turns.pop(0)

    world, _ = stubbed(answer)
    world.register_tool_provider("Bash", StubTool(lambda method, args: "file"))
    text = (
        'tool Sh: Bash(allow: ["*"])\nagent A [openai/gpt-4o-mini]\n  equips Sh\n'
        "pipeline Main(x: Any) -> Result: x |> A.go(tools: auto)"
    )
    spans = Watched(world).run(text, x=1)
    (_, ((_, ((_, inside),)),)) = tree(spans)
    assert inside == ["chat gpt-4o-mini", "execute_tool Sh_run", "chat gpt-4o-mini"]
    (call,) = named(spans, "execute_tool")
    assert said(call)["gen_ai.tool.name"] == "Sh_run"
    first, _ = named(spans, "chat")
    assert said(first)["gen_ai.response.finish_reasons"] == ("tool_call",)


def test_a_stage_that_calls_a_tool_has_its_call() -> None:
    world = runtime({})
    world.register_tool_provider("Bash", StubTool(lambda method, args: "file"))
    text = 'tool Sh: Bash(allow: ["*"])\npipeline Main(x: Any) -> Result: x |> Sh.run("ls")'
    assert tree(Watched(world).run(text, x=1)) == ["invoke_workflow Main", [["|> Sh.run", ["execute_tool Sh_run"]]]]


# --- what they say --------------------------------------------------------------------------------------------


def test_a_request_says_what_the_conventions_ask_for() -> None:
    async def answer(request: ModelRequest) -> ModelReply:
        return ModelReply("ok", usage=Usage(10, 5, cached=2, reasoning=3), model_used="gpt-4o-mini-2026")

    text = "agent A [openai/gpt-4o-mini, temp: 0.5, max_tokens: 9]\npipeline Main(x: Any) -> Result: x |> A.go()"
    spans = Watched(stubbed(answer)[0]).run(text, x=1)
    (chat,) = named(spans, "chat")
    cost = said(chat).pop("halo.cost.usd")
    assert cost > 0
    assert said(chat) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": "A",
        "gen_ai.conversation.id": "r",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.response.model": "gpt-4o-mini-2026",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 3,
        "halo.cost.usd": cost,
        "halo.attempt": 1,
        "halo.outcome": "completed",
        "halo.path": "Main/0/step1/try1",
    }
    assert chat.kind is SpanKind.CLIENT
    assert chat.status.status_code is StatusCode.UNSET
    (agent,), (run,) = named(spans, "invoke_agent"), named(spans, "invoke_workflow")
    assert said(agent)["gen_ai.operation.name"] == "invoke_agent"
    assert (said(run)["gen_ai.operation.name"], said(run)["gen_ai.workflow.name"]) == ("invoke_workflow", "Main")
    assert (said(run)["halo.run.id"], said(run)["halo.outcome"]) == ("r", "completed")


@pytest.mark.parametrize(
    ("model", "provider"),
    [("anthropic/claude-x", "anthropic"), ("gemini/g", "gcp.gemini"), ("openrouter/a/b", "openrouter")],
)
def test_services_have_the_conventions_names(model: str, provider: str) -> None:
    text = f"agent A [{model}]\npipeline Main(x: Any) -> Result: x |> A.go()"
    (chat,) = named(Watched(runtime({"A": "ok"})).run(text, x=1), "chat")
    assert said(chat)["gen_ai.provider.name"] == provider
    assert said(chat)["gen_ai.request.model"] == model.partition("/")[2]
    assert "halo.cost.usd" not in said(chat) or said(chat)["halo.cost.usd"] >= 0


def test_tries_are_spans_of_their_own_and_the_wait_is_an_event_of_the_agent() -> None:
    text = f"@retry(2)\n{AGENT}pipeline Main(x: Any) -> Result: x |> A.go()"
    spans = Watched(runtime({"A": [{"error": 429, "retry_after": 1}, "ok"]})).run(text, x=1)
    first, second = named(spans, "chat")
    assert [said(chat)["halo.attempt"] for chat in (first, second)] == [1, 2]
    assert first.status.status_code is StatusCode.ERROR
    assert said(first)["error.type"] == "ModelError"
    assert second.status.status_code is StatusCode.UNSET
    (agent,) = named(spans, "invoke_agent")
    (event,) = agent.events
    assert (event.name, dict(event.attributes or {})["halo.retry.wait"]) == ("halo.retry", 1.0)
    assert agent.status.status_code is StatusCode.UNSET


def test_a_failure_is_the_status_of_all_that_it_ends() -> None:
    async def answer(request: ModelRequest) -> ModelReply:
        raise ModelError("the service is gone")

    spans = Watched(stubbed(answer)[0]).run(f"{AGENT}pipeline Main(x: Any) -> Result: x |> A.go()", x=1)
    assert {span.name: span.status.status_code for span in spans} == dict.fromkeys(
        ["chat gpt-4o-mini", "invoke_agent A", "|> A.go", "invoke_workflow Main"], StatusCode.ERROR
    )
    assert {span.status.description for span in named(spans, "invoke")} == {"the service is gone"}


def test_what_was_cancelled_is_ended_and_says_so() -> None:
    async def answer(request: ModelRequest) -> ModelReply:
        if request.method == "slow":
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        raise ModelError("no")

    text = f"{AGENT}pipeline Main(x: Any) -> Result: x |* {{ A.slow(), A.fails() }}"
    spans = Watched(stubbed(answer)[0]).run(text, x=1)
    assert Counter(said(chat)["halo.outcome"] for chat in named(spans, "chat")) == {"cancelled": 1, "failed": 1}
    assert len(named(spans, "invoke_agent")) == 2


def test_a_rule_that_blocks_is_an_event_of_the_agent() -> None:
    text = (
        "policy P: MaxLength(1)\nagent A [openai/gpt-4o-mini]\n  requires P\n"
        "pipeline Main(x: Any) -> Result: x |> A.go()"
    )
    spans = Watched(runtime({"A": "too long"}), content=True).run(text, x=1)
    (agent,), (chat,) = named(spans, "invoke_agent"), named(spans, "chat")
    assert happened(agent) == ["halo.policy"]
    assert dict(agent.events[0].attributes or {})["halo.policy.action"] == "block"
    assert said(agent)["error.type"] == "PolicyViolation"
    assert "gen_ai.output.messages" not in said(chat)  # it has not passed


def test_a_gate_that_closes_is_no_error() -> None:
    spans = Watched(runtime({})).run("pipeline Main(x: Any) -> Result: x |? (false)", x=1)
    assert {said(span)["halo.outcome"] for span in spans} == {"halted"}
    assert {span.status.status_code for span in spans} == {StatusCode.UNSET}


# --- pauses ---------------------------------------------------------------------------------------------------

PAUSING = (
    f"{AGENT}pipeline Inner(x: Any) -> Result: x |> A.before()\n"
    'pipeline Main(x: Any) -> Result: x |> Inner(x) |> System.Value(x) |! yield("go on?") |> A.after()'
)


@pytest.mark.parametrize("ids", [None, RunIds()], ids=["random ids", "ids of the run"])
def test_a_run_that_goes_on_is_a_trace_of_its_own_that_links_to_the_first(ids: RunIds | None) -> None:
    watched = Watched(runtime({"A": "ok"}), ids=ids)
    first = watched.run(PAUSING, x=1)
    assert len(named(first, "chat")) == 1
    assert {said(span)["halo.outcome"] for span in named(first, "|! yield")} == {"paused"}
    asyncio.run(watched.world.signal("r", "yes"))
    second = watched.taken()
    assert tree(second) == ["invoke_workflow Main", [["|> A.after", [["invoke_agent A", ["chat gpt-4o-mini"]]]]]]
    (before,), (after,) = named(first, "invoke_workflow"), named(second, "invoke_workflow")
    assert after.context.trace_id != before.context.trace_id
    assert [(link.context.trace_id, link.context.span_id) for link in after.links] == [
        (before.context.trace_id, before.context.span_id)
    ]
    assert happened(before) == ["halo.interrupt.opened"]
    assert happened(after) == ["halo.interrupt.opened", "halo.interrupt.answered"]
    assert (said(before)["halo.run.continued"], said(after)["halo.run.continued"]) == (False, True)


def test_another_process_finds_the_first_part_by_the_runs_id() -> None:
    one, other = Watched(runtime({"A": "ok"}), ids=RunIds()), Watched(runtime({"A": "ok"}), ids=RunIds())
    (before,) = named(one.run(PAUSING, x=1), "invoke_workflow")
    other.run(PAUSING, x=1)
    asyncio.run(other.world.signal("r", "yes"))
    (after,) = named(other.taken(), "invoke_workflow")
    assert after.links[0].context.span_id == before.context.span_id
    assert after.links[0].context.trace_id == before.context.trace_id


def test_a_second_pause_shows_where_the_run_waits_now() -> None:
    text = 'pipeline Main(x: Any) -> Result: x |! yield("a?") |! yield("b?")'
    watched = Watched(runtime({}))
    watched.run(text, x=1)
    asyncio.run(watched.world.signal("r", "yes"))
    spans = watched.taken()
    assert [said(span)["halo.outcome"] for span in named(spans, "|! yield")] == ["paused"]


async def test_a_fork_is_a_run_of_its_own_with_spans_of_what_runs_anew(tmp_path: Path) -> None:
    text = f"{AGENT}pipeline Main(x: Any) -> Result: x |> A.before() |> A.after()"
    watched = Watched(runtime({"A": "ok"}, store=FileRunStore(tmp_path)), ids=RunIds())
    await watched.world.run(halo_lang.parse(text), "Main", {"x": 1}, run_id="r", keep=True)
    watched.taken()
    forked = await watched.world.fork(halo_lang.parse(text.replace("A.after()", 'A.after("Other.")')), "r")
    spans = watched.taken()
    assert tree(spans) == ["invoke_workflow Main", [["|> A.after", [["invoke_agent A", ["chat gpt-4o-mini"]]]]]]
    (root,) = named(spans, "invoke_workflow")
    assert not root.links
    assert root.context.span_id == root_context(forked.run_id).span_id


# --- content and secrets --------------------------------------------------------------------------------------

TALK = (
    'tool Sh: Bash(allow: ["*"])\nagent A [openai/gpt-4o-mini]\n  system "system words"\n  equips Sh\n'
    'pipeline Main(x: Any) -> Result: x |> A.go("literal words", tools: auto) |! yield("asked words?")'
)


def talk(*, content: bool, secret: str = "input words") -> str:
    """All that the spans of a conversation hold, as text."""
    turns = [
        ModelReply("", (ToolCall("1", "Sh_run", json.dumps({"command": f"echo {secret}"})),), "tool"),
        ModelReply(f"reply words {secret}"),
    ]

    async def answer(request: ModelRequest) -> ModelReply:
        return turns.pop(0)

    world, _ = stubbed(answer, env={"MY_API_KEY": "sk-very-secret"})
    world.register_tool_provider("Bash", StubTool(lambda method, args: f"result words {secret}"))
    spans = Watched(world, content=content).run(TALK, x=secret)
    assert len(named(spans, "chat")) == 2
    return "\n".join(span.to_json() for span in spans)


def test_content_is_not_in_spans_unless_asked_for() -> None:
    assert "words" not in talk(content=False)


def test_content_is_there_in_the_conventions_shape_where_it_is_asked_for() -> None:
    text = talk(content=True)
    for words in ("system words", "literal words", "input words", "reply words", "result words", "asked words?"):
        assert words in text


@pytest.mark.parametrize("content", [False, True])
def test_no_secret_is_in_any_attribute(content: bool) -> None:
    assert "sk-very-secret" not in talk(content=content, secret="sk-very-secret")


def test_messages_have_the_shape_of_the_conventions() -> None:
    text = f'{AGENT}  system "be kind"\npipeline Main(x: Any) -> Result: x |> A.go()'
    (chat,) = named(Watched(runtime({"A": "ok"}), content=True).run(text, x="hi"), "chat")
    found = {
        name: json.loads(value) for name, value in said(chat).items() if isinstance(value, str) and value[0] in "[{"
    }
    assert found == {
        "gen_ai.system_instructions": [{"type": "text", "content": "be kind"}],
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Task: go\n\nInput:\nhi"}]}],
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": [{"type": "text", "content": "ok"}], "finish_reason": "stop"}
        ],
    }


@pytest.mark.parametrize(("value", "wanted"), [("true", True), ("SPAN_ONLY", True), ("EVENT_ONLY", False), ("", False)])
def test_content_is_asked_for_by_the_conventions_variable(
    value: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    exporter, world = InMemorySpanExporter(), runtime({"A": "ok"})
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    world.subscribe(SpanObserver(provider))
    asyncio.run(world.run(halo_lang.parse(f"{AGENT}pipeline Main(x: Any) -> Result: x |> A.go()"), "Main", {"x": 1}))
    (chat,) = named(list(exporter.get_finished_spans()), "chat")
    assert ("gen_ai.input.messages" in said(chat)) is wanted


def test_a_failure_that_the_program_words_keeps_its_words_to_itself() -> None:
    text = 'pipeline Main(x: Any) -> Result: x |> System.Fail("private {{x}}")'
    for content, description in ((False, None), (True, "private 1")):
        (root,) = named(Watched(runtime({}), content=content).run(text, x=1), "invoke_workflow")
        assert (said(root)["error.type"], root.status.description) == ("ProgramFailure", description)
