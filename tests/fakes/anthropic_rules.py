"""What Anthropic's messages API refuses, as one function: request in, the refusal it would get out.

Written from the service's documentation and not from our client, so that the two check each other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

FIELDS = {
    "model", "max_tokens", "messages", "system", "temperature", "top_p", "top_k", "stop_sequences", "tools",
    "tool_choice", "output_config", "metadata", "stream", "thinking", "service_tier",
}  # fmt: skip
SAMPLING = {"temperature", "top_p", "top_k"}
BLOCKS = {
    "text": ({"type", "text"}, {"citations", "cache_control"}),
    "tool_use": ({"type", "id", "name", "input"}, {"caller", "cache_control"}),
    "tool_result": ({"type", "tool_use_id"}, {"content", "is_error", "cache_control"}),
    "thinking": ({"type", "thinking", "signature"}, set[str]()),
    "redacted_thinking": ({"type", "data"}, set[str]()),
}
BY_ROLE = {"user": {"text", "tool_result"}, "assistant": {"text", "tool_use", "thinking", "redacted_thinking"}}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]+")
NO_SAMPLING = re.compile(r"claude-(fable|mythos)|claude-opus-4-[78]|claude-(opus|sonnet|haiku)-5")
ONE_SAMPLING = re.compile(r"claude-(opus|sonnet|haiku)-4-[56]|claude-opus-4-1")
NO_FORCED_TOOL = re.compile(r"claude-(opus|sonnet)-5-5|claude-(fable|mythos)-5-[12]")
NO_PREFILL = re.compile(r"claude-opus-4-[678]|claude-(fable|mythos)|claude-(opus|sonnet|haiku)-5")
STRUCTURED = re.compile(r"claude-(opus|sonnet|haiku)-(4-[5-9]|5)|claude-(fable|mythos)")
SCHEMA_WORDS = {
    "$defs", "$ref", "type", "anyOf", "allOf", "enum", "const", "description", "title", "properties", "required",
    "additionalProperties", "items", "minItems", "format", "default",
}  # fmt: skip
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}


class Invalid(Exception):
    """A 400 with this message."""


def check(body: Any, version: str = "2023-06-01") -> None:
    """Raise Invalid for a request that the service would not take in this version of its API."""
    _require(isinstance(body, dict), "the body is no object")
    for name in body.keys() - (FIELDS if version == "2023-06-01" else FIELDS - SAMPLING):
        raise Invalid(f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        _require(name in body, f"{name}: Field required")
    _require(type(body["max_tokens"]) is int and body["max_tokens"] >= 1, "max_tokens: must be at least 1")
    system = body.get("system", "x")
    _require(isinstance(system, str) and system.strip(), "system: text content blocks must be non-empty")
    for rule in (_check_sampling, _check_tools, _check_output_config, _check_messages):
        rule(body)


def seal(thinking: str, system: Any, tools: Any, messages: Any) -> str:
    """A signature that is bound to all that came before its block."""
    bound = json.dumps([thinking, system, tools, messages], sort_keys=True)
    return hashlib.sha256(bound.encode()).hexdigest()


def _require(condition: object, message: str) -> None:
    if not condition:
        raise Invalid(message)


# --- settings ---------------------------------------------------------------------------------------------------------


def _check_sampling(body: Mapping[str, Any]) -> None:
    given = [name for name in ("temperature", "top_p") if name in body]
    for name in given:
        _require(not NO_SAMPLING.match(body["model"]), f"`{name}` is deprecated for this model.")
        value = body[name]
        _require(type(value) in (int, float) and 0 <= value <= 1, f"{name}: range: 0..1")
    both = len(given) == 2 and ONE_SAMPLING.match(body["model"])
    _require(not both, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.")


def _check_tools(body: Mapping[str, Any]) -> None:
    names = [_tool_name(tool) for tool in body.get("tools", ())]
    _require(len(set(names)) == len(names), "tools: Tool names must be unique.")
    choice = body.get("tool_choice", {"type": "auto"})["type"]
    forced = choice in ("any", "tool")
    _require(not forced or not NO_FORCED_TOOL.match(body["model"]), "tool_choice: not compatible with this model")
    _require(choice in ("auto", "none") or names, "tool_choice: tools must be given")


def _tool_name(tool: Any) -> str:
    _require(tool.keys() <= {"name", "description", "input_schema", "strict", "type"}, "tools: Extra inputs")
    _require(NAME.fullmatch(tool.get("name", "")), f"tools: name {tool.get('name')!r} should match {NAME.pattern}")
    schema = tool.get("input_schema")
    _require(isinstance(schema, dict) and schema.get("type") == "object", "tools: input_schema.type: Field required")
    _require(
        not schema.keys() & {"oneOf", "anyOf", "allOf"},
        "tools: input_schema does not support oneOf, allOf, or anyOf at the top level",
    )
    return tool["name"]


def _check_output_config(body: Mapping[str, Any]) -> None:
    config = body.get("output_config")
    if config is None:
        return
    _require(STRUCTURED.match(body["model"]), "output_config: this model is not supported")
    _require(config.keys() <= {"effort", "format"}, "output_config: Extra inputs are not permitted")
    form = config.get("format", {"type": "json_schema", "schema": {"type": "null"}})
    _require(form.keys() == {"type", "schema"} and form["type"] == "json_schema", "output_config.format: bad")
    for part in _schemas(form["schema"]):
        _check_schema(part)


def _check_schema(part: Any) -> None:
    _require(part, "output_config.format.schema: a schema must not be empty")
    _require(part.keys() <= SCHEMA_WORDS, f"output_config.format.schema: not supported: {part.keys() - SCHEMA_WORDS}")
    _require(part.keys() & {"type", "anyOf", "allOf", "enum", "const", "$ref"}, "schema: a schema must have a type")
    _require(isinstance(part.get("type", ""), str), "schema: type must be one type")
    closed = part.get("type") != "object" or part.get("additionalProperties") is False
    _require(closed, "schema: For 'object' type, 'additionalProperties' must be explicitly set to false")
    _require(part.get("format", "date") in FORMATS, f"schema: format {part.get('format')} is not supported")
    _require(part.get("minItems", 0) in (0, 1), "schema: minItems other than 0 and 1 are not supported")
    _require(part.get("type") != "array" or "items" in part, "schema: arrays need items")


def _schemas(part: Any) -> Iterator[Any]:
    yield part
    for name in ("properties", "$defs"):
        for item in part.get(name, {}).values():
            yield from _schemas(item)
    for item in (*part.get("anyOf", ()), *part.get("allOf", ()), *([part["items"]] if "items" in part else [])):
        yield from _schemas(item)


# --- messages ---------------------------------------------------------------------------------------------------------


def _check_messages(body: Mapping[str, Any]) -> None:
    messages = body["messages"]
    _require(isinstance(messages, list) and messages, "messages: at least one message is required")
    _require(messages[0].get("role") == "user", 'messages: first message must use the "user" role')
    awaited: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        blocks = _blocks(message, where)
        _check_results(blocks, awaited, where)
        awaited = [block["id"] for block in blocks if block["type"] == "tool_use"]
        _require(not seen & set(awaited), f"{where}: `tool_use` ids must be unique")
        _require(len(set(awaited)) == len(awaited), f"{where}: `tool_use` ids must be unique")
        seen |= set(awaited)
        _check_seals(blocks, body, messages[:number], where)
    missing = f"`tool_use` ids were found without `tool_result` blocks immediately after: {awaited}"
    _require(not awaited, missing)
    _check_prefill(body["model"], messages[-1])


def _blocks(message: Any, where: str) -> list[dict[str, Any]]:
    _require(message.keys() == {"role", "content"}, f"{where}: Extra inputs are not permitted")
    allowed = BY_ROLE.get(message["role"])
    _require(allowed, f"{where}.role: Input should be 'user' or 'assistant'")
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    _require(blocks, f"{where}: all messages must have non-empty content")
    for number, block in enumerate(blocks):
        _require(block["type"] in allowed, f"{where}.content.{number}: {block['type']} is not permitted here")
        _check_block(block, f"{where}.content.{number}")
    return blocks


def _check_block(block: Any, where: str) -> None:
    needed, optional = BLOCKS[block["type"]]
    _require(needed <= block.keys() <= needed | optional, f"{where}: fields {sorted(block)}")
    if block["type"] == "text":
        _require(isinstance(block["text"], str), f"{where}.text: Input should be a valid string")
        _require(block["text"], f"{where}: text content blocks must be non-empty")
        _require(block["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")
    if block["type"] == "tool_use":
        _require(NAME.fullmatch(block["name"]), f"{where}.name: should match {NAME.pattern}")
        _require(ID.fullmatch(block["id"]), f"{where}.id: should match {ID.pattern}")
        _require(isinstance(block["input"], dict), f"{where}.input: Input should be a valid dictionary")
    if block["type"] == "tool_result":
        _require(str(block.get("content", "x")).strip(), f"{where}.content: must be non-empty")


def _check_results(blocks: list[dict[str, Any]], awaited: list[str], where: str) -> None:
    """All results of a turn's calls stand first in the very next message, and no others."""
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    missing = [id_ for id_ in awaited if id_ not in results]
    _require(not missing, f"{where}: `tool_use` ids were found without `tool_result` blocks: {missing}")
    stray = [id_ for id_ in results if id_ not in awaited]
    _require(not stray, f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {stray}")
    _require(len(set(results)) == len(results), f"{where}: each tool_use must have a single result")
    first = [block["type"] for block in blocks[: len(results)]]
    _require(set(first) <= {"tool_result"}, f"{where}: tool_result blocks must come first")


def _check_seals(blocks: list[dict[str, Any]], body: Mapping[str, Any], before: Any, where: str) -> None:
    for number, block in enumerate(blocks):
        if block["type"] == "thinking":
            sealed = seal(block["thinking"], body.get("system"), body.get("tools"), before)
            _require(
                block["signature"] == sealed,
                f"{where}.content.{number}: Invalid `signature` in `thinking` block. "
                "The block is bound to a different conversation.",
            )


def _check_prefill(model: str, last: Any) -> None:
    if last["role"] != "assistant":
        return
    _require(not NO_PREFILL.match(model), "This model does not support assistant message prefill.")
    content = last["content"]
    text = content if isinstance(content, str) else content[-1].get("text", "")
    _require(text == text.rstrip(), "messages: final assistant content cannot end with trailing whitespace")
