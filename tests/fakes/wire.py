"""What fake services share: HTTP/1.1 on loopback, answers in order, streams in awkward pieces, failures to order.

A fake is a `FakeService` with two methods: `check` raises Refused for a request that the service would not take, and
`usual` makes the answer where none was ordered. What was refused fails the test at the end of the block, unless the
fake was made with `refusals_expected=True`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


class Refused(Exception):
    """What the service would answer to a bad request: `answer` in its own shape."""

    def __init__(self, message: str, answer: Answer) -> None:
        super().__init__(message)
        self.answer = answer


@dataclass(frozen=True)
class Answer:
    """What the server sends.

    `pieces`: the body in pieces of its own, sent one by one in chunked encoding; `cut`: the connection is closed after
    the body without saying so; `hang`: nothing follows the pieces (without any, not even a status) until the client
    has gone. `gate`: nothing is sent before it opens, and `hanging` tells that it is waited for.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str | None = "application/json"
    pieces: tuple[bytes, ...] = ()
    cut: bool = False
    hang: bool = False
    gate: asyncio.Event | asyncio.Barrier | None = None


@dataclass(frozen=True)
class Received:
    """A request as it came; header names in lower case, the body as JSON (None where there was none).

    Other bodies, where the service takes them, are text.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any


def reply(document: Any, status: int = 200, **more: Any) -> Answer:
    """A document as JSON."""
    return Answer(status, json.dumps(document).encode(), **more)


def crumbs(text: str | bytes, size: int = 3) -> tuple[bytes, ...]:
    """A body in pieces of `size` bytes: they end inside characters, escapes and line ends.

    Halves of surrogate pairs are written as JSON's escapes.
    """
    whole = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    return tuple(whole[start : start + size] for start in range(0, len(whole), size))


class FakeService:
    """The server; see the module. `hanging` and `left` tell of a request that waits and of a client that went.

    `json_only`: a body of another type fails the connection.
    """

    json_only = True

    def __init__(self, *, refusals_expected: bool = False) -> None:
        self.requests: list[Received] = []
        self.refused: list[str] = []
        self.connections = 0
        self.hanging = asyncio.Event()
        self.left = asyncio.Event()
        self.tls: ssl.SSLContext | None = None
        self._refusals_expected = refusals_expected
        self._answers: deque[Answer] = deque()
        self._busy: set[asyncio.Task[None]] = set()

    def check(self, request: Received) -> None:
        """Raise Refused for what the service would not take."""

    def usual(self, request: Received) -> Answer:
        """The answer to a request that is in order."""
        return reply({})

    @property
    def address(self) -> str:
        """The server's root, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, *answers: Answer) -> None:
        """Give these next, in this order."""
        self._answers.extend(answers)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
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
            self.left.set()  # between two requests, or in the middle of an answer
        except asyncio.CancelledError:
            pass  # the block ends; asyncio would report a task of a connection that ends cancelled
        finally:
            writer.close()
            self._busy.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        request = await _read(reader, self.json_only)
        self.requests.append(request)
        answer = self._choose(request)
        if answer.gate is not None:
            self.hanging.set()
            await answer.gate.wait()
        if not answer.hang or answer.pieces:
            await _write(writer, answer)
        if answer.hang:
            self.hanging.set()
            await reader.read()
            self.left.set()
        return not answer.hang and not answer.cut

    def _choose(self, request: Received) -> Answer:
        try:
            self.check(request)
        except Refused as refused:
            self.refused.append(str(refused))
            return refused.answer
        return self._answers.popleft() if self._answers else self.usual(request)


async def _read(reader: asyncio.StreamReader, json_only: bool) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.rstrip().split("\r\n")
    method, path, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode(errors="surrogateescape")
    is_json = headers.get("content-type") == "application/json"
    assert not body or is_json or not json_only
    return Received(method, path, headers, (json.loads(body) if is_json else body) if body else None)


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    framing = {"transfer-encoding": "chunked"} if answer.pieces else {"content-length": str(_length(answer))}
    headers = framing | {"x-request-id": "req_1", **answer.headers}
    if answer.content_type is not None:
        headers["content-type"] = answer.content_type
    lines = (f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in headers.items()), "", "")
    writer.write("\r\n".join(lines).encode("latin-1"))
    writer.writelines(_chunks(answer.pieces) if answer.pieces else [answer.body])
    if answer.pieces and not answer.hang and not answer.cut:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


def _length(answer: Answer) -> int:
    return len(answer.body) + answer.cut  # one byte more is promised than comes


def _chunks(pieces: Iterable[bytes]) -> Iterable[bytes]:
    return (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
