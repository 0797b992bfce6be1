"""The wire format of Gemini's generateContent: a request as the service reads it, and its answer as a ModelReply.

Pure. An answer that streams is a row of answers with a part of the text each; `Answer` takes one after another, and so
has the same result with and without streaming.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import Message, ModelReply, ModelRequest, Stop, ToolCall, ToolSpec, Usage
from halo_runtime.models.chat import Refuse, ToolNames, valid_text

WIRE: Final = "gemini"
"""This wire format's key in `ModelReply.opaque`."""

UNSIGNED: Final = "skip_thought_signature_validator"
"""What the service takes for the signature of a call that another model made."""

_ROLES: Final = {"user": "user", "assistant": "model"}
_SETTINGS: Final = {"temperature": "temperature", "top_p": "topP", "max_tokens": "maxOutputTokens"}

_FILTERED: Final = "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT"
_STOPS: Final[dict[str | None, Stop]] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_FILTERED.split(), "content_filter"),
}
"""Reasons to finish that are known to leave a usable answer; any other one is told in a warning."""

_BROKEN: Final = {
    "MALFORMED_FUNCTION_CALL": True,
    "MALFORMED_RESPONSE": True,
    "UNEXPECTED_TOOL_CALL": True,
    "TOO_MANY_TOOL_CALLS": False,
    "MISSING_THOUGHT_SIGNATURE": False,
}
"""Reasons to finish that leave no answer, and whether another try may bring one (an accident of sampling)."""

_WARNINGS: Final[dict[Stop, str]] = {
    "length": "the reply was cut off at its token limit",
    "content_filter": "the service's content filter cut the reply",
}


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
    response = {"output": valid_text(message.content)}
    return {"functionResponse": {"id": message.tool_call_id, "name": name, "response": response}}


def _declaration(tool: ToolSpec, names: ToolNames) -> JsonObject:
    wire: JsonObject = {"name": names[tool.name], "parametersJsonSchema": tool.parameters}
    return wire | ({"description": valid_text(tool.description)} if tool.description.strip() else {})


# --- what comes back --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Answer:
    """One answer as it comes, in one document or in many, over one exchange or several."""

    model: str
    names: ToolNames
    refuse: Refuse
    finish: str | None = None
    _token: str | None = None
    _finish_message: str = ""
    _blocked: str | None = None
    _answered: bool = False
    _model_used: str | None = None
    _texts: list[str] = field(default_factory=list[str])
    _calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    _layout: list[JsonObject] = field(default_factory=list[JsonObject])
    _usage: dict[int, Usage] = field(default_factory=dict[int, Usage])
    _exchanges: int = 0

    def begin(self) -> None:
        """An exchange begins: its usage is counted apart, and its end is to come."""
        self._exchanges += 1
        self.finish = self._token = None

    @property
    def continuation(self) -> str | None:
        """What the same request goes on with after an exchange that ended at the service's own limit."""
        return self._token if self.finish == "CONTINUATION" else None

    def take(self, document: JsonObject) -> str:
        """Add a document of the service; the text that it brought."""
        feedback: Json = document.get("promptFeedback")
        if is_object(feedback):
            self._blocked = _string(feedback.get("blockReason")) or self._blocked
        usage: Json = document.get("usageMetadata")
        if is_object(usage):  # what streams counts up: the last one holds
            self._usage[self._exchanges] = _usage(usage)
        self._model_used = _string(document.get("modelVersion")) or self._model_used
        candidates: Json = document.get("candidates")
        candidate: Json = candidates[0] if is_list(candidates) and candidates else None
        return self._take_candidate(candidate) if is_object(candidate) else ""

    def reply(self) -> ModelReply:
        """All that came as one reply; raises where it cannot be used."""
        self._check_answered()
        stop = "tool" if self._calls else _STOPS.get(self.finish, "end")
        return ModelReply(
            text="".join(self._texts),
            tool_calls=tuple(self._calls.values()),
            stop=stop,
            usage=_sum([self._usage.get(number + 1, Usage()) for number in range(self._exchanges)]),
            model_used=self._model_used,
            warnings=self._warnings(stop),
            opaque=Layout(self.model, tuple(self._layout)).to_json() if self._signed() else None,
        )

    def _take_candidate(self, candidate: JsonObject) -> str:
        self._answered = True
        self.finish = _string(candidate.get("finishReason")) or self.finish
        self._token = _string(candidate.get("continuationToken")) or self._token
        self._finish_message = _string(candidate.get("finishMessage")) or self._finish_message
        content: Json = candidate.get("content")
        parts: Json = content.get("parts") if is_object(content) else None
        return "".join(self._take_part(part) for part in (parts if is_list(parts) else ()) if is_object(part))

    def _take_part(self, part: JsonObject) -> str:
        """Add one part; thoughts are no part of the answer."""
        if part.get("thought") is True:
            return ""
        signature = _string(part.get("thoughtSignature"))
        signed = {"thoughtSignature": signature} if signature else {}
        call: Json = part.get("functionCall")
        name = _string(call.get("name")) if is_object(call) else None
        if is_object(call) and name is not None:
            self._layout.append({"call": len(self._calls), **signed})
            self._add_call(name, call)
            return ""
        text = valid_text(part["text"]) if isinstance(part.get("text"), str) else ""
        self._add_text(text, signed)
        return text

    def _add_call(self, name: str, call: JsonObject) -> None:
        originals = {wire: name for name, wire in self.names.items()}
        id_ = _string(call.get("id")) or ""
        if not id_ or id_ in self._calls:
            id_ = f"call_{len(self._calls) + 1}"
        while id_ in self._calls:
            id_ += "_"
        arguments: Json = call.get("args")
        text = json.dumps(arguments if arguments is not None else {}, ensure_ascii=False)
        self._calls[id_] = ToolCall(id_, originals.get(name, name), valid_text(text))

    def _add_text(self, text: str, signed: JsonObject) -> None:
        """Text joins the text before it, unless one of them is signed: a signature holds for its own part."""
        self._texts.append(text)
        last = self._layout[-1] if self._layout else None
        if last is not None and last.keys() == {"text"} and not signed:
            last["text"] += len(text)
        elif text or signed:
            self._layout.append({"text": len(text), **signed})

    def _signed(self) -> bool:
        return any("thoughtSignature" in part for part in self._layout)

    def _warnings(self, stop: Stop) -> tuple[str, ...]:
        if stop in _WARNINGS:
            return (_WARNINGS[stop],)
        odd = self.finish is not None and self.finish not in _STOPS
        return (f"the service ended the reply with {self.finish}",) if odd else ()

    def _check_answered(self) -> None:
        """Raise for an answer of which nothing can be used."""
        said = f": {self._finish_message}" if self._finish_message else ""
        if not self._answered and self._blocked is not None:
            raise self.refuse(f"blocked the prompt ({self._blocked}); the service does not answer it")
        if not self._answered:
            raise self.refuse("answered without any candidate", retryable=True)
        if self.finish in _BROKEN:
            raise self.refuse(f"gave no usable answer ({self.finish}{said})", retryable=_BROKEN[self.finish])
        if self._calls or "".join(self._texts) or _STOPS.get(self.finish) == "content_filter":
            return
        if _STOPS.get(self.finish) == "length":
            raise self.refuse("spent all its tokens before its answer began; raise max_tokens")
        raise self.refuse(f"answered with an empty message (finishReason {self.finish}{said})", retryable=True)


def _string(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _usage(wire: JsonObject) -> Usage:
    """The service leaves out counts of zero; what it does not count one by one follows from the total."""
    prompt, total = _count(wire.get("promptTokenCount")), _count(wire.get("totalTokenCount"))
    answer, thoughts = _count(wire.get("candidatesTokenCount")), _count(wire.get("thoughtsTokenCount"))
    tokens_in = None if prompt is None else prompt + (_count(wire.get("toolUsePromptTokenCount")) or 0)
    tokens_out = None if answer is None else answer + (thoughts or 0)
    if tokens_out is None and tokens_in is not None and total is not None and total >= tokens_in:
        tokens_out = total - tokens_in
    return Usage(tokens_in, tokens_out, cached=_count(wire.get("cachedContentTokenCount")), reasoning=thoughts)


def _sum(usages: Sequence[Usage]) -> Usage:
    """The usage of several exchanges, each of which is billed."""
    return Usage(
        input=_total(usage.input for usage in usages),
        output=_total(usage.output for usage in usages),
        cached=_total((usage.cached for usage in usages), missing=0),
        reasoning=_total((usage.reasoning for usage in usages), missing=0),
    )


def _total(counts: Iterable[int | None], missing: int | None = None) -> int | None:
    """The sum; None where all are unknown, and where one is that `missing` does not stand for."""
    known = list(counts)
    if all(count is None for count in known):
        return None
    filled = [missing if count is None else count for count in known]
    return None if None in filled else sum(count for count in filled if count is not None)
