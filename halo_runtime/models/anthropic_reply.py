"""A message of Anthropic's as a ModelReply, and the events of a stream as the message that would have come without.

Blocks are told by their type and never by their place: newer models think first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.anthropic_request import WIRE, made_after, told, tool_input
from halo_runtime.models.base import ModelReply, OnDelta, Stop, ToolCall, Usage
from halo_runtime.models.chat import (
    MAX_TOLD,
    NO_TOKENS_LEFT,
    TRUNCATED_CALL,
    ToolNames,
    count,
    told_failure,
)
from halo_runtime.models.endings import WARNINGS, Refuse, check_ended
from halo_runtime.models.spending import used
from halo_runtime.models.streams import Event, Events
from halo_runtime.models.surrogates import Mended, valid_text

_STOPS: Final[dict[str, Stop]] = {
    "max_tokens": "length",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_overflow",
}
"""Reasons to stop that mean more than an end; the service may invent others."""

_WARNINGS: Final[dict[str, str]] = {
    "max_tokens": WARNINGS["length"],
    "model_context_window_exceeded": "the reply was cut off where the model's context was full",
    "pause_turn": "the service paused in the middle of its turn; the reply is not whole",
}
_PLAIN: Final = frozenset({"text", "tool_use"})
"""Blocks that can be made anew from a reply's text and calls."""


def read_reply(document: JsonObject, body: JsonObject, names: ToolNames, refuse: Refuse) -> ModelReply:
    """The reply in the message that answers `body`; raises what `refuse` makes where there is none of any use."""
    with used(usage_of(document.get("usage"))):
        return _read(document, body, names, refuse)


def _read(document: JsonObject, body: JsonObject, names: ToolNames, refuse: Refuse) -> ModelReply:
    content = _blocks(document, refuse)
    reason = _word(document.get("stop_reason"))
    stop = _STOPS.get(reason, "end")
    text, _ = told(content)
    if stop == "refusal":  # its calls are not made
        check_ended(stop, refuse, _explanation(document))
    calls = _tool_calls(content, names)
    warning = _WARNINGS.get(reason)
    if stop in ("length", "context_overflow"):
        _check_complete(content, text, reason, refuse)
        check_ended("tool" if calls else stop, refuse)
    elif not text and not calls and not _follows_results(body):
        problem = f"answered with an empty message (stop_reason {json.dumps(reason)})"
        raise refuse(problem, retryable=True, code="empty_response")
    model: Json = document.get("model")
    return ModelReply(
        text=text,
        tool_calls=calls,
        stop="tool" if calls else stop,
        usage=usage_of(document.get("usage")),
        model_used=model if isinstance(model, str) else None,
        warnings=(warning,) if warning else (),
        opaque=_opaque(content, body),
    )


def usage_of(usage: Json) -> Usage:
    """Tokens as Halo counts them: the service's `input_tokens` leave out what was read from and put into its cache."""
    if not is_object(usage):
        return Usage()
    uncached, cached = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    details: Json = usage.get("output_tokens_details")
    return Usage(
        input=None if uncached is None else uncached + (cached or 0) + (written or 0),
        output=count(usage.get("output_tokens")),
        cached=cached,
        reasoning=count(details.get("thinking_tokens")) if is_object(details) else None,
        cache_written=written,
    )


# --- a message --------------------------------------------------------------------------------------------------------


def _blocks(document: JsonObject, refuse: Refuse) -> list[JsonObject]:
    content: Json = document.get("content")
    if not is_list(content):
        raise refuse(f"answered without any content{told_failure(document.get('error'))}")
    return [block for block in content if is_object(block)]


def _tool_calls(content: list[JsonObject], names: ToolNames) -> tuple[ToolCall, ...]:
    originals = {wire: name for name, wire in names.items()}
    found: dict[str, ToolCall] = {}
    for block in content:
        name, id_ = block.get("name"), block.get("id")
        if block.get("type") != "tool_use" or not isinstance(name, str):
            continue
        if not isinstance(id_, str) or not id_ or id_ in found:
            id_ = f"call_{len(found)}"
        found[id_] = ToolCall(id_, originals.get(name, name), _arguments(block.get("input")))
    return tuple(found.values())


def _arguments(value: Json) -> str:
    """A call's arguments as text. Text they are only where a stream brought what is no JSON object."""
    if isinstance(value, str):
        return valid_text(value)
    return valid_text(json.dumps(value or {}, ensure_ascii=False))


def _check_complete(content: list[JsonObject], text: str, reason: str, refuse: Refuse) -> None:
    """Refuse what a limit cut short of any use. A call that ends such a reply may lack half its arguments."""
    if content and content[-1].get("type") == "tool_use":
        raise refuse(TRUNCATED_CALL, code="truncated_tool_call")
    if not text and reason == "max_tokens":
        raise refuse(NO_TOKENS_LEFT, code="output_limit")
    if not text:
        problem = "had no room left for an answer in the model's context; give it less to read"
        raise refuse(problem, code="context_overflow")


def _explanation(document: JsonObject) -> str:
    details: Json = document.get("stop_details")
    said: Json = (details.get("explanation") or details.get("category")) if is_object(details) else None
    return " ".join(valid_text(said).split())[:MAX_TOLD] if isinstance(said, str) else ""


def _follows_results(body: JsonObject) -> bool:
    """Whether the request gave the results of tools, after which having nothing to say is an answer."""
    return bool(body["messages"]) and body["messages"][-1]["content"][0]["type"] == "tool_result"


def _opaque(content: list[JsonObject], body: JsonObject) -> JsonObject | None:
    """The turn for its way back, where it holds more than its text and calls. Blank text would be refused there."""
    if all(_word(block.get("type")) in _PLAIN for block in content):
        return None
    kept = [block for block in map(_sendable, content) if block.get("type") != "text" or block["text"].strip()]
    return {WIRE: {"content": kept, "after": made_after(body)}}


def _sendable(block: JsonObject) -> JsonObject:
    if block.get("type") == "text" and not isinstance(block.get("text"), str):
        return {"type": "text", "text": ""}
    return block | {"input": tool_input(_arguments(block.get("input")))} if block.get("type") == "tool_use" else block


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""


# --- a stream ---------------------------------------------------------------------------------------------------------

_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Kind of a failure within a stream → the status it would have had before it."""

_GROWING: Final = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
"""Kind of a delta → the field of it that is added to the block's field of the same name."""


@dataclass
class _Block:
    """A block that grows: fields that are texts come in pieces. `input` of the start is only a placeholder."""

    start: JsonObject
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def document(self) -> JsonObject:
        grown = {
            name: valid_text(str(self.start.get(name) or "") + "".join(texts)) for name, texts in self.pieces.items()
        }
        arguments = grown.pop("partial_json", None)
        if arguments is not None:
            grown["input"] = _parsed(arguments)
        return self.start | grown


def _parsed(arguments: str) -> Json:
    """Arguments that came in pieces, none at all for a tool without any; text that is no object stays text."""
    try:
        value: Json = json.loads(arguments.strip() or "{}")
    except (ValueError, RecursionError):
        return arguments
    return value if is_object(value) else arguments


class MessageStream:
    """Puts a message together from its events; `on_delta` gets its text as it comes."""

    def __init__(
        self, on_delta: OnDelta | None, refuse: Refuse, failure: Callable[[int, JsonObject], ModelError]
    ) -> None:
        self._shown = Mended(on_delta)
        self._refuse = refuse
        self._failure = failure
        self._events = Events()
        self._message: JsonObject = {}
        self._blocks: list[_Block] = []
        self._at: dict[int | None, _Block] = {}
        self._complete = False
        self._handlers: dict[str, Callable[[JsonObject], None]] = {
            "message_start": self._begin,
            "content_block_start": self._begin_block,
            "content_block_delta": self._grow_block,
            "message_delta": self._end,
            "message_stop": self._stop,
            "error": self._fail,
        }

    def receive(self, part: bytes) -> bool:
        """Take the next bytes; true when the message is complete."""
        self._take(self._events.feed(part))
        return self._complete

    def message(self) -> JsonObject:
        """The message; raises what `refuse` makes for a stream that ended before it was complete."""
        self._take(self._events.end())
        if not self._complete:
            raise self._refuse("ended its stream before its answer was complete", retryable=True)
        self._shown.end()
        return self._message | {"content": [block.document() for block in self._blocks]}

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if self._complete:
                return
            try:
                document: Json = json.loads(event.data)
            except (ValueError, RecursionError):
                raise self._refuse("streamed an event that is no JSON", retryable=True) from None
            if is_object(document):
                handle = self._handlers.get(_word(document.get("type")) or event.name)
                if handle is not None:  # pings, and what the service may add one day
                    handle(document)

    def _begin(self, event: JsonObject) -> None:
        message: Json = event.get("message")
        self._message = dict(message) if is_object(message) else {}

    def _begin_block(self, event: JsonObject) -> None:
        block: Json = event.get("content_block")
        started = _Block(dict(block) if is_object(block) else {})
        self._blocks.append(started)
        self._at[count(event.get("index"))] = started

    def _grow_block(self, event: JsonObject) -> None:
        block = self._at.get(count(event.get("index")), self._blocks[-1] if self._blocks else None)
        delta: Json = event.get("delta")
        if block is None or not is_object(delta):
            return
        name = _GROWING.get(_word(delta.get("type")))
        text: Json = delta.get(name) if name else None
        if name is None or not isinstance(text, str):
            return
        block.pieces.setdefault(name, []).append(text)
        if name == "text":
            self._shown.feed(text)

    def _end(self, event: JsonObject) -> None:
        """Take why the message ended, and its usage: the numbers are totals, and may leave out what was told first."""
        delta: Json = event.get("delta")
        self._message |= delta if is_object(delta) else {}
        first, last = self._message.get("usage"), event.get("usage")
        if is_object(last):
            known = first if is_object(first) else {}
            self._message["usage"] = known | {name: value for name, value in last.items() if value is not None}

    def _stop(self, _: JsonObject) -> None:
        self._complete = True

    def _fail(self, event: JsonObject) -> None:
        error: Json = event.get("error")
        kind = _word(error.get("type")) if is_object(error) else ""
        raise self._failure(_STATUSES.get(kind, 500), event)
