"""The events of a streamed response as the response that would have come without. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.base import OnDelta
from halo_runtime.models.chat import Fail, count
from halo_runtime.models.endings import Refuse
from halo_runtime.models.responses_reply import check_response
from halo_runtime.models.responses_request import is_answer
from halo_runtime.models.streams import Event, Events
from halo_runtime.models.surrogates import Mended

_DONE: Final = "[DONE]"
"""Not OpenAI's, but some servers end every stream with it."""
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
_TEXTS: Final = ("response.output_text.delta", "response.refusal.delta")


class ResponseStream:
    """Puts a response together from its events; `on_delta` gets the text of its answer as it comes.

    The last event holds the whole response. Where it leaves the items out, those count that were told as done.
    """

    def __init__(self, on_delta: OnDelta | None, refuse: Refuse, fail: Fail) -> None:
        self._shown = Mended(on_delta)
        self._refuse = refuse
        self._fail = fail
        self._events = Events()
        self._response: JsonObject | None = None
        self._items: dict[int, JsonObject] = {}
        self._asides: set[int | None] = set()
        self._over = False
        self._handlers: dict[str, Callable[[JsonObject], None]] = {
            "response.output_item.added": self._begin_item,
            "response.output_item.done": self._end_item,
            "error": self._fail_by,
            **dict.fromkeys(_TEXTS, self._tell),
            **dict.fromkeys(_ENDS, self._end),
        }

    def receive(self, part: bytes) -> bool:
        """Take the next bytes; true when the response is complete."""
        self._take_events(self._events.feed(part))
        return self._over

    def document(self) -> JsonObject:
        """The response; raises what `refuse` makes for a stream that ended before it was complete."""
        self._take_events(self._events.end())
        if self._response is None:
            raise self._refuse("ended its stream before its answer was complete", retryable=True)
        self._shown.end()
        items = self._response.get("output") or [self._items[place] for place in sorted(self._items)]
        return self._response | {"output": items}

    def _take_events(self, events: list[Event]) -> None:
        for event in events:
            if self._over or event.data.strip() == _DONE:
                self._over = True
                return
            try:
                document: Json = json.loads(event.data)
            except (ValueError, RecursionError):
                raise self._refuse("streamed an event that is no JSON", retryable=True) from None
            if is_object(document):
                self._take(event.name, document)

    def _take(self, name: str, document: JsonObject) -> None:
        kind: Json = document.get("type")
        handle = self._handlers.get(kind if isinstance(kind, str) and kind in self._handlers else name)
        if handle is not None:
            handle(document)
        elif document.get("error"):  # in whatever event a gateway reports it
            self._fail_by(document)

    def _begin_item(self, event: JsonObject) -> None:
        item: Json = event.get("item")
        if is_object(item) and item.get("type") == "message" and not is_answer(item):
            self._asides.add(count(event.get("output_index")))

    def _end_item(self, event: JsonObject) -> None:
        item: Json = event.get("item")
        place = count(event.get("output_index"))
        if is_object(item):
            self._items[len(self._items) if place is None else place] = item

    def _tell(self, event: JsonObject) -> None:
        text: Json = event.get("delta")
        aside = count(event.get("output_index")) in self._asides
        if isinstance(text, str) and text and not aside:
            self._shown.feed(text)

    def _end(self, event: JsonObject) -> None:
        response: Json = event.get("response")
        self._response = response if is_object(response) else {}
        self._over = True

    def _fail_by(self, event: JsonObject) -> None:
        """Raise for an `error` event: the error itself, or an object that holds it."""
        inner: Json = event.get("error")
        error = inner if is_object(inner) else {name: event.get(name) for name in ("code", "message", "param")}
        check_response({"status": "failed", "error": error}, self._refuse, self._fail)
