"""What chat completions refuse at OpenAI, OpenRouter and Together: request body in, the refusal it would get out.

Written from the services' documentation and not from our client, so that the two check each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

Service = Literal["openai", "openrouter", "together"]

OPENAI_FIELDS = {
    "model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "tools", "tool_choice",
    "response_format", "reasoning_effort", "stop", "seed", "parallel_tool_calls", "stream", "stream_options",
}  # fmt: skip
FIELDS: dict[Service, set[str]] = {
    "openai": OPENAI_FIELDS,
    "openrouter": OPENAI_FIELDS | {
        "models", "provider", "plugins", "reasoning", "top_k", "min_p", "top_a", "repetition_penalty", "session_id",
        "user",
    },
    "together": {
        "model", "messages", "temperature", "top_p", "max_tokens", "top_k", "min_p", "repetition_penalty", "stop",
        "seed", "response_format", "tools", "tool_choice", "reasoning", "reasoning_effort", "stream", "logprobs",
        "context_length_exceeded_behavior", "safety_model",
    },
}  # fmt: skip
SCHEMA_FIELDS: dict[Service, set[str]] = {
    "openai": {"name", "schema", "strict", "description"},
    "openrouter": {"name", "schema", "strict", "description"},
    "together": {"name", "schema"},
}
ROUTING = {
    "order", "allow_fallbacks", "require_parameters", "data_collection", "only", "ignore", "sort", "max_price",
}  # fmt: skip
MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "developer": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "refusal"},
    "tool": {"role", "content", "tool_call_id"},
}
REASONING_FIELDS = {"reasoning", "reasoning_details"}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
REASONING = re.compile(r"o\d|gpt-[5-9]")
RESPONSES_ONLY = re.compile(r"gpt-6-astra|gpt-6\.")
NEVER_IN_CHAT = re.compile(r"(o\d|gpt-[56][\d.]*)(-codex|-pro|-\w+-pro|-deep-research)")
NEEDS_EFFORT_NONE = re.compile(r"gpt-5\.6|gpt-6-(sol|luna)")


class Refused(Exception):
    """A 400 with this message, and the parameter and code that the service would name."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, *, status: int = 400) -> None:
        super().__init__(message)
        self.param, self.code, self.status = param, code, status


def check(body: Any, service: Service = "openai") -> None:
    """Raise Refused for a request that the service would not take."""
    if not isinstance(body, dict):
        raise Refused("the body is no object")
    if unknown := body.keys() - FIELDS[service]:
        raise Refused(f"Unrecognized request arguments supplied: {sorted(unknown)}")
    require(isinstance(body.get("model"), str) and body["model"], "you must provide a model parameter", "model")
    _check_messages(body.get("messages"), REASONING_FIELDS if service == "openrouter" else set())
    for rule in (_check_sampling, _check_max_tokens, _check_tools, _check_tool_route, _check_stream, _check_routing):
        rule(body)
    _check_response_format(body, SCHEMA_FIELDS[service])


def require(condition: object, message: str, param: str | None = None, code: str | None = None) -> None:
    """Raise Refused where a condition does not hold."""
    if not condition:
        raise Refused(message, param, code)


# --- messages ---------------------------------------------------------------------------------------------------------


def _check_messages(messages: Any, more: set[str]) -> None:
    require(isinstance(messages, list) and messages, "messages: expected a non-empty array", "messages")
    awaited: list[str] = []
    for number, message in enumerate(messages):
        _check_message(message, f"messages[{number}]", more)
        awaited = _answered(message, awaited, f"messages[{number}]")
    require(not awaited, f"tool_call_ids did not have response messages: {awaited}", "messages")


def _check_message(message: Any, where: str, more: set[str]) -> None:
    role = message.get("role")
    require(role in MESSAGE_FIELDS, f"{where}.role: invalid value {role!r}", where)
    fields = MESSAGE_FIELDS[role] | (more if role == "assistant" else set())
    require(message.keys() <= fields, f"{where}: unknown fields {sorted(message.keys() - fields)}", where)
    content, calls = message.get("content"), message.get("tool_calls")
    require(isinstance(content, str) or (content is None and calls), f"{where}.content: expected a string", where)
    require(calls is None or calls, f"{where}.tool_calls: expected a non-empty array", where)
    for call in calls or ():
        _check_call(call, where)


def _check_call(call: Any, where: str) -> None:
    require(call.keys() == {"id", "type", "function"} and call["type"] == "function", f"{where}: bad tool call", where)
    function = call["function"]
    require(function.keys() == {"name", "arguments"}, f"{where}: bad function of a tool call", where)
    require(NAME.fullmatch(function["name"]), f"{where}: function name {function['name']!r} is illegal", where)
    require(isinstance(function["arguments"], str), f"{where}: arguments are no string", where)


def _answered(message: dict[str, Any], awaited: list[str], where: str) -> list[str]:
    """The ids of calls that still wait for their answer after this message."""
    if message["role"] == "tool":
        require(message.get("tool_call_id") in awaited, f"{where}: 'tool' must follow 'tool_calls' with its id", where)
        return [id_ for id_ in awaited if id_ != message["tool_call_id"]]
    require(not awaited, f"tool_call_ids did not have response messages: {awaited}", where)
    ids = [call["id"] for call in message.get("tool_calls") or ()]
    require(len(set(ids)) == len(ids), f"{where}: the same tool call id twice", where)
    return ids


# --- settings ---------------------------------------------------------------------------------------------------------


def _check_sampling(body: dict[str, Any]) -> None:
    for name, most in (("temperature", 2), ("top_p", 1)):
        if name not in body:
            continue
        value = body[name]
        require(type(value) in (int, float) and 0 <= value <= most, f"{name} must be from 0 to {most}", name)
        if REASONING.match(body["model"]) and value != 1:
            raise Refused(f"Unsupported value: '{name}'. Only the default (1) is supported.", name, "unsupported_value")


def _check_max_tokens(body: dict[str, Any]) -> None:
    if "max_tokens" in body and REASONING.match(body["model"]):
        raise Refused("Unsupported parameter: 'max_tokens'.", "max_tokens", "unsupported_parameter")
    for name in ("max_tokens", "max_completion_tokens"):
        value = body.get(name, 1)
        require(type(value) is int and value >= 1, f"{name} must be at least 1", name)
    require(not {"max_tokens", "max_completion_tokens"} <= body.keys(), "both token limits", "max_tokens")


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools", [{}])
    require(isinstance(tools, list) and 1 <= len(tools) <= 128, "tools: from 1 to 128", "tools")
    names = [_tool_name(tool) for tool in body.get("tools", ())]
    require(len(set(names)) == len(names), "tools: the same name twice", "tools")


def _tool_name(tool: Any) -> str:
    require(tool.keys() == {"type", "function"} and tool["type"] == "function", "tools: bad tool", "tools")
    function = tool["function"]
    allowed = {"name", "description", "parameters", "strict"}
    require(function.keys() <= allowed, "tools: unknown field of a function", "tools")
    require(NAME.fullmatch(function.get("name", "")), f"tools: illegal name {function.get('name')!r}", "tools")
    parameters = function.get("parameters", {"type": "object"})
    require(parameters.get("type") == "object", "parameters: 'type' must be 'object'", "tools",
             "invalid_function_parameters")  # fmt: skip
    if function.get("strict"):
        check_strict(parameters, "invalid_function_parameters")
    return function["name"]


def _check_tool_route(body: dict[str, Any]) -> None:
    model = body["model"]
    if NEVER_IN_CHAT.match(model):
        raise Refused(
            "This model is only supported in v1/responses and not in v1/chat/completions.", "model", status=404
        )
    if "tools" not in body:
        return
    advice = f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. Please use "
    advice += "/v1/responses instead."
    require(not RESPONSES_ONLY.match(model), advice, "tools")
    effort = body.get("reasoning_effort")
    require(not NEEDS_EFFORT_NONE.match(model) or effort == "none", advice, "reasoning_effort")


def _check_stream(body: dict[str, Any]) -> None:
    require(body.get("stream", True) in (True, False), "stream: expected a boolean", "stream")
    options = body.get("stream_options", {})
    require(options.keys() <= {"include_usage"}, "stream_options: unknown field", "stream_options")
    require("stream_options" not in body or body.get("stream"), "stream_options: only with stream", "stream_options")


def _check_routing(body: dict[str, Any]) -> None:
    routing = body.get("provider", {})
    require(routing.keys() <= ROUTING, f"provider: unknown fields {sorted(routing.keys() - ROUTING)}", "provider")


def _check_response_format(body: dict[str, Any], fields: set[str]) -> None:
    form = body.get("response_format")
    if form is None:
        return
    require(form.keys() == {"type", "json_schema"} and form["type"] == "json_schema", "bad response_format")
    described = form["json_schema"]
    require(described.keys() <= fields, "bad json_schema", "response_format")
    require(NAME.fullmatch(described.get("name", "")), "json_schema.name is illegal", "response_format")
    if described.get("strict"):
        check_strict(described["schema"], "invalid_json_schema")


def check_strict(schema: dict[str, Any], code: str, param: str = "response_format") -> None:
    """Raise Refused for a schema that strict mode does not take."""
    require(schema.get("type") == "object", "strict: the root must be an object", param, code)
    for part in _schemas(schema):
        typed = part.keys() & {"type", "enum", "const", "anyOf", "$ref"}
        require(typed, f"strict: schema must have a 'type' key: {json.dumps(part)}", param, code)
        if part.get("type") != "object":
            continue
        require(part.get("additionalProperties") is False, "strict: 'additionalProperties' must be false", param, code)
        complete = sorted(part.get("required", ())) == sorted(part.get("properties", {}))
        require(complete, f"strict: 'required' must list every key of {json.dumps(part)}", param, code)


def _schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all within it; what stands under other keywords is none."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    for part in inner + ([schema["items"]] if "items" in schema else []):
        yield from _schemas(part)
