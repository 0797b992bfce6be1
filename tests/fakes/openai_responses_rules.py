"""What OpenAI's responses API refuses: request body and what was given before in, the refusal it would get out.

Written from the service's documentation and not from our client, so that the two check each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.fakes.openai_rules import NAME, REASONING, Refused, check_strict, require

FIELDS = {
    "model", "input", "instructions", "store", "include", "max_output_tokens", "max_tool_calls", "reasoning", "text",
    "tools", "tool_choice", "parallel_tool_calls", "stream", "temperature", "top_p", "metadata", "truncation",
    "service_tier", "prompt_cache_key", "safety_identifier", "previous_response_id", "user",
}  # fmt: skip
INCLUDES = {"reasoning.encrypted_content", "message.output_text.logprobs"}
MESSAGE = {"type", "id", "role", "content", "status", "phase"}
ITEMS: dict[str, tuple[set[str], set[str]]] = {
    "reasoning": ({"type", "id", "summary"}, {"content", "encrypted_content", "status"}),
    "function_call": ({"type", "call_id", "name", "arguments"}, {"id", "status"}),
    "function_call_output": ({"type", "call_id", "output"}, {"id", "status"}),
}
"""Kind of an item → the fields that it must have, and may have."""
PARTS = {"user": {"input_text"}, "system": {"input_text"}, "developer": {"input_text"},
         "assistant": {"output_text", "refusal"}}  # fmt: skip


def check(body: Any, given: Mapping[str, list[dict[str, Any]]]) -> None:
    """Raise Refused for a request that the service would not take.

    `given`: the id of each item that the service has made → all items of the response that it was made in, which are
    stored nowhere.
    """
    require(isinstance(body, dict), "the body is no object")
    for name in body.keys() - FIELDS:
        raise Refused(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    require(isinstance(body.get("model"), str) and body["model"], "Missing required parameter: 'model'.", "model")
    _check_settings(body)
    _check_tools(body.get("tools", []))
    _check_format(body.get("text", {}))
    if isinstance(body.get("input"), str):
        return
    items = body.get("input")
    require(isinstance(items, list) and items, "Missing required parameter: 'input'.", "input")
    for number, item in enumerate(items):
        _check_item(item, f"input[{number}]")
    _check_calls(items)
    _check_given(items, given)


def _check_settings(body: dict[str, Any]) -> None:
    require(isinstance(body.get("instructions", ""), str), "instructions: expected a string", "instructions")
    for name in ("store", "stream", "parallel_tool_calls"):
        require(body.get(name, True) in (True, False), f"{name}: expected a boolean", name)
    limit = body.get("max_output_tokens", 16)
    require(type(limit) is int and limit >= 16, "Invalid 'max_output_tokens': integer below minimum value. Expected a "
            "value >= 16.", "max_output_tokens", "integer_below_min_value")  # fmt: skip
    reasons = REASONING.match(body["model"].removeprefix("ft:"))
    for name in ("temperature", "top_p"):
        if name in body and reasons:
            code = None if body["model"].startswith("gpt-6") else "unsupported_parameter"
            raise Refused(f"Unsupported parameter: '{name}' is not supported with this model.", name, code)
    wanted = set(body.get("include", []))
    require(wanted <= INCLUDES, f"Invalid value: {wanted}", "include", "invalid_value")
    require(reasons or "reasoning.encrypted_content" not in wanted,
            "Encrypted content is not supported with this model.", "include")  # fmt: skip


def _check_tools(tools: Any) -> None:
    require(isinstance(tools, list) and len(tools) <= 128, "tools: at most 128", "tools")
    for number, tool in enumerate(tools):
        where = f"tools[{number}]"
        require(tool.get("type") == "function", f"{where}.type: unsupported", where)
        require("function" not in tool and "name" in tool, f"Missing required parameter: '{where}.name'.",
                f"{where}.name", "missing_required_parameter")  # fmt: skip
        allowed = {"type", "name", "description", "parameters", "strict"}
        require(tool.keys() <= allowed, f"{where}: unknown fields {sorted(tool.keys() - allowed)}", where)
        require(NAME.fullmatch(tool["name"]), f"Invalid '{where}.name': string does not match pattern.", where)
        parameters = tool.get("parameters") or {"type": "object", "properties": {}, "additionalProperties": False}
        require(parameters.get("type") == "object", f"{where}: schema must be of type 'object'", where,
                "invalid_function_parameters")  # fmt: skip
        if tool.get("strict") is not False:  # strict unless told otherwise
            check_strict(parameters, "invalid_function_parameters")
    names = [tool["name"] for tool in tools]
    require(len(set(names)) == len(names), "tools: the same name twice", "tools")


def _check_format(text: dict[str, Any]) -> None:
    require(text.keys() <= {"format", "verbosity"}, "text: unknown fields", "text")
    form = text.get("format", {"type": "text"})
    if form["type"] == "text":
        return
    require(form["type"] == "json_schema", "text.format.type: invalid value", "text.format.type")
    allowed = {"type", "name", "schema", "strict", "description"}
    require(form.keys() <= allowed, f"Unknown parameter: 'text.format.{form.keys() - allowed}'.", "text.format")
    require(NAME.fullmatch(form.get("name", "")), "Invalid 'text.format.name'.", "text.format.name")
    require(isinstance(form.get("schema"), dict), "Missing required parameter: 'text.format.schema'.", "text.format")
    if form.get("strict"):
        check_strict(form["schema"], "invalid_json_schema", "text.format.schema")


# --- items ------------------------------------------------------------------------------------------------------------


def _check_item(item: dict[str, Any], where: str) -> None:
    kind = item.get("type", "message")
    if kind == "message":
        _check_message(item, where)
        return
    require(kind in ITEMS, f"Invalid value: '{kind}' at {where}.type", where, "invalid_value")
    needed, allowed = ITEMS[kind]
    require(needed <= item.keys(), f"Missing required parameter: '{where}.{needed - item.keys()}'.", where)
    unknown = item.keys() - needed - allowed
    require(not unknown, f"Unknown parameter: '{where}.{unknown}'.", where, "unknown_parameter")
    for name in ("arguments", "output", "call_id"):
        require(isinstance(item.get(name, ""), str), f"Invalid type for '{where}.{name}': expected a string.", where)
    if kind == "function_call":
        require(NAME.fullmatch(item["name"]), f"Invalid '{where}.name'.", where)
    require(item.get("call_id") != "", f"Invalid '{where}.call_id': empty string.", where)


def _check_message(item: dict[str, Any], where: str) -> None:
    role, content = item.get("role"), item.get("content")
    require(item.keys() <= MESSAGE, f"Unknown parameter: '{where}.{item.keys() - MESSAGE}'.", where)
    require(role in PARTS, f"Invalid value: '{role}' at {where}.role", where)
    require("id" not in item or role == "assistant", f"{where}: only the model's own messages have ids", where)
    if isinstance(content, str):
        return
    require(isinstance(content, list) and content, f"{where}.content: expected a string or a list", where)
    for part in content:
        require(part.get("type") in PARTS[role], f"Invalid value: '{part.get('type')}' in {where}.content", where)


def _check_calls(items: list[dict[str, Any]]) -> None:
    """Each call has one output, after it; no output is without a call."""
    called, open_ = set[str](), set[str]()
    for item in items:
        if item.get("type") == "function_call":
            require(item["call_id"] not in called, f"Duplicate call_id {item['call_id']}", "input")
            called.add(item["call_id"])
            open_.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            missing = f"No tool call found for function call output with call_id {item['call_id']}."
            require(item["call_id"] in open_, missing, "input")
            open_.discard(item["call_id"])
    require(not open_, f"No tool output found for function call {', '.join(sorted(open_))}.", "input")


def _check_given(items: list[dict[str, Any]], given: Mapping[str, list[dict[str, Any]]]) -> None:
    """Items with ids are as the service made them, and those that belong together stay together."""
    there = {item.get("id") for item in items}
    for number, item in enumerate(items):
        id_ = item.get("id")
        if id_ is None:
            continue
        made = given.get(id_)
        if made is None:
            raise _forgotten(id_)
        original = next(one for one in made if one.get("id") == id_)
        if item["type"] == "reasoning":
            _check_reasoning(item, original, items[number + 1 :])
        needed = [one["id"] for one in _before(made, id_) if one["type"] == "reasoning"]
        for reasoning in needed:
            require(reasoning in there, f"Item '{id_}' of type '{item['type']}' was provided without its required "
                    f"'reasoning' item: '{reasoning}'.", "input")  # fmt: skip


def _check_reasoning(item: dict[str, Any], original: dict[str, Any], following: list[dict[str, Any]]) -> None:
    id_ = item["id"]
    if "encrypted_content" not in item:
        raise _forgotten(id_)
    sealed = f"The encrypted content for item {id_} could not be verified."
    require(item == original, sealed, "input", "invalid_encrypted_content")
    follows = following and following[0].get("type") != "function_call_output" and following[0].get("role") != "user"
    require(follows, f"Item '{id_}' of type 'reasoning' was provided without its required following item.", "input")


def _forgotten(id_: str) -> Refused:
    message = f"Item with id '{id_}' not found. Items are not persisted when `store` is set to false."
    return Refused(message, "input", status=404)


def _before(made: list[dict[str, Any]], id_: str) -> Iterable[dict[str, Any]]:
    """The items of a response up to one of them, back to the answer before."""
    place = next(number for number, one in enumerate(made) if one.get("id") == id_)
    while place > 0 and made[place - 1]["type"] == "reasoning":
        place -= 1
        yield made[place]
