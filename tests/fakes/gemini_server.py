"""A server on loopback that speaks Gemini's generateContent and streamGenerateContent; see wire.py.

    async with FakeGemini() as server:
        server.turn(turn([{"text": "Hello."}]))
        server.answer(refusal(503, "overloaded", "UNAVAILABLE"))
        server.requests[0].body["contents"]

A turn is answered whole or as a stream, as it is asked for; answers are given as they are, before any turn.
"""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Any

from tests.fakes import embeddings
from tests.fakes.gemini_rules import Wrong, check, signature
from tests.fakes.wire import Answer, FakeService, Received, Refused, crumbs, reply

KEY = "AIzaFake0123456789abcdefghijklmnopqrstu"
PATH = re.compile(
    r"/v1(?:beta)?/models/([^/:?]+):(?:generateContent|(streamGenerateContent)\?alt=sse|(batchEmbedContents))"
)


def usage(prompt: int, answer: int, *, cached: int = 0, thoughts: int = 0) -> dict[str, int]:
    """The usage block. The prompt includes what was cached; counts of zero are left out, as the service does."""
    counts = {
        "promptTokenCount": prompt, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer + thoughts,
        "cachedContentTokenCount": cached, "thoughtsTokenCount": thoughts,
    }  # fmt: skip
    return {name: count for name, count in counts.items() if count}


def turn(parts: list[dict[str, Any]] | None, finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    """A whole answer around one candidate; without parts it has no content at all."""
    candidate: dict[str, Any] = {"index": 0} | ({"finishReason": finish} if finish else {})
    if parts is not None:
        candidate["content"] = {"role": "model", "parts": parts}
    for name in ("finishMessage", "continuationToken"):
        if name in more:
            candidate[name] = more.pop(name)
    usual = {"usageMetadata": usage(9, 3), "modelVersion": "gemini-2.5-flash-001", "responseId": "r1"}
    return {"candidates": [candidate], **usual, **more}


def call(name: str, args: Any = None, id_: str | None = None, signed_by: str | None = None) -> dict[str, Any]:
    """A part that asks for a function, signed by a model."""
    wire = {"name": name, "args": args or {}} | ({"id": id_} if id_ else {})
    return {"functionCall": wire} | ({"thoughtSignature": signature(signed_by, wire)} if signed_by else {})


def refusal(status: int, message: str = "no", kind: str = "INVALID_ARGUMENT", *details: Any, **more: Any) -> Answer:
    """An error in the service's own shape."""
    return reply(failure(status, message, kind, *details), status, **more)


def failure(status: int, message: str, kind: str, *details: Any) -> dict[str, Any]:
    """The body of an error."""
    error = {"code": status, "message": message, "status": kind} | ({"details": list(details)} if details else {})
    return {"error": error}


def events(*documents: Any, size: int = 3, **more: Any) -> Answer:
    """Documents as a stream in crumbs, with both line ends and data of several lines."""
    text = ""
    for number, document in enumerate(documents):
        data = json.dumps(document, ensure_ascii=False, indent=1 if number % 2 else None)
        end = "\n" if number % 2 else "\r\n"
        text += "".join(f"data: {line}{end}" for line in data.split("\n")) + end
    return Answer(pieces=crumbs(text, size), content_type="text/event-stream", **more)


def streamed(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """What the service streams for an answer: text in pieces, calls whole, usage that counts up, the reason last."""
    pieces: list[dict[str, Any]] = []
    content = whole["candidates"][0].get("content", {}) if whole.get("candidates") else {}
    for part in content.get("parts", ()):
        text = part.get("text")
        cut = [text[start : start + 4] for start in range(0, len(text), 4)] if text and len(part) == 1 else []
        pieces += [{"text": piece} for piece in cut] or [part]
    common = {name: value for name, value in whole.items() if name not in ("candidates", "usageMetadata")}
    count = dict.fromkeys(whole.get("usageMetadata", ()), 1)
    chunks = [
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [piece]}}], "usageMetadata": count} | common
        for piece in pieces
    ]
    last = dict(whole)
    if whole.get("candidates"):
        end = {name: value for name, value in whole["candidates"][0].items() if name != "content"}
        last["candidates"] = [end | {"content": {"role": "model", "parts": [{"text": ""}]}} if content else end]
    return [*chunks, last]


class FakeGemini(FakeService):
    """The server; see the module."""

    def __init__(self, *, key: str | None = KEY, refusals_expected: bool = False) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self._key = key
        self._turns: deque[dict[str, Any]] = deque()
        self._given: dict[str, Any] = {}

    def turn(self, *turns: dict[str, Any]) -> None:
        """Answer with these next, in this order."""
        self._turns.extend(turns)

    def check(self, request: Received) -> None:
        """Raise Refused for what the service would not take."""
        found = PATH.fullmatch(request.path)
        asks_for_models = (request.method, request.path.partition("?")[0]) == ("GET", "/v1beta/models")
        if (request.method != "POST" or found is None) and not asks_for_models:
            raise Refused(request.path, refusal(404, f"{request.path} is not found.", "NOT_FOUND"))
        if self._key is not None and request.headers.get("x-goog-api-key") != self._key:
            reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            message = f"API key not valid: {request.headers.get('x-goog-api-key')}. Please pass a valid API key."
            raise Refused("the key", refusal(400, message, "INVALID_ARGUMENT", reason))
        if found is None:
            return
        try:
            if found[3]:
                embeddings.check_gemini(found[1], request.body)
                return
            check(found[1], request.body)
            self._check_continuation(request.body)
        except (Wrong, embeddings.Wrong) as wrong:
            raise Refused(str(wrong), refusal(400, str(wrong))) from None

    def usual(self, request: Received) -> Answer:
        """The next turn, as a stream where one is asked for; the models that there are."""
        if request.method == "GET":
            return reply({"models": [{"name": "models/gemini-2.5-flash"}, {"name": "models/gemini-2.5-pro"}]})
        found = PATH.fullmatch(request.path)
        if found is not None and found[3]:
            return reply(embeddings.answer_gemini(found[1], request.body))
        whole = self._turns.popleft() if self._turns else turn([{"text": "ok"}])
        for candidate in whole.get("candidates", ()):
            if "continuationToken" in candidate:
                self._given[candidate["continuationToken"]] = _without_token(request.body)
        return events(*streamed(whole)) if "stream" in request.path else reply(whole)

    def _check_continuation(self, body: dict[str, Any]) -> None:
        """A token goes with the request that it was given for, unchanged."""
        token = body.get("continuationToken")
        if token is not None and self._given.get(token) != _without_token(body):
            raise Wrong("Invalid continuation token.")


def _without_token(body: dict[str, Any]) -> dict[str, Any]:
    """The rest of a request; a message without fields is as good as none."""
    return {name: value for name, value in body.items() if name != "continuationToken" and value != {}}
