"""A server on loopback that speaks chat completions as OpenAI, OpenRouter or Together do; see wire.py.

    async with FakeOpenAI() as server:
        server.turn(completion("Hello."))
        server.answer(refusal(429, headers={"retry-after": "1"}))
        server.requests[0].body["messages"]

A turn is answered whole or as a stream, as it is asked for; answers are given as they are, before any turn. OpenAI has
the responses API, too: its turns are those of openai_responses.py.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from tests.fakes import embeddings, openai_responses, openai_responses_rules
from tests.fakes.openai_rules import Refused as Wrong
from tests.fakes.openai_rules import Service, check
from tests.fakes.wire import Answer, FakeService, Received, Refused, crumbs, reply

KEY = "sk-fake-0123456789abcdef"
BASES: dict[Service, str] = {"openai": "/v1", "openrouter": "/api/v1", "together": "/v1"}


def document(message: dict[str, Any], finish: str | None = "stop", usage: Any = None, **more: Any) -> Answer:
    """A whole `chat.completion` around one assistant message."""
    message = {"role": "assistant", "content": None, "refusal": None, "annotations": []} | message
    choice = {"index": 0, "finish_reason": finish, "logprobs": None, "message": message}
    body: dict[str, Any] = {
        "id": "chatcmpl-x", "object": "chat.completion", "created": 1764000000, "model": "gpt-4.1-mini-2025-04-14",
        "choices": [choice], "service_tier": "default", "system_fingerprint": "fp_x",
    }  # fmt: skip
    if usage is not None:
        body["usage"] = usage
    return Answer(body=json.dumps(body | more).encode())


def usage(prompt: int, completion: int, *, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """The usage block: totals include the cached and the reasoning tokens."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
    }


def completion(text: str | None, finish: str | None = "stop") -> Answer:
    """A reply of text."""
    return document({"content": text}, finish, usage(9, 3))


def calls(*functions: tuple[str, str, str], finish: str = "tool_calls", **message: Any) -> Answer:
    """A reply that asks for functions, each `(id, name, arguments)`."""
    wire = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in functions
    ]
    return document({"tool_calls": wire} | message, finish, usage(90, 21))


def refusal(
    status: int,
    message: str = "no",
    *,
    type_: str = "invalid_request_error",
    param: str | None = None,
    code: str | int | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Answer:
    """An error in the service's own shape."""
    error = {"message": message, "type": type_, "param": param, "code": code} | more
    return Answer(status, json.dumps({"error": error}).encode(), headers or {})


# --- streams ----------------------------------------------------------------------------------------------------------


def events(*chunks: Any, done: bool = True, comments: bool = False, size: int = 3, **more: Any) -> Answer:
    """Chunks (or raw data) as a stream in crumbs, with both line ends, data of several lines, comments to order."""
    text = ""
    for number, chunk in enumerate((*chunks, *(["[DONE]"] if done else []))):
        whole = isinstance(chunk, str)
        data = chunk if whole else json.dumps(chunk, ensure_ascii=False, indent=1 if number % 2 else None)
        end = "\n" if number % 2 else "\r\n"
        text += ": OPENROUTER PROCESSING\n\n" if comments else ""
        text += "".join(f"data: {line}{end}" for line in data.split("\n")) + end
    return Answer(pieces=crumbs(text, size), content_type="text/event-stream", **more)


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One `chat.completion.chunk`."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish, "logprobs": None}
    usual = {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1764000000, "obfuscation": "xyz"}
    return usual | {"model": "gpt-4.1-mini-2025-04-14", "choices": [choice], "usage": None} | more


def chunks(whole: Answer, *, with_usage: bool = True) -> list[dict[str, Any]]:
    """What a service streams for a completion: texts in pieces, calls piece by piece beside each other, then usage."""
    body = json.loads(whole.body)
    choice = body["choices"][0]
    message, named = choice["message"], {"model": body["model"]}
    found = [chunk({"role": "assistant", "content": ""}, **named)]
    for detail in message.get("reasoning_details", ()):
        found += [chunk({"reasoning_details": [piece]}, **named) for piece in _pieces_of(detail)]
    for name in ("content", "refusal"):
        found += [chunk({name: piece}, **named) for piece in _cut(message.get(name) or "")]
    found += [chunk({"tool_calls": [piece]}, **named) for piece in _fragments(message.get("tool_calls", ()))]
    found.append(chunk({}, choice["finish_reason"], **named))
    if with_usage and "usage" in body:
        found.append(chunk(choices=[], usage=body["usage"], **named))
    return found


def _cut(text: str) -> list[str]:
    return [text[start : start + 4] for start in range(0, len(text), 4)]


def _pieces_of(detail: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Reasoning text comes in pieces, its signature with the last; other kinds come whole."""
    rest = {name: value for name, value in detail.items() if name not in ("text", "signature")}
    for piece in _cut(detail.get("text", "")):
        yield rest | {"text": piece}
    yield rest | ({"text": "", "signature": detail["signature"]} if "signature" in detail else {})


def _fragments(asked: Any) -> Iterator[dict[str, Any]]:
    """Ids and names come first, with empty arguments; then the arguments of all calls in turns."""
    for index, call in enumerate(asked):
        yield {"index": index, **call, "function": call["function"] | {"arguments": ""}}
    for row in zip_longest(*(_cut(call["function"]["arguments"]) for call in asked)):
        for index, piece in enumerate(row):
            if piece is not None:
                yield {"index": index, "function": {"arguments": piece}}


class FakeOpenAI(FakeService):
    """The server; see the module. OpenRouter takes a turn's reasoning back only as it has given it.

    `responses`: whether it has that API, which only OpenAI's own and few others have.
    """

    def __init__(
        self,
        service: Service = "openai",
        *,
        key: str | None = KEY,
        refusals_expected: bool = False,
        responses: bool | None = None,
    ) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self._service: Service = service
        self._key = key
        self._responses = service == "openai" if responses is None else responses
        self._turns: deque[tuple[Answer, bool]] = deque()
        self._given: list[Any] = []
        self._items: dict[str, list[dict[str, Any]]] = {}

    @property
    def url(self) -> str:
        """What the variable with the service's address is set to."""
        return self.address + BASES[self._service]

    def turn(self, *turns: Answer, whole: bool = False) -> None:
        """Answer with these completions or responses next, in this order; `whole` where a stream is asked for, too."""
        self._turns.extend((turn, whole) for turn in turns)

    def check(self, request: Received) -> None:
        """Raise Refused for what the service would not take."""
        path = request.path.removeprefix(BASES[self._service])
        known = {
            "POST /chat/completions",
            "POST /embeddings",
            "GET /models",
            *(["POST /responses"] if self._responses else []),
        }
        if self._service == "openrouter":
            known.add("GET /key")
        if f"{request.method} {path}" not in known:
            message = f"Invalid URL ({request.method} {request.path})"
            raise Refused(message, refusal(404, message))
        sent = request.headers.get("authorization")
        is_open = (self._service, path) == ("openrouter", "/models")  # for everybody
        if self._key is not None and sent != f"Bearer {self._key}" and not is_open:
            raise Refused("the key", refusal(401, f"Incorrect API key: {sent}", code="invalid_api_key"))
        if request.method == "GET":
            return
        try:
            if path == "/embeddings":
                embeddings.check_openai(request.body)
            elif path == "/responses":
                openai_responses_rules.check(request.body, self._items)
            else:
                check(request.body, self._service)
                self._check_reasoning(request.body)
        except embeddings.Wrong as wrong:
            status = 404 if "does not exist" in str(wrong) else 400
            raise Refused(str(wrong), refusal(status, str(wrong), param="input")) from None
        except Wrong as wrong:
            answer = refusal(wrong.status, str(wrong), param=wrong.param, code=wrong.code)
            raise Refused(str(wrong), answer) from None

    def usual(self, request: Received) -> Answer:
        """The next turn, as a stream where one is asked for; the models that there are, what is known of the key."""
        if request.path.endswith("/key"):
            return reply({"data": {"label": "a key", "limit": None}})
        if request.path.endswith("/models"):
            listed = [{"id": "gpt-4o-mini", "object": "model"}, {"id": "gpt-4o", "object": "model"}]
            return reply(listed if self._service == "together" else {"object": "list", "data": listed})
        if request.path.endswith("/embeddings"):
            return reply(embeddings.answer_openai(request.body))
        if request.path.endswith("/responses"):
            return self._response(request)
        answer, whole = self._turns.popleft() if self._turns else (completion("ok"), False)
        self._given += json.loads(answer.body)["choices"][0]["message"].get("reasoning_details", ())
        if whole or not request.body.get("stream"):
            return answer
        # Only OpenAI wants to be asked for a stream's usage.
        asked = self._service != "openai" or request.body.get("stream_options", {}).get("include_usage")
        return events(*chunks(answer, with_usage=bool(asked)), comments=self._service == "openrouter")

    def _response(self, request: Received) -> Answer:
        usual = openai_responses.response(openai_responses.message("ok"))
        answer, whole = self._turns.popleft() if self._turns else (usual, False)
        body = json.loads(answer.body)
        self._items |= {item["id"]: body["output"] for item in body["output"]}
        if whole or not request.body.get("stream"):
            return answer
        return openai_responses.stream(openai_responses.events(body))

    def _check_reasoning(self, body: dict[str, Any]) -> None:
        for message in body["messages"]:
            for detail in message.get("reasoning_details", ()):
                if detail not in self._given:
                    raise Wrong(f"Invalid signature in reasoning_details: {detail}")
