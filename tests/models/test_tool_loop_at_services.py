"""What holds for tools at every service: names, schemas, orphans, unusable answers (rows in README.md beside this)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import halo_lang
from halo_runtime import RunResult, Runtime
from halo_runtime.errors import ModelError
from halo_runtime.models.base import Message, ModelRequest, ToolSpec
from halo_runtime.models.registry import ModelRegistry
from halo_runtime.store.files import FileRunStore
from tests.fakes import anthropic_server, gemini_server, ollama_server, openai_server
from tests.fakes.anthropic_server import FakeAnthropic
from tests.fakes.gemini_server import FakeGemini
from tests.fakes.ollama_server import FakeOllama
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.wire import Answer, FakeService
from tests.runtime.support import StubTool

Asked = Sequence[tuple[str, dict[str, Any]]]


class Service(NamedTuple):
    """A service and its fake: where that is, how it asks for functions (`streamed` or not), what it was offered."""

    model: str
    fake: Callable[[], FakeService]
    env: Callable[[Any], dict[str, str]]
    ask: Callable[[Any, Asked, bool], None]
    offered: Callable[[dict[str, Any]], list[dict[str, Any]]]


def _openai_asks(server: FakeOpenAI, asked: Asked, streamed: bool) -> None:
    wire = [(f"call_{number}", name, json.dumps(args)) for number, (name, args) in enumerate(asked)]
    server.turn(openai_server.calls(*wire))


def _anthropic_asks(server: FakeAnthropic, asked: Asked, streamed: bool) -> None:
    blocks = [anthropic_server.tool_use(f"toolu_{number}", name, args) for number, (name, args) in enumerate(asked)]
    server.answer(anthropic_server.message(*blocks))


def _gemini_asks(server: FakeGemini, asked: Asked, streamed: bool) -> None:
    server.turn(gemini_server.turn([gemini_server.call(name, args) for name, args in asked]))


def _ollama_asks(server: FakeOllama, asked: Asked, streamed: bool) -> None:
    turn = ollama_server.calls(*asked)
    server.answer(turn.streamed if streamed else turn.whole)


SERVICES = {
    "openai": Service(
        "openai/gpt-4o-mini",
        FakeOpenAI,
        lambda server: {"OPENAI_API_KEY": openai_server.KEY, "OPENAI_BASE_URL": server.url},
        _openai_asks,
        lambda body: [tool["function"] for tool in body["tools"]],
    ),
    "anthropic": Service(
        "anthropic/claude-sonnet-5",
        FakeAnthropic,
        lambda server: server.env,
        _anthropic_asks,
        lambda body: body["tools"],
    ),
    "gemini": Service(
        "google/gemini-2.5-flash",
        FakeGemini,
        lambda server: {"GEMINI_API_KEY": gemini_server.KEY, "GOOGLE_GEMINI_BASE_URL": server.address},
        _gemini_asks,
        lambda body: body["tools"][0]["functionDeclarations"],
    ),
    "ollama": Service(
        "ollama/llama3:8b",
        FakeOllama,
        lambda server: {"OLLAMA_HOST": server.host},
        _ollama_asks,
        lambda body: [tool["function"] for tool in body["tools"]],
    ),
}
each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())


def request(service: Service, *messages: Message, tools: Sequence[ToolSpec]) -> ModelRequest:
    return ModelRequest(service.model, "Bot", "answer", (Message("user", "hi"), *messages), tools=tuple(tools))


# --- names and schemas ------------------------------------------------------------------------------------------------

NAMES = ("a.b/c", "a_b_c", "a b c", "x" * 100, "x" * 99 + "y", "1st", "été", "plain")
ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}


@each_service
@pytest.mark.parametrize("streamed", [False, True])
async def test_names_of_every_kind_are_mapped_there_and_back(service: Service, streamed: bool) -> None:
    tools = [ToolSpec(name, "A function.", ANYTHING) for name in NAMES]
    async with service.fake() as server:
        registry = ModelRegistry(service.env(server))
        provider = registry.provider(service.model)
        hear = [].append if streamed else None
        await provider.complete(request(service, tools=tools), hear)
        wire = [tool["name"] for tool in service.offered(server.requests[0].body)]
        assert len(set(wire)) == len(NAMES)
        service.ask(server, [(name, {}) for name in wire], streamed)
        reply = await provider.complete(request(service, tools=tools), hear)
        assert [call.name for call in reply.tool_calls] == list(NAMES)
        turn = Message("assistant", reply.text, reply.tool_calls, opaque=reply.opaque)
        results = [Message("tool", call.name, tool_call_id=call.id) for call in reply.tool_calls]
        await provider.complete(request(service, turn, *results, tools=tools), hear)
        await registry.close()


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
ZOO: dict[str, dict[str, Any]] = {
    "optional": {"a": {"type": "string"}, "b": {"type": "integer", "default": 3}},
    "free-form": {"a": {"type": "object"}, "b": {"type": "object", "additionalProperties": {"type": "number"}}},
    "anything": {"a": {}},
    "reference": {"a": {"$ref": "#/$defs/Node"}},
    "constant": {"a": {"const": "x"}, "b": {"const": 3}},
    "several types": {"a": {"type": ["string", "null"]}, "b": {"type": ["integer", "string"]}},
    "no items": {"a": {"type": "array"}, "b": {"type": "array", "items": {}}},
    "choices": {"a": {"enum": ["x", "y"]}, "b": {"type": "integer", "enum": [1, 2]}, "c": {"enum": ["x", None, 1]}},
    "nested lists": {"a": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}},
    "alternatives": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "b": {"oneOf": [{"type": "number"}]}},
    "limits": {"a": {"type": "string", "minLength": 1, "pattern": "^a", "format": "date"}, "b": {"maximum": 9}},
    "none": {},
}


@each_service
@pytest.mark.parametrize("properties", ZOO.values(), ids=ZOO.keys())
@pytest.mark.parametrize("required", [False, True])
async def test_every_schema_of_arguments_is_taken(service: Service, properties: dict[str, Any], required: bool) -> None:
    schema = {"type": "object", "properties": properties, "$defs": {"Node": NODE}, "additionalProperties": False}
    schema["required"] = sorted(properties) if required else []
    async with service.fake() as server:
        registry = ModelRegistry(service.env(server))
        provider = registry.provider(service.model)
        await provider.complete(request(service, tools=[ToolSpec("f", "A function.", schema)]))
        await registry.close()
    body = server.requests[0].body
    [tool] = service.offered(body)
    assert not tool.get("strict")  # strict mode would refuse optional and free-form arguments
    assert not body.keys() & {"tool_choice", "toolConfig", "parallel_tool_calls"}  # nothing is forced or forbidden


# --- programs ---------------------------------------------------------------------------------------------------------

PROGRAM = """\
store Box: KV("box.db")
agent Bot [MODEL]
  equips Box
@checkpoint
pipeline Main(x: Any) -> Any: x |> Bot.go(tools: [Box])
"""


async def play(service: Service, server: Any, tool: Any, root: Path, asked: Asked) -> tuple[Runtime, RunResult]:
    """Run the program at a service that first asks for these functions."""
    service.ask(server, asked, True)
    world = world_of(service, server, tool, root)
    return world, await world.run(program(service), "Main", {"x": 1}, run_id="r")


def program(service: Service) -> halo_lang.Program:
    return halo_lang.parse(PROGRAM.replace("MODEL", service.model))


def world_of(service: Service, server: Any, tool: Any, root: Path) -> Runtime:
    world = Runtime(env=service.env(server), store=FileRunStore(root))
    world.register_tool_provider("KV", StubTool(tool))
    return world


@each_service
async def test_errors_and_empty_results_are_answers_that_every_service_takes(service: Service, tmp_path: Path) -> None:
    asked = [("Box_fly", {}), ("Box_get", {}), ("Box_get", {"key": "k"}), ("Box_get", {"key": "k"})]
    async with service.fake() as server:
        world, result = await play(service, server, lambda method, args: "", tmp_path, asked)
        await world.close()
    assert result.raise_for_status().output == "ok"
    lines = result.context.meta["calls"][0]["tools"]
    assert [line["name"] for line in lines] == [name for name, _ in asked]
    assert ["error" in line for line in lines] == [True, True, False, False]
    assert json.dumps(server.requests[-1].body).count("(no output)") == 2


@each_service
async def test_a_run_that_was_stopped_inside_its_tools_goes_on_with_a_request_that_is_valid(
    service: Service, tmp_path: Path
) -> None:
    begun = asyncio.Event()

    async def hangs(method: str, args: dict[str, Any]) -> str:
        if method == "get":
            return "value"
        begun.set()
        await asyncio.Event().wait()
        return "never"

    asked = [("Box_get", {"key": "a"}), ("Box_incr", {"key": "b"}), ("Box_incr", {"key": "c"})]
    async with service.fake() as server:
        service.ask(server, asked, True)
        world = world_of(service, server, hangs, tmp_path)
        work = asyncio.ensure_future(world.run(program(service), "Main", {"x": 1}, run_id="r"))
        await begun.wait()
        assert world.stop("r")
        assert (await work).status == "interrupted"
        await world.close()
        again = world_of(service, server, lambda method, args: "never", tmp_path)
        paused = await again.resume("r")
        assert [question.kind for question in paused.interrupts] == ["in_doubt", "in_doubt"]
        first, second = paused.interrupts
        await again.signal("r", "fail", interrupt=second.id)
        result = await again.signal("r", {"skip": 7}, interrupt=first.id)
        await again.close()
    assert result.raise_for_status().output == "ok"
    assert len(server.requests) == 2
    *_, given, skipped, failed = result.context.meta["calls"][0]["messages"]
    assert [given["content"], skipped["content"]] == ["value", "7"]
    assert failed["content"].startswith("Error: Box.incr had begun when the run broke off")


@each_service
async def test_when_an_agents_time_is_over_its_request_is_closed_at_the_service(
    service: Service, tmp_path: Path
) -> None:
    async with service.fake() as server:
        server.answer(Answer(hang=True))
        world = world_of(service, server, lambda method, args: "never", tmp_path)
        timed = halo_lang.parse(PROGRAM.replace("MODEL", service.model).replace("agent", "@timeout(200ms)\nagent"))
        result = await world.run(timed, "Main", {"x": 1})
        await asyncio.wait_for(server.left.wait(), 5)
        await world.close()
    assert type(result.error).__name__ == "TimeoutExceeded"


# --- answers that cannot be used --------------------------------------------------------------------------------------


async def failure_of(service: Service, *answers: Answer) -> ModelError:
    async with service.fake() as server:
        server.answer(*answers)
        registry = ModelRegistry(service.env(server))
        with pytest.raises(ModelError) as caught:
            await registry.provider(service.model).complete(
                request(service, tools=[ToolSpec("f", "A function.", ANYTHING)])
            )
        await registry.close()
    return caught.value


def _gemini(parts: list[dict[str, Any]] | None, finish: str) -> Answer:
    return Answer(body=json.dumps(gemini_server.turn(parts, finish)).encode())


@pytest.mark.parametrize(
    ("service", "answer", "code", "retryable"),
    [
        ("openai", openai_server.calls(("c", "f", '{"path": "/a'), finish="length"), "truncated_tool_call", False),
        ("openai", openai_server.calls(("c", "f", ""), finish="length"), "truncated_tool_call", False),
        ("openai", openai_server.completion("", "length"), "output_limit", False),
        ("openai", openai_server.completion(None), "empty_response", True),
        ("openai", openai_server.completion(""), "empty_response", True),
        (
            "openai",
            openai_server.refusal(400, "maximum context length is 9", code="context_length_exceeded"),
            "context_overflow",
            False,
        ),
        (
            "anthropic",
            anthropic_server.message(anthropic_server.tool_use("c", "f", {}), stop="max_tokens"),
            "truncated_tool_call",
            False,
        ),
        ("anthropic", anthropic_server.message(stop="max_tokens"), "output_limit", False),
        ("anthropic", anthropic_server.message(stop="model_context_window_exceeded"), "context_overflow", False),
        ("anthropic", anthropic_server.message(), "empty_response", True),
        ("gemini", _gemini(None, "MAX_TOKENS"), "output_limit", False),
        ("gemini", _gemini(None, "STOP"), "empty_response", True),
        ("gemini", _gemini([], "STOP"), "empty_response", True),
        ("gemini", _gemini(None, "MALFORMED_FUNCTION_CALL"), "malformed_response", True),
        ("gemini", _gemini(None, "SOMETHING_NEW"), "empty_response", True),
        ("ollama", ollama_server.text("").whole, "empty_response", True),
        ("ollama", ollama_server.text("", reason="length").whole, "output_limit", False),
    ],
)
async def test_an_answer_that_cannot_be_used_says_of_what_kind_it_is(
    service: str, answer: Answer, code: str, retryable: bool
) -> None:
    error = await failure_of(SERVICES[service], answer)
    assert (error.code, error.retryable) == (code, retryable)


async def test_whole_calls_before_the_limit_was_reached_are_made() -> None:
    service = SERVICES["openai"]
    async with service.fake() as server:
        server.answer(openai_server.calls(("c", "f", "{}"), finish="length"))
        registry = ModelRegistry(service.env(server))
        reply = await registry.provider(service.model).complete(
            request(service, tools=[ToolSpec("f", "A function.", ANYTHING)])
        )
        await registry.close()
    assert [call.name for call in reply.tool_calls] == ["f"]
