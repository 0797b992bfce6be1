"""What Gemini's generateContent refuses, as one function: model and request body in, the refusal it would get out.

Written from the service's documentation and not from our client, so that the two check each other. A signature that
this service gives says which model made it and for what, so that one that went elsewhere or was kept is found.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

FIELDS = {
    "contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig", "cachedContent",
    "continuationToken",
}  # fmt: skip
CONFIG = {
    "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "candidateCount", "responseMimeType",
    "responseSchema", "responseJsonSchema", "thinkingConfig", "presencePenalty", "frequencyPenalty",
}  # fmt: skip
DATA = {"text", "functionCall", "functionResponse"}
FREE = {"args", "response", "properties", "parametersJsonSchema", "responseJsonSchema"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
OLD = re.compile(r"gemini-[12]\.")
UNSIGNED = {"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}
SUBSET = {
    "type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties",
    "required", "minimum", "maximum", "anyOf", "propertyOrdering", "default", "minLength", "maxLength", "pattern",
}  # fmt: skip


class Wrong(Exception):
    """INVALID_ARGUMENT, with the service's message."""


def check(model: str, body: Any) -> None:
    """Raise Wrong for a request that the service would not take."""
    _require(isinstance(body, dict), "Invalid JSON payload received.")
    body = camel(body)
    _known(body, FIELDS, "")
    _check_contents(body.get("contents"), model)
    _check_system(body.get("systemInstruction"))
    _check_tools(body.get("tools", []))
    _check_tool_config(body.get("toolConfig", {}), body)
    _check_config(body.get("generationConfig", {}), model, bool(body.get("tools")))


def camel(message: Any) -> Any:
    """A message as JSON spells its fields; the service takes `snake_case` too. What people name stays as it is."""
    if isinstance(message, list):
        return [camel(part) for part in message]
    if not isinstance(message, dict):
        return message
    named = {re.sub("_(.)", lambda found: found[1].upper(), name): value for name, value in message.items()}
    return {name: value if name in FREE else camel(value) for name, value in named.items()}


def signature(model: str, call: dict[str, Any] | None = None) -> str:
    """The signature that the model gives with a call, or with a text."""
    return base64.b64encode(json.dumps([model, _signed(call)]).encode()).decode()


def _signed(call: dict[str, Any] | None) -> Any:
    return None if call is None else [call["name"], call.get("args", {})]


def _require(condition: object, message: str) -> None:
    if not condition:
        raise Wrong(message)


def _known(value: dict[str, Any], fields: Iterable[str], where: str) -> None:
    for name in value.keys() - set(fields):
        at = f" at '{where}'" if where else ""
        raise Wrong(f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.')


# --- contents ---------------------------------------------------------------------------------------------------------


def _check_contents(contents: Any, model: str) -> None:
    _require(isinstance(contents, list) and contents, "contents is not specified")
    for number, content in enumerate(contents):
        where = f"contents[{number}]"
        _known(content, {"role", "parts"}, where)
        _require(content.get("role") in ("user", "model"), "Please use a valid role: user, model.")
        _require(content.get("parts"), f"{where}.parts must not be empty.")
        for part in content["parts"]:
            _check_part(part, content["role"], where)
    _require(contents[0]["role"] == "user", "Please ensure that multiturn requests begin with a user turn.")
    _check_answered(contents)
    _check_signatures(contents, model)


def _check_part(part: dict[str, Any], role: str, where: str) -> None:
    _known(part, DATA | {"thoughtSignature", "thought"}, f"{where}.parts")
    data = part.keys() & DATA
    _require(len(data) == 1, f"{where}.parts: required oneof field 'data' must have one initialized field")
    if "text" in part:
        _require(isinstance(part["text"], str), f"{where}: text is no string")
        _require(part["text"] or "thoughtSignature" in part, f"{where}: must have a text parameter")
    elif "functionCall" in part:
        _require(role == "model", "Please ensure that function calls are in model turns.")
        _check_call(part["functionCall"], "args", where)
    else:
        _require(role == "user", "Please ensure that function responses are in user turns.")
        _check_call(part["functionResponse"], "response", where)
        _require("response" in part["functionResponse"], f"{where}: response is missing")
        refs = [key for key in _keys(part["functionResponse"]["response"]) if key == "$ref"]
        _require(not refs, f"{where}: reference keys in a function response")


def _check_call(call: dict[str, Any], content: str, where: str) -> None:
    _known(call, {"id", "name", content}, where)
    _require(NAME.fullmatch(call.get("name", "")), f"{where}: Invalid function name {call.get('name')!r}")
    _require(isinstance(call.get(content, {}), dict), f"{where}: {content} is no Struct")


def _check_answered(contents: list[dict[str, Any]]) -> None:
    """Each turn of calls is followed by one turn with a response for each, in this order."""
    previous: list[Any] = []
    for content in contents:
        responses = [_asked(part["functionResponse"]) for part in content["parts"] if "functionResponse" in part]
        _require(
            previous == responses,
            "Please ensure that the number of function response parts is equal to the number of function call parts "
            f"of the function call turn, with their ids and names: {previous} and {responses}",
        )
        previous = [_asked(part["functionCall"]) for part in content["parts"] if "functionCall" in part]
        _require(len({id_ for id_, _ in previous if id_}) == len([id_ for id_, _ in previous if id_]), "ids twice")
    _require(not previous, "Please ensure that a function call turn is followed by a function response turn.")


def _asked(call: dict[str, Any]) -> tuple[str | None, str]:
    return call.get("id"), call["name"]


def _check_signatures(contents: list[dict[str, Any]], model: str) -> None:
    """All contents are one turn here: its first call of each step is signed, and signatures stay with their parts."""
    for content in contents:
        calls = [part for part in content["parts"] if "functionCall" in part]
        missing = calls and not OLD.match(model) and "thoughtSignature" not in calls[0]
        _require(not missing, "Function call is missing a thought_signature in functionCall parts.")
        for part in content["parts"]:
            if part.get("thoughtSignature") not in {None, *UNSIGNED}:
                genuine = signature(model, part.get("functionCall"))
                _require(part["thoughtSignature"] == genuine, "Corrupted thought signature.")


def _check_system(instruction: Any) -> None:
    if instruction is not None:
        _known(instruction, {"role", "parts"}, "system_instruction")
        _require(instruction.get("parts"), "system_instruction.parts must not be empty.")
        _require(all(part.keys() == {"text"} and part["text"] for part in instruction["parts"]), "text parts only")


# --- tools and settings -----------------------------------------------------------------------------------------------


def _check_tools(tools: Any) -> None:
    declarations: list[dict[str, Any]] = []
    for tool in tools:
        _known(tool, {"functionDeclarations"}, "tools")
        declarations += tool["functionDeclarations"]
    for declaration in declarations:
        _known(declaration, {"name", "description", "parameters", "parametersJsonSchema"}, "function_declarations")
        _require(NAME.fullmatch(declaration.get("name", "")), f"Invalid function name: {declaration.get('name')!r}")
        _require(not {"parameters", "parametersJsonSchema"} <= declaration.keys(), "parameters given twice")
        schema = declaration.get("parametersJsonSchema", {"type": "object"})
        _require(schema.get("type") == "object", "parameters_json_schema: type must be OBJECT")
        _check_subset(declaration.get("parameters", {}))
    names = [declaration["name"] for declaration in declarations]
    _require(len(set(names)) == len(names), f"Duplicate function declaration found: {names}")


def _check_subset(schema: dict[str, Any]) -> None:
    """The older schemas, a subset of OpenAPI's."""
    _known(schema, SUBSET, "parameters")
    _require(isinstance(schema.get("type", ""), str), "Proto field is not repeating, cannot start list: type")
    _require(schema.get("type", "").lower() != "array" or "items" in schema, "items: missing field.")
    _require(all(isinstance(value, str) for value in schema.get("enum", ())), "enum: TYPE_STRING")
    for part in (
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *filter(None, [schema.get("items")]),
    ):
        _check_subset(part)


def _check_tool_config(config: dict[str, Any], body: dict[str, Any]) -> None:
    calling = config.get("functionCallingConfig", {})
    mode = calling.get("mode", "AUTO")
    _require(mode in ("AUTO", "ANY", "NONE", "VALIDATED"), f"Invalid value at 'mode': {mode}")
    _require("allowedFunctionNames" not in calling or mode in ("ANY", "VALIDATED"), "allowed_function_names with AUTO")
    _require(mode != "ANY" or body.get("tools"), "Function calling config is set without function_declarations.")


def _check_config(config: dict[str, Any], model: str, tools: bool) -> None:
    _known(config, CONFIG, "generation_config")
    for name, least, most in (("temperature", 0, 2), ("topP", 0, 1)):
        value = config.get(name, least)
        _require(type(value) in (int, float) and least <= value <= most, f"{name} must be in the range [0, {most}]")
    limit = config.get("maxOutputTokens", 1)
    _require(type(limit) is int and limit >= 1, "max_output_tokens must be positive")
    kind = config.get("responseMimeType", "text/plain")
    _require(kind in ("text/plain", "application/json", "text/x.enum"), f"response_mime_type: {kind}")
    schemas = config.keys() & {"responseSchema", "responseJsonSchema"}
    _require(not schemas or kind == "application/json", "response schema without response mime type application/json")
    _require(len(schemas) < 2, "both response_schema and response_json_schema")
    _check_subset(config.get("responseSchema", {}))
    unsupported = tools and kind != "text/plain" and OLD.match(model)
    _require(not unsupported, f"Function calling with a response mime type: '{kind}' is unsupported")


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _keys(part)
