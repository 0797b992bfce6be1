"""A request as Gemini's generateContent reads it: turns made of parts, which go back as they came.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import Message, ModelRequest, ToolCall, ToolSpec
from halo_runtime.models.chat import ToolNames
from halo_runtime.models.surrogates import valid_text

WIRE: Final = "gemini"
"""This wire format's key in `ModelReply.opaque`."""

UNSIGNED: Final = "skip_thought_signature_validator"
"""What the service takes for the signature of a call that another model made."""

_ROLES: Final = {"user": "user", "assistant": "model"}
_SETTINGS: Final = {"temperature": "temperature", "top_p": "topP", "max_tokens": "maxOutputTokens"}


@record
class Layout:
    """How a turn was made of parts, so that it goes back as it came: lengths of text and calls, with their signatures.

    It holds no text: what is redacted from a turn must not come back by this way.
    """

    model: str
    parts: tuple[JsonObject, ...]

    @classmethod
    def of(cls, message: Message, model: str) -> Layout | None:
        """The layout of a turn that this model made; another model's signatures would be refused."""
        own: Json = (message.opaque or {}).get(WIRE)
        if not is_object(own) or own.get("model") != model or not is_list(own.get("parts")):
            return None
        parts = tuple(part for part in own["parts"] if is_object(part))
        length = sum(part.get("text", 0) for part in parts)
        if length != len(message.content):  # a rule changed the text
            parts = ({"text": len(message.content)}, *(part for part in parts if "call" in part))
        return cls(model, parts)

    @classmethod
    def plain(cls, message: Message, model: str, *, sign: bool) -> Layout:
        """Text, then calls; `sign` says instead of a signature that there is none."""
        calls: list[JsonObject] = [{"call": number} for number in range(len(message.tool_calls))]
        if sign and calls:
            calls[0]["thoughtSignature"] = UNSIGNED
        return cls(model, ({"text": len(message.content)}, *calls))

    def to_json(self) -> JsonObject:
        """As it stands in `ModelReply.opaque`."""
        return {WIRE: {"model": self.model, "parts": list(self.parts)}}


def request_body(request: ModelRequest, model: str, names: ToolNames, *, signs: bool = False) -> JsonObject:
    """The body of a request, without a response format.

    `signs`: the model signs the calls it makes, and wants to see signatures.
    """
    body: JsonObject = {"contents": _contents(request.messages, model, names, signs)}
    system = [_text(message.content) for message in request.messages if message.role == "system"]
    if system := [part for part in system if part["text"].strip()]:
        body["systemInstruction"] = {"parts": system}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool, names) for tool in request.tools]}]
    settings = {wire: value for name, wire in _SETTINGS.items() if (value := getattr(request, name)) is not None}
    if settings:
        body["generationConfig"] = settings
    return body


def response_format(schema: JsonObject) -> JsonObject:
    """The settings that ask for JSON of a schema."""
    return {"responseMimeType": "application/json", "responseJsonSchema": schema}


def instruction(schema: JsonObject) -> JsonObject:
    """The part of a system instruction that asks for JSON of a schema in words."""
    return _text(f"Your final answer is nothing but JSON of this schema: {json.dumps(schema, ensure_ascii=False)}")


def _contents(messages: Sequence[Message], model: str, names: ToolNames, signs: bool) -> list[Json]:
    """The turns in order; the results of one turn's calls stand in one content. Blank turns would be refused."""
    contents: list[Json] = []
    called: dict[str | None, str] = {}
    spoken = (message for message in messages if message.role != "system")
    for role, turns in groupby(spoken, key=lambda message: message.role):
        if role == "tool":
            results = [_result(turn, called[turn.tool_call_id]) for turn in turns if turn.tool_call_id in called]
            contents += [{"role": "user", "parts": results}] if results else []
            continue
        for turn in turns:
            called = {call.id: names[call.name] for call in turn.tool_calls}
            if parts := _parts(turn, model, names, signs):
                contents.append({"role": _ROLES[role], "parts": parts})
    return contents


def _parts(message: Message, model: str, names: ToolNames, signs: bool) -> list[JsonObject]:
    """A turn's parts; blank texts are left out unless they carry a signature."""
    parts: list[JsonObject] = []
    start = 0
    layout = Layout.of(message, model) or Layout.plain(message, model, sign=signs)
    for place in layout.parts:
        signed = {"thoughtSignature": place["thoughtSignature"]} if "thoughtSignature" in place else {}
        if "call" in place:
            number: int = place["call"]
            parts.append(_call(message.tool_calls[number], names) | signed)
        else:
            text = message.content[start : start + place["text"]]
            start += place["text"]
            parts += [_text(text) | signed] if text.strip() or signed else []
    return parts


def _text(text: str) -> JsonObject:
    return {"text": valid_text(text)}


def _call(call: ToolCall, names: ToolNames) -> JsonObject:
    return {"functionCall": {"id": call.id, "name": names[call.name], "args": _arguments(call.arguments)}}


def _arguments(text: str) -> JsonObject:
    """Arguments as the object that the service wants; those of another model may be none."""
    try:
        arguments: Json = json.loads(valid_text(text) or "{}", parse_constant=str)
    except (ValueError, RecursionError):
        arguments = None
    return arguments if is_object(arguments) else {"arguments": valid_text(text)}


def _result(message: Message, name: str) -> JsonObject:
    response = {"error" if message.is_error else "output": valid_text(message.content)}
    return {"functionResponse": {"id": message.tool_call_id, "name": name, "response": response}}


def _declaration(tool: ToolSpec, names: ToolNames) -> JsonObject:
    wire: JsonObject = {"name": names[tool.name], "parametersJsonSchema": tool.parameters}
    return wire | ({"description": valid_text(tool.description)} if tool.description.strip() else {})
