"""What spans say of events, as attributes: pure, and without the library.

Content (messages, replies, arguments, results) is in functions of its own, `…_content`: it is said only on request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from halo_lang import catalog
from halo_runtime.engine.events import (
    AgentStarted,
    InterruptAnswered,
    InterruptOpened,
    ModelRequested,
    ModelResponded,
    PolicyDecided,
    RetryScheduled,
    RunStarted,
    StageStarted,
    ToolRequested,
    ToolResponded,
)
from halo_runtime.json_types import Json, JsonObject

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"
CONTENT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

Attribute: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, Attribute]

_PROVIDERS: Final = {"google": "gcp.gemini", "gemini": "gcp.gemini"}
"""Services that the conventions have another name for than their prefix."""

_FINISH: Final = {"end": "stop", "tool": "tool_call", "refusal": "content_filter"}
"""Why a reply ended → the conventions' word, where it is another one."""

_ABOUT_PEOPLE: Final = frozenset({"ProgramFailure", "InterruptExpired"})
"""Errors whose message is a text of the program or of its values."""


def wants_content(env: Mapping[str, str]) -> bool:
    """Whether the environment asks for content in spans; `true` is the older spelling."""
    return env.get(CONTENT_VARIABLE, "").strip().lower() in ("true", "1", "span_only", "span_and_event")


# --- spans ----------------------------------------------------------------------------------------------------


def run(event: RunStarted) -> Attributes:
    """Of the span of a run, or of a part of it."""
    return {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": event.pipeline,
        "gen_ai.conversation.id": event.run_id,
        "halo.run.id": event.run_id,
        "halo.run.continued": event.continued,
    }


def stage(event: StageStarted) -> Attributes:
    """Of a stage's span."""
    return {"halo.stage.kind": event.kind, "halo.stage.line": event.line, "halo.path": event.path}


def agent(event: AgentStarted) -> Attributes:
    """Of the span of an agent's call."""
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": event.agent,
        "gen_ai.conversation.id": event.run_id,
        "halo.agent.method": event.method,
        "halo.path": event.path,
        **_model(event.model),
    }


def request(event: ModelRequested) -> Attributes:
    """Of the span of a request to a model."""
    settings = {f"gen_ai.request.{name}": value for name, value in event.settings.items()}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": event.agent,
        "gen_ai.conversation.id": event.run_id,
        "halo.path": event.path,
        "halo.attempt": event.attempt,
        **_model(event.model),
        **settings,
    }


def response(event: ModelResponded) -> Attributes:
    """Tokens that the service did not tell are left out, as is a cost that nobody knows."""
    usage = event.usage
    found: dict[str, Attribute | None] = {
        "gen_ai.response.model": event.model,
        "gen_ai.response.finish_reasons": None if event.finish is None else [_finish(event.finish)],
        "gen_ai.usage.input_tokens": usage.get("input"),
        "gen_ai.usage.output_tokens": usage.get("output"),
        "gen_ai.usage.cache_read.input_tokens": usage.get("cached"),
        "gen_ai.usage.cache_creation.input_tokens": usage.get("cache_written"),
        "gen_ai.usage.reasoning.output_tokens": usage.get("reasoning"),
        "halo.cost.usd": None if event.cost is None else float(event.cost),
    }
    return {name: value for name, value in found.items() if value is not None}


def tool(event: ToolRequested) -> Attributes:
    """Of the span of a tool's call."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": f"{event.tool}_{event.method}",
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": event.run_id,
        "halo.path": event.path,
    }


def request_model(model: str) -> str:
    """The model's name as its service knows it: without the prefix that names the service."""
    route = catalog.model_route(model)
    return model if route is None else route.model


def _model(model: str) -> Attributes:
    route = catalog.model_route(model)
    if route is None:
        return {"gen_ai.request.model": model}
    service = route.entry.name
    return {"gen_ai.provider.name": _PROVIDERS.get(service, service), "gen_ai.request.model": route.model}


def _finish(stop: str) -> str:
    return _FINISH.get(stop, stop)


# --- errors ---------------------------------------------------------------------------------------------------


def error_text(error: JsonObject, *, content: bool) -> str | None:
    """An error's message, unless it is a text of the program that nobody asked for."""
    return error["message"] if content or error["type"] not in _ABOUT_PEOPLE else None


# --- events inside spans --------------------------------------------------------------------------------------


def retry(event: RetryScheduled) -> Attributes:
    """Of a wait before another try."""
    return {"halo.attempt": event.attempt, "halo.retry.wait": event.wait_seconds, "halo.retry.reason": event.reason}


def policy(event: PolicyDecided) -> Attributes:
    """Of a decision of a rule."""
    found = {"policy": event.policy, "rule": event.rule, "point": event.point, "action": event.action}
    reason = {} if event.reason is None else {"halo.policy.reason": event.reason}
    return {**{f"halo.policy.{name}": value for name, value in found.items()}, **reason}


def question(event: InterruptOpened, *, content: bool) -> Attributes:
    """Of a question that is open."""
    interrupt = event.interrupt
    told = {"halo.interrupt.id": interrupt["id"], "halo.interrupt.kind": interrupt["kind"], "halo.path": event.path}
    return {**told, "halo.interrupt.message": interrupt["message"]} if content else told


def answer(event: InterruptAnswered, *, content: bool) -> Attributes:
    """Of a question's answer."""
    told = {"halo.interrupt.id": event.interrupt_id, "halo.path": event.path}
    return {**told, "halo.interrupt.answer": _text(event.answer)} if content else told


# --- content --------------------------------------------------------------------------------------------------


def request_content(event: ModelRequested) -> Attributes:
    """The messages, in the conventions' shape, as JSON; system prompts apart."""
    system = [_words(message["content"]) for message in event.messages if message["role"] == "system"]
    turns = [_turn(message) for message in event.messages if message["role"] != "system"]
    found = {"gen_ai.input.messages": _text(turns)}
    return {**found, "gen_ai.system_instructions": _text(system)} if system else found


def response_content(event: ModelResponded) -> Attributes:
    """The reply; nothing where a policy looks at replies, for it has not passed yet."""
    if event.reply is None:
        return {}
    parts = [*([_words(event.reply)] if event.reply else []), *map(_call, event.tool_calls)]
    message = {"role": "assistant", "parts": parts, "finish_reason": _finish(event.finish or "stop")}
    return {"gen_ai.output.messages": _text([message])}


def tool_content(event: ToolRequested) -> Attributes:
    """The arguments of a call, as JSON."""
    return {"gen_ai.tool.call.arguments": _text(event.args)}


def result_content(event: ToolResponded) -> Attributes:
    """What a call gave, as JSON."""
    return {} if event.error is not None else {"gen_ai.tool.call.result": _text(event.result)}


def _turn(message: JsonObject) -> JsonObject:
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    words = [_words(message["content"])] if message["content"] else []
    return {"role": message["role"], "parts": [*words, *map(_call, message.get("tool_calls", ()))]}


def _words(text: str) -> JsonObject:
    return {"type": "text", "content": text}


def _call(call: JsonObject) -> JsonObject:
    return {"type": "tool_call", **call}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
