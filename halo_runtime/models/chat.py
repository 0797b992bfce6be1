"""The chat-completions wire format: a request as OpenAI-compatible servers read it, and their answer as a ModelReply.

Pure functions, shared by every service and the embedded model that speak this format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import Message, ModelReply, ModelRequest, Stop, ToolCall, Usage
from halo_runtime.models.endings import WARNINGS, Refuse, check_ended
from halo_runtime.models.openai_schema import MAX_NAME, described
from halo_runtime.models.spending import used
from halo_runtime.models.surrogates import valid_text

ToolNames: TypeAlias = Mapping[str, str]
"""Function name in Halo → its name on the wire."""

Fail: TypeAlias = Callable[[int, JsonObject], ModelError]
"""Makes the error that a failure under status 200 amounts to, from the status it names and its document."""

MAX_TOLD: Final = 500
"""Characters of a service's own message that go into ours."""
_ILLEGAL_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_STOPS: Final[dict[str | None, Stop]] = {"length": "length", "content_filter": "content_filter"}
"""Reasons to stop that mean more than an end; servers are free to invent others."""

NO_TOKENS_LEFT: Final = "spent all its tokens before its answer began; raise max_tokens"
TRUNCATED_CALL: Final = "was cut off inside a tool call, which is not made; raise max_tokens"
"""What is said of a reply of which a limit left nothing to use."""


def tool_names(request: ModelRequest) -> dict[str, str]:
    """Distinct names that every service accepts (ASCII letters, digits, `_`, `-`; 64 at most) for a request's tools.

    They begin with a letter or `_`, as some services want it.
    """
    earlier = (call.name for message in request.messages for call in message.tool_calls)
    names: dict[str, str] = {}
    for name in (*(tool.name for tool in request.tools), *earlier):
        if name not in names:
            names[name] = _distinct(_legal(name), names.values())
    return names


def _legal(name: str) -> str:
    legal = _ILLEGAL_IN_NAMES.sub("_", name)
    return (legal if legal[:1].isalpha() or legal[:1] == "_" else f"_{legal}")[:MAX_NAME]


def _distinct(name: str, taken: Iterable[str]) -> str:
    used, candidate, number = set(taken), name, 1
    while candidate in used:
        number += 1
        suffix = f"_{number}"
        candidate = name[: MAX_NAME - len(suffix)] + suffix
    return candidate


def request_body(request: ModelRequest, model: str, names: ToolNames, *, strict: bool = True) -> JsonObject:
    """Messages, tools and response format of a request; the settings that families differ in are not in it.

    `strict`: whether the service can be asked to hold a model strictly to a schema.
    """
    body: JsonObject = {"model": model, "messages": [_message(message, names) for message in request.messages]}
    if request.tools:
        body["tools"] = offered(request, names)
    if request.json_schema is not None:
        body["response_format"] = _response_format(request.json_schema, strict)
    return body


def offered(request: ModelRequest, names: ToolNames) -> list[JsonObject]:
    """The functions of a request, which some other wire formats describe in the same way."""
    return [
        {
            "type": "function",
            "function": {
                "name": names[tool.name],
                "description": valid_text(tool.description),
                "parameters": tool.parameters,
            },
        }
        for tool in request.tools
    ]


def read_reply(document: JsonObject, names: ToolNames, refuse: Refuse, *, may_be_cut: bool = False) -> ModelReply:
    """The reply in a `chat.completion`; raises what `refuse` makes where there is none that could be used.

    `may_be_cut`: a text that the token limit cut is one, with a warning.
    """
    with used(usage_of(document.get("usage"), "prompt_tokens", "completion_tokens")):
        return _read(document, names, refuse, may_be_cut)


def _read(document: JsonObject, names: ToolNames, refuse: Refuse, may_be_cut: bool) -> ModelReply:
    choice = _first(document.get("choices"))
    message = None if choice is None else choice.get("message")
    if choice is None or not is_object(message):
        raise refuse(f"answered without any choice{told_failure(document.get('error'))}")
    calls = _tool_calls(message.get("tool_calls"), names)
    text = content_text(message.get("content"))
    refusal = message.get("refusal")
    said: Json = choice.get("finish_reason")
    finish = said if isinstance(said, str) else None
    if finish == "length":
        _check_complete(text, message.get("tool_calls"), refuse)
    if isinstance(refusal, str) and refusal and not calls:
        check_ended("refusal", refuse, _told(valid_text(refusal)))
    stop = "tool" if calls else _STOPS.get(finish, "end")
    if not (may_be_cut and stop == "length"):
        check_ended(stop, refuse)
    if not text and not calls:
        problem = f"answered with an empty message (finish_reason {json.dumps(finish)})"
        raise refuse(problem, retryable=True, code="empty_response")
    return _reply(document, text or "", calls, stop)


def _message(message: Message, names: ToolNames) -> JsonObject:
    wire: JsonObject = {"role": message.role, "content": valid_text(message.content)}
    if message.tool_calls:
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": names[call.name], "arguments": valid_text(call.arguments) or "{}"},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _response_format(schema: JsonObject, strict: bool) -> JsonObject:
    wire = described(schema)
    if not strict:
        del wire["strict"]
    return {"type": "json_schema", "json_schema": wire}


def told_failure(error: Json) -> str:
    """What a service says that reports its failures under status 200, as gateways do."""
    message: Json = error.get("message") if is_object(error) else error
    return f": {_told(message)}" if isinstance(message, str) and message else ""


def _told(message: str) -> str:
    return " ".join(message.split())[:MAX_TOLD]


def check_reported(document: JsonObject, refuse: Refuse, fail: Fail) -> None:
    """Raise for a failure that stands in a completion or a chunk of one, as gateways and streams have them."""
    choice = _first(document.get("choices")) or {}
    failed: Json = document if document.get("object") == "error" else document.get("error")
    error: Json = failed or choice.get("error")
    status = reported_status(error) if is_object(error) else None
    if status is not None:
        raise fail(status, {"error": error})
    if failed or choice.get("finish_reason") == "error":
        raise refuse(f"failed before its answer was complete{told_failure(error)}", retryable=True)


_STATUSES: Final = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "slow_down": 429,
    "vector_store_timeout": 504,
    "server_is_overloaded": 503,
    "service_unavailable_error": 503,
}
"""What a failure calls itself → the status it has where it comes first."""


def reported_status(error: JsonObject) -> int | None:
    """The status that a reported failure names, as a number or by its kind."""
    code = str(error.get("code"))
    if code.isascii() and code.isdigit() and 400 <= int(code[:9]) < 600:
        return int(code)
    kinds = (code, str(error.get("type")))
    return next((_STATUSES[kind] for kind in kinds if kind in _STATUSES), None)


def _first(choices: Json) -> JsonObject | None:
    if is_list(choices) and choices and is_object(choices[0]):
        return choices[0]
    return None


def content_text(content: Json) -> str | None:
    """The text of a message: a string, or the text parts of a list of parts; None for none at all."""
    text = raw_text(content)
    return None if text is None else valid_text(text)


def raw_text(content: Json) -> str | None:
    """As `content_text`, of a piece of a message, which may begin or end in the middle of a character."""
    if is_list(content):
        parts = [part["text"] for part in content if is_object(part) and isinstance(part.get("text"), str)]
        content = "".join(parts) if parts else None
    return content if isinstance(content, str) else None


def _tool_calls(calls: Json, names: ToolNames) -> tuple[ToolCall, ...]:
    """The calls of a message, with the names that Halo knows and ids that are distinct whatever the server sent."""
    originals = {wire: name for name, wire in names.items()}
    found: dict[str, ToolCall] = {}
    for call in calls if is_list(calls) else ():
        function = call.get("function") if is_object(call) else None
        name = function.get("name") if is_object(function) else None
        if not is_object(function) or not isinstance(name, str):
            continue
        id_ = call.get("id")
        if not isinstance(id_, str) or not id_ or id_ in found:
            id_ = _distinct("call", found)
        found[id_] = ToolCall(id_, originals.get(name, name), _arguments(function))
    return tuple(found.values())


def _arguments(function: JsonObject) -> str:
    """The raw text of a call's arguments; no text means no arguments, and some servers send an object."""
    arguments = function.get("arguments")
    if is_object(arguments):
        return valid_text(json.dumps(arguments, ensure_ascii=False))
    return valid_text(arguments) if isinstance(arguments, str) and arguments.strip() else "{}"


def _check_complete(text: str | None, calls: Json, refuse: Refuse) -> None:
    """Refuse what the token limit cut short of any use: a tool would run with half its arguments, or with none."""
    functions = [call.get("function") for call in calls if is_object(call)] if is_list(calls) else []
    if not text and not functions:
        raise refuse(NO_TOKENS_LEFT, code="output_limit")
    if not all(is_object(function) and _is_whole(function.get("arguments")) for function in functions):
        raise refuse(TRUNCATED_CALL, code="truncated_tool_call")


def _is_whole(arguments: Json) -> bool:
    return is_object(arguments) or (isinstance(arguments, str) and is_json(arguments))


def is_json(text: Json) -> bool:
    """Whether a value is the whole text of a JSON document; the arguments of a call that was cut off are not."""
    try:
        json.loads(text if isinstance(text, str) else "")
    except (ValueError, RecursionError):
        return False
    return True


def _reply(document: JsonObject, text: str, calls: tuple[ToolCall, ...], stop: Stop) -> ModelReply:
    usage: Json = document.get("usage")
    model: Json = document.get("model")
    return ModelReply(
        text=text,
        tool_calls=calls,
        stop=stop,
        usage=usage_of(usage, "prompt_tokens", "completion_tokens"),
        model_used=model if isinstance(model, str) else None,
        cost=_cost(usage) if is_object(usage) else None,
        warnings=(WARNINGS[stop],) if stop in WARNINGS else (),
    )


def usage_of(usage: Json, given: str, made: str) -> Usage:
    """Tokens as Halo counts them, from what OpenAI reports under the names `given` and `made`.

    The totals include cached and reasoning tokens, too.
    """
    if not is_object(usage):
        return Usage()
    read: Json = usage.get(f"{given}_details")
    thought: Json = usage.get(f"{made}_details")
    return Usage(
        input=count(usage.get(given)),
        output=count(usage.get(made)),
        cached=count(read.get("cached_tokens")) if is_object(read) else None,
        reasoning=count(thought.get("reasoning_tokens")) if is_object(thought) else None,
        cache_written=count(read.get("cache_write_tokens")) if is_object(read) else None,
    )


def count(value: Json) -> int | None:
    """A number of tokens as a service reports it; None for anything else."""
    return value if type(value) is int and value >= 0 else None


def _cost(usage: JsonObject) -> Decimal | None:
    """What the service itself says a request cost, in USD; a few services do.

    With a key of one's own behind a gateway (`is_byok`) that is its fee, to which the maker's price is added.
    """
    details: Json = usage.get("cost_details")
    upstream = _price(details.get("upstream_inference_cost")) if is_object(details) and usage.get("is_byok") else None
    own = _price(usage.get("cost"))
    return own if own is None or upstream is None else own + upstream


def _price(value: Json) -> Decimal | None:
    return Decimal(str(value)) if type(value) in (int, float) and 0 <= value < 1e9 else None
