"""A server on loopback that speaks Ollama's `/api/chat` and `/api/embed`.

    async with FakeOllama() as server:
        server.answer(refusal(503, "server busy"), *turn("Hello."))

An ordered answer must fit the request: `turn(…).streamed` to one that streams, `turn(…).whole` to one that does not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.fakes import embeddings
from tests.fakes.ollama_rules import check, refuse
from tests.fakes.wire import Answer, FakeService, Received, crumbs, reply

NDJSON = "application/x-ndjson"
COUNTS = {"prompt_eval_count": 9, "eval_count": 3}
DURATIONS = {
    "total_duration": 5_000_000, "load_duration": 1_000_000, "prompt_eval_duration": 2_000_000,
    "eval_duration": 2_000_000,
}  # fmt: skip


@dataclass(frozen=True)
class Turn:
    """One turn of the assistant, as it is sent whole and as it is streamed."""

    messages: tuple[dict[str, Any], ...]
    reason: str = "stop"
    counts: dict[str, int] | None = None
    ended: bool = True

    @property
    def whole(self) -> Answer:
        """All in one document."""
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        for part in self.messages:
            for name, value in part.items():
                message[name] = message.get(name, type(value)()) + value
        return reply(_document(message) | self._end())

    @property
    def streamed(self) -> Answer:
        """A line for each part and one for the end, in pieces that end anywhere."""
        return stream(
            *(_document({"role": "assistant", "content": ""} | part) for part in self.messages), *self._last()
        )

    def _last(self) -> tuple[dict[str, Any], ...]:
        return (_document({"role": "assistant", "content": ""}) | self._end(),) if self.ended else ()

    def _end(self) -> dict[str, Any]:
        if not self.ended:
            return {}
        return {"done": True, "done_reason": self.reason} | DURATIONS | (COUNTS if self.counts is None else self.counts)


def text(*parts: str, **more: Any) -> Turn:
    """A reply of text."""
    return Turn(tuple({"content": part} for part in parts), **more)


def calls(*functions: tuple[str, Any], content: str = "", **more: Any) -> Turn:
    """A reply that asks for functions, each `(name, arguments)`; streamed, each has a line of its own."""
    asked = (
        {"tool_calls": [{"function": {"index": 0, "name": name, "arguments": given}}]} for name, given in functions
    )
    return Turn((*([{"content": content}] if content else ()), *asked), **more)


def stream(*documents: Any, size: int = 3, **more: Any) -> Answer:
    """Documents (or raw lines) as a stream of lines."""
    lines = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in documents)
    return Answer(pieces=crumbs("".join(f"{line}\n" for line in lines), size), content_type=NDJSON, **more)


def refusal(status: int, message: str = "no", **more: Any) -> Answer:
    """An error in Ollama's shape."""
    return reply({"error": message}, status, **more)


class FakeOllama(FakeService):
    """The server. It has the models llama3:8b and gemma (which takes no tools); `key` is asked for where it is set."""

    def __init__(self, *, key: str | None = None, refusals_expected: bool = False) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self._key = key
        self.models = {"llama3:8b", "gemma"}

    @property
    def host(self) -> str:
        """What OLLAMA_HOST is set to."""
        return f"127.0.0.1:{self.port}"

    def check(self, request: Received) -> None:
        if (request.method, request.path) not in (("POST", "/api/chat"), ("POST", "/api/embed"), ("GET", "/api/tags")):
            raise refuse("404 page not found", 404)
        if self._key is not None and request.headers.get("authorization") != f"Bearer {self._key}":
            raise refuse("unauthorized", 401)
        if request.path == "/api/embed":
            try:
                embeddings.check_ollama(request.body)
            except embeddings.Wrong as wrong:
                raise refuse(str(wrong), 404 if "not found" in str(wrong) else 400) from None
        elif request.method == "POST":
            check(request.body, self.models, {"gemma"})

    def usual(self, request: Received) -> Answer:
        if request.method == "GET":
            return reply({"models": [{"name": name, "model": name} for name in sorted(self.models)]})
        if request.path == "/api/embed":
            return reply(embeddings.answer_ollama(request.body))
        turn = text("o", "k")
        return turn.streamed if request.body["stream"] else turn.whole


def _document(message: dict[str, Any]) -> dict[str, Any]:
    return {"model": "llama3:8b", "created_at": "2026-11-30T10:00:00.000000Z", "message": message, "done": False}
