"""A server on loopback that speaks OpenAI's chat completions and refuses what the service refuses.

    async with FakeOpenAI() as server:
        server.answer(refusal(429, headers={"retry-after": "1"}), completion("Hello."))
        ...
        server.requests[0].body["messages"]

Answers are given in order, then `completion("ok")` again and again. A request that the service would refuse gets its
400, and fails the test at the end of the block unless the server was made with `refusals_expected=True`.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.openai_rules import Refused, check

KEY = "sk-fake-0123456789abcdef"


@dataclass(frozen=True)
class Answer:
    """What the server sends. `cut`: close the connection after so many bytes of the body; `hang`: never send any."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str | None = "application/json"
    cut: int | None = None
    hang: bool = False


@dataclass(frozen=True)
class Received:
    """A request as it came; header names in lower case."""

    path: str
    headers: dict[str, str]
    body: Any


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


def calls(*functions: tuple[str, str, str], finish: str = "tool_calls") -> Answer:
    """A reply that asks for functions, each `(id, name, arguments)`."""
    wire = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in functions
    ]
    return document({"tool_calls": wire}, finish, usage(90, 21))


def refusal(
    status: int,
    message: str = "no",
    *,
    type_: str = "invalid_request_error",
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An error in the service's own shape."""
    error = {"message": message, "type": type_, "param": param, "code": code}
    return Answer(status, json.dumps({"error": error}).encode(), headers or {})


class FakeOpenAI:
    """The server; see the module. `requests` holds what came, `hanging` and `left` tell of a request that waits."""

    def __init__(self, *, key: str | None = KEY, refusals_expected: bool = False) -> None:
        self.requests: list[Received] = []
        self.refused: list[str] = []
        self.connections = 0
        self.hanging = asyncio.Event()
        self.left = asyncio.Event()
        self._key = key
        self._refusals_expected = refusals_expected
        self._answers: deque[Answer] = deque()
        self._busy: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """What OPENAI_BASE_URL is set to."""
        return f"http://127.0.0.1:{self._port}/v1"

    def answer(self, *answers: Answer) -> None:
        """Give these next, in this order."""
        self._answers.extend(answers)

    async def __aenter__(self) -> FakeOpenAI:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._server.close()
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        await self._server.wait_closed()
        if kind is None and not self._refusals_expected:
            assert not self.refused, f"the service would refuse this: {self.refused}"

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away between two requests
        finally:
            writer.close()
            self._busy.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        request = await _read(reader)
        self.requests.append(request)
        answer = self._choose(request)
        if answer.hang:
            self.hanging.set()
            await reader.read()
            self.left.set()
            return False
        writer.write(_head(answer) + answer.body[: answer.cut])
        await writer.drain()
        return answer.cut is None

    def _choose(self, request: Received) -> Answer:
        if request.path != "/v1/chat/completions":
            return refusal(404, f"Unknown request URL: POST {request.path}")
        if self._key is not None and request.headers.get("authorization") != f"Bearer {self._key}":
            return refusal(401, f"Incorrect API key: {request.headers.get('authorization')}", code="invalid_api_key")
        try:
            check(request.body)
        except Refused as problem:
            self.refused.append(str(problem))
            return refusal(400, str(problem), param=problem.param, code=problem.code)
        return self._answers.popleft() if self._answers else completion("ok")


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.rstrip().split("\r\n")
    method, path, _ = line.split(" ")
    assert method == "POST"
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    assert headers["content-type"] == "application/json"
    body = await reader.readexactly(int(headers["content-length"]))
    return Received(path, headers, json.loads(body.decode()))


def _head(answer: Answer) -> bytes:
    headers = {"content-length": str(len(answer.body)), "x-request-id": "req_1", **answer.headers}
    if answer.content_type is not None:
        headers["content-type"] = answer.content_type
    lines = [f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
