"""A request as OpenAI's responses API reads it. Pure.

Nothing is stored at the service: each request brings the whole conversation. A turn of the model goes back as it came,
with its reasoning in encrypted form, as long as its text and calls are still what it said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import Message, ModelRequest, ToolSpec
from halo_runtime.models.chat import ToolNames
from halo_runtime.models.openai_schema import can_be_strict, described
from halo_runtime.models.surrogates import valid_text
from halo_runtime.models.turns import answered

WIRE: Final = "responses"
"""The wire format's name in `opaque`."""

ENCRYPTED: Final = "reasoning.encrypted_content"


def request_body(request: ModelRequest, model: str, names: ToolNames) -> JsonObject:
    """The body of the POST, without the settings that families differ in."""
    body: JsonObject = {"model": model, "store": False, "include": [ENCRYPTED]}
    instructions = [message.content for message in request.messages if message.role == "system"]
    if any(text.strip() for text in instructions):
        body["instructions"] = valid_text("\n\n".join(text for text in instructions if text.strip()))
    body["input"] = list(_items(request.messages, model, names))
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    if request.tools:
        body["tools"] = [_function(tool, names) for tool in request.tools]
    if request.json_schema is not None:
        body["text"] = {"format": {"type": "json_schema", **described(request.json_schema)}}
    return body


def objects(value: Json) -> list[JsonObject]:
    """The objects in a list; none where it is no list."""
    return [item for item in value if is_object(item)] if is_list(value) else []


def told(items: Iterable[JsonObject]) -> tuple[str, list[Json]]:
    """What a turn's items say to others than the service: the text of its answer, and the ids of its calls.

    What it said on the way to its answer (`phase: commentary`) is no part of that.
    """
    items = list(items)
    parts = (part for item in items if is_answer(item) for part in objects(item.get("content")))
    texts = (part.get("text") for part in parts if part.get("type") == "output_text")
    calls = [item.get("call_id") for item in items if item.get("type") == "function_call"]
    return valid_text("".join(text for text in texts if isinstance(text, str))), calls


def is_answer(item: JsonObject) -> bool:
    """Whether an item is a message that belongs to the answer."""
    return item.get("type") == "message" and item.get("phase") != "commentary"


def _function(tool: ToolSpec, names: ToolNames) -> JsonObject:
    """A tool. Here the service is strict unless told otherwise, in which case it would refuse optional parameters."""
    return {
        "type": "function",
        "name": names[tool.name],
        "description": valid_text(tool.description),
        "parameters": tool.parameters,
        "strict": can_be_strict(tool.parameters),
    }


def _items(messages: Iterable[Message], model: str, names: ToolNames) -> Iterator[JsonObject]:
    for message in answered(messages):
        if message.role == "tool":
            output = valid_text(message.content)
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
        elif message.role == "assistant":
            yield from _own(message, model) or _turn(message, names)
        elif message.role == "user":
            yield {"role": "user", "content": valid_text(message.content)}


def _own(message: Message, model: str) -> list[JsonObject]:
    """The turn's own items, where this model made them and they still say what the message says; else none."""
    kept: Json = (message.opaque or {}).get(WIRE)
    if not is_object(kept) or kept.get("model") != model:  # other models' reasoning means nothing to this one
        return []
    items = objects(kept.get("items"))
    same = told(items) == (valid_text(message.content), [call.id for call in message.tool_calls])
    return items if same else []


def _turn(message: Message, names: ToolNames) -> Iterator[JsonObject]:
    if message.content:
        yield {"role": "assistant", "content": valid_text(message.content)}
    for call in message.tool_calls:
        arguments = valid_text(call.arguments) or "{}"
        yield {"type": "function_call", "call_id": call.id, "name": names[call.name], "arguments": arguments}
