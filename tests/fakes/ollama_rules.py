"""What Ollama's `/api/chat` refuses, as one function: request body in, the refusal it would get out.

Written from the service's documentation and types and not from our client, so that the two check each other. Where
Ollama would only ignore what it does not know, this refuses: a field that does nothing is a mistake of the client.
"""

from __future__ import annotations

from typing import Any

from tests.fakes.wire import Refused, reply

FIELDS = {"model", "stream", "think", "keep_alive", "messages", "tools", "format", "options"}
OPTIONS: dict[str, tuple[type, ...]] = {
    "temperature": (int, float), "top_p": (int, float), "top_k": (int,), "num_predict": (int,), "num_ctx": (int,),
    "seed": (int,), "stop": (list,),
}  # fmt: skip
MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content", "images"},
    "assistant": {"role", "content", "thinking", "tool_calls"},
    "tool": {"role", "content", "tool_name"},
}


def refuse(message: str, status: int = 400) -> Refused:
    """A refusal in Ollama's shape."""
    return Refused(message, reply({"error": message}, status))


def check(body: Any, models: set[str], without_tools: set[str]) -> None:
    """Raise Refused for a request that the service would not take."""
    _require(isinstance(body, dict), "missing request body")
    _require(not body.keys() - FIELDS, f"unknown fields {sorted(body.keys() - FIELDS)}")
    _require(isinstance(body.get("model"), str) and body["model"], "model is required")
    if body["model"] not in models:
        raise refuse(f"model '{body['model']}' not found", 404)
    # Ollama streams unless told otherwise, and takes a context of its own choice: neither must be left to chance.
    _require(type(body.get("stream")) is bool, "stream: not said")
    _check_options(body.get("options", {}))
    _check_messages(body.get("messages"))
    _check_tools(body, without_tools)
    form = body.get("format", "json")
    _require(form == "json" or isinstance(form, dict), f"invalid format: {form!r}")


def _require(condition: object, message: str) -> None:
    if not condition:
        raise refuse(message)


def _check_options(options: Any) -> None:
    _require("num_ctx" in options, "options.num_ctx: not said")
    for name, value in options.items():
        _require(name in OPTIONS, f"invalid option provided: {name}")
        fits = type(value) in OPTIONS[name]
        _require(fits, f"option {name!r} must be of type {OPTIONS[name][0].__name__}")
    _require(options["num_ctx"] >= 4, "num_ctx is too small")


def _check_messages(messages: Any) -> None:
    _require(isinstance(messages, list) and messages, "messages: none")
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        fields = MESSAGE_FIELDS.get(message.get("role"))
        _require(fields, f"{where}: invalid role {message.get('role')!r}")
        _require(message.keys() <= fields, f"{where}: unknown fields {sorted(message.keys() - fields)}")
        _require(isinstance(message.get("content"), str), f"{where}.content: no string")
        if message["role"] == "tool":
            _require(message.get("tool_name") in open_calls, f"{where}: nothing asked for {message.get('tool_name')!r}")
            open_calls.remove(message["tool_name"])
        else:
            _require(not open_calls, f"{where}: calls without an answer: {open_calls}")
        open_calls += [_called(call, where) for call in message.get("tool_calls", ())]
    _require(not open_calls, f"calls without an answer: {open_calls}")


def _called(call: Any, where: str) -> str:
    _require(call.keys() == {"function"}, f"{where}: bad tool call")
    function = call["function"]
    _require(function.keys() == {"name", "arguments"}, f"{where}: bad function of a tool call")
    _require(isinstance(function["arguments"], dict), f"{where}: cannot unmarshal arguments into an object")
    return function["name"]


def _check_tools(body: dict[str, Any], without_tools: set[str]) -> None:
    tools = body.get("tools", [])
    _require(isinstance(tools, list), "tools: no list")
    _require(not tools or body["model"] not in without_tools, f'"{body["model"]}" does not support tools')
    for tool in tools:
        _require(tool.keys() == {"type", "function"} and tool["type"] == "function", "tools: bad tool")
        function = tool["function"]
        _require(function.keys() == {"name", "description", "parameters"}, "tools: bad function")
        _require(function["parameters"].get("type") == "object", "tools: parameters are no object")
