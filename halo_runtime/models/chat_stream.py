"""A stream of chat completions: its chunks as the `chat.completion` that would have come without. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import OnDelta
from halo_runtime.models.chat import Fail, check_reported, count, raw_text
from halo_runtime.models.endings import Refuse
from halo_runtime.models.streams import Event, Events
from halo_runtime.models.surrogates import Mended, valid_text

_DONE: Final = "[DONE]"
_GROWING: Final = frozenset({"reasoning.text", "reasoning.summary"})
"""Kinds of reasoning that come in pieces; others come whole."""


class CompletionStream:
    """Puts a completion together from its chunks; `on_delta` gets its text as it comes.

    The end is `[DONE]`. Servers that do not send it end with a reason to finish, after which only usage can follow.
    """

    def __init__(self, on_delta: OnDelta | None, refuse: Refuse, fail: Fail) -> None:
        self._shown = Mended(on_delta)
        self._refuse = refuse
        self._fail = fail
        self._events = Events()
        self._done = False
        self._model: Json = None
        self._usage: Json = None
        self._finish: Json = None
        self._error: Json = None
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._calls = _Calls()
        self._reasoning: list[JsonObject] = []

    def receive(self, part: bytes) -> bool:
        """Take the next bytes; true when nothing that counts can follow."""
        self._take_events(self._events.feed(part))
        return self._done

    def document(self) -> JsonObject:
        """The completion; raises what `refuse` makes for a stream that ended before it was complete."""
        self._take_events(self._events.end())
        if not self._done and self._finish is None:
            raise self._refuse("ended its stream before its answer was complete", retryable=True)
        self._shown.end()
        message: JsonObject = {
            "content": "".join(self._content) or None,
            "refusal": "".join(self._refusal) or None,
            "tool_calls": self._calls.documents(),
            "reasoning_details": self._reasoning,
        }
        choice: JsonObject = {"message": message, "finish_reason": self._finish, "error": self._error}
        return {"model": self._model, "choices": [choice], "usage": self._usage}

    def _take_events(self, events: list[Event]) -> None:
        for event in events:
            if self._done or event.data.strip() == _DONE:
                self._done = True
                return
            try:
                chunk: Json = json.loads(event.data)
            except (ValueError, RecursionError):
                raise self._refuse("streamed an event that is no JSON", retryable=True) from None
            if is_object(chunk):
                self._take({"error": chunk} if event.name == "error" and "error" not in chunk else chunk)

    def _take(self, chunk: JsonObject) -> None:
        check_reported(chunk, self._refuse, self._fail)
        self._model = self._model or chunk.get("model")
        self._usage = chunk.get("usage") or self._usage
        choices: Json = chunk.get("choices")
        for choice in choices if is_list(choices) else ():
            if is_object(choice) and not choice.get("index"):
                self._take_choice(choice)

    def _take_choice(self, choice: JsonObject) -> None:
        self._finish = choice.get("finish_reason") or self._finish
        self._error = choice.get("error") or self._error
        delta: Json = choice.get("delta")
        if not is_object(delta):
            return
        self._tell(self._content, raw_text(delta.get("content")))
        self._tell(self._refusal, raw_text(delta.get("refusal")))
        for call in _objects(delta.get("tool_calls")):
            self._calls.take(call)
        for detail in _objects(delta.get("reasoning_details")):
            _grow(self._reasoning, detail)

    def _tell(self, texts: list[str], text: str | None) -> None:
        if text:
            texts.append(text)
            self._shown.feed(text)


@dataclass
class _Call:
    """A call that grows: its id and name come once, its arguments in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def is_over(self, id_: str, name: str) -> bool:
        """Whether a fragment with this id and name begins another call, for some servers give all the same index."""
        if id_ and self.id:
            return id_ != self.id
        return bool(name and self.name) and self._is_whole()

    def document(self) -> JsonObject:
        return {"id": self.id, "function": {"name": self.name, "arguments": "".join(self.arguments)}}

    def _is_whole(self) -> bool:
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


class _Calls:
    """The calls of a stream, told apart by their index, by their id where there is none."""

    def __init__(self) -> None:
        self._all: list[_Call] = []
        self._at: dict[int, _Call] = {}

    def take(self, fragment: JsonObject) -> None:
        """Add a fragment; the first id and name that are no empty text count."""
        function: Json = fragment.get("function")
        function = function if is_object(function) else {}
        id_, name = _word(fragment.get("id")), _word(function.get("name"))
        call = self._meant(count(fragment.get("index")), id_, name)
        call.id, call.name = call.id or id_, call.name or name
        arguments: Json = function.get("arguments")
        text = json.dumps(arguments, ensure_ascii=False) if is_object(arguments) else raw_text(arguments)
        call.arguments += [text] if text else []

    def documents(self) -> list[JsonObject]:
        """The calls as a whole message has them."""
        return [call.document() for call in self._all]

    def _meant(self, index: int | None, id_: str, name: str) -> _Call:
        if index is not None:
            call = self._at.get(index)
        else:
            last = self._all[-1] if self._all else None
            call = next((call for call in self._all if id_ and call.id == id_), last)
        if call is None or call.is_over(id_, name):
            call = _Call()
            self._all.append(call)
            if index is not None:
                self._at[index] = call
        return call


def _grow(details: list[JsonObject], piece: JsonObject) -> None:
    """Add a piece of reasoning: to the one before where that is the same."""
    last = details[-1] if details else {}
    if _word(piece.get("type")) not in _GROWING or any(last.get(name) != piece.get(name) for name in ("type", "index")):
        details.append(dict(piece))
        return
    for name, value in piece.items():
        if name in ("text", "summary") and isinstance(value, str):
            last[name] = _word(last.get(name)) + value
        elif value is not None:
            last[name] = value


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if is_object(item)] if is_list(value) else []


def _word(value: Json) -> str:
    return valid_text(value) if isinstance(value, str) else ""
