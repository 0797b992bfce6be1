"""A server on loopback that speaks Anthropic's messages API and refuses what the service refuses; see wire.py.

    async with FakeAnthropic() as server:
        server.answer(failure(429, "rate_limit_error", headers={"retry-after": "1"}), message(text("Hello.")))

An answer that is a message is sent whole or as a stream, as the request asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tests.fakes.anthropic_rules import Invalid, check, seal
from tests.fakes.wire import Answer, FakeService, Received, Refused, crumbs, reply

KEY = "sk-ant-fake-0123456789abcdef"
VERSIONS = {"2023-06-01", "2026-10-21"}
EVENT_STREAM = "text/event-stream; charset=utf-8"
KINDS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}


class Message(Answer):
    """A message that is sent in the way the request asks for."""


def text(content: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": content, "citations": None}


def tool_use(id_: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call."""
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def thinking(content: str = "", signature: str = "") -> dict[str, Any]:
    """A thought; the server signs those that have no signature."""
    return {"type": "thinking", "thinking": content, "signature": signature}


def usage(fresh: int, output: int, *, read: int = 0, written: int = 0, thought: int = 0) -> dict[str, Any]:
    """The usage block: `input_tokens` are those that had nothing to do with the cache."""
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": thought},
        "server_tool_use": None,
        "service_tier": "standard",
    }


def document(*blocks: dict[str, Any], stop: str | None = None, **more: Any) -> dict[str, Any]:
    """A whole message."""
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": list(blocks), "stop_reason": stop or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None, "stop_details": None, "usage": usage(9, 3),
    } | more  # fmt: skip


def message(*blocks: dict[str, Any], stop: str | None = None, **more: Any) -> Answer:
    """An answer with these blocks."""
    return Message(body=json.dumps(document(*blocks, stop=stop, **more)).encode())


def failure(
    status: int,
    kind: str = "invalid_request_error",
    said: str = "no",
    details: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An error in the service's own shape."""
    return reply(error(kind, said, details), status, headers={"request-id": "req_1", **(headers or {})})


def error(kind: str, said: str, details: Any = None) -> dict[str, Any]:
    """The body of an error, and the data of an `error` event."""
    return {"type": "error", "error": {"type": kind, "message": said, "details": details}, "request_id": "req_1"}


def event(data: dict[str, Any], *, end: str = "\n") -> str:
    """One event of a stream; non-ASCII text stays as it is, so that pieces end inside characters."""
    return f"event: {data['type']}{end}data: {json.dumps(data, ensure_ascii=False)}{end}{end}"


def stream(events: Iterable[dict[str, Any]], *, end: str = "\n", size: int = 3, **more: Any) -> Answer:
    """A stream of events in small pieces."""
    body = f": hello{end}{end}" + "".join(event(item, end=end) for item in events)
    return Answer(pieces=crumbs(body, size), content_type=EVENT_STREAM, **more)


def events(whole: dict[str, Any], step: int = 4) -> list[dict[str, Any]]:
    """The events that bring a message, its texts `step` characters at a time."""
    reported = whole["usage"] or {}
    start = whole | {"content": [], "stop_reason": None, "stop_details": None}
    if reported:
        start["usage"] = reported | {"output_tokens": 1}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        found += _block_events(index, block, step)
    delta = {name: whole.get(name) for name in ("stop_reason", "stop_sequence", "stop_details")}
    last = {"input_tokens": None, "output_tokens": reported["output_tokens"]} if reported else None
    return [*found, {"type": "message_delta", "delta": delta, "usage": last}, {"type": "message_stop"}]


def _block_events(index: int, block: dict[str, Any], step: int) -> Iterable[dict[str, Any]]:
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    start = {name: empty.get(name, value) if name != "type" else value for name, value in block.items()}
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in _deltas(block, step):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _deltas(block: dict[str, Any], step: int) -> Iterable[dict[str, Any]]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": part} for part in _parts(block["text"], step))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": part} for part in _parts(block["thinking"], step))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "tool_use":
        arguments = json.dumps(block["input"]) if block["input"] else ""
        yield from ({"type": "input_json_delta", "partial_json": part} for part in ("", *_parts(arguments, step)))


def _parts(whole: str, step: int) -> Iterable[str]:
    return (whole[start : start + step] for start in range(0, len(whole), step))


class FakeAnthropic(FakeService):
    """The server; see the module."""

    def __init__(self, *, key: str | None = KEY, refusals_expected: bool = False) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self._key = key

    @property
    def env(self) -> dict[str, str]:
        """What leads a client here."""
        return {"ANTHROPIC_BASE_URL": self.address, "ANTHROPIC_API_KEY": self._key or ""}

    def check(self, request: Received) -> None:
        """Refuse what is asked at the wrong place, without the key or a version, or against the rules."""
        asks_for_models = (request.method, request.path.partition("?")[0]) == ("GET", "/v1/models")
        if (request.method, request.path) != ("POST", "/v1/messages") and not asks_for_models:
            raise _refused(404, f"Not found: {request.method} {request.path}")
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = request.headers.get("x-api-key", bearer)
        if self._key is not None and given != self._key:
            raise _refused(401, f"invalid x-api-key: {given}")
        version = request.headers.get("anthropic-version", "")
        if version not in VERSIONS:
            raise _refused(400, "anthropic-version: header is required")
        if asks_for_models:
            return
        try:
            check(request.body, version)
        except Invalid as problem:
            raise _refused(400, str(problem)) from None

    def usual(self, request: Received) -> Answer:
        """A short message, or the models that there are."""
        if request.method == "GET":
            return reply({"data": [{"type": "model", "id": "claude-haiku-4-5"}], "has_more": False})
        return message(text("ok"))

    def _choose(self, request: Received) -> Answer:
        answer = super()._choose(request)
        if not isinstance(answer, Message):
            return answer
        whole = _signed(json.loads(answer.body), request.body)
        if request.body.get("stream"):
            return stream(events(whole))
        return replace(answer, body=json.dumps(whole).encode())


def _refused(status: int, said: str) -> Refused:
    return Refused(said, failure(status, KINDS[status], said))


def _signed(whole: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The message with its thoughts bound to what was asked."""
    for block in whole["content"]:
        if block["type"] == "thinking" and not block["signature"]:
            block["signature"] = seal(block["thinking"], body.get("system"), body.get("tools"), body["messages"])
    return whole
