"""The only way out of a browser: a forward proxy on loopback that connects as all tools do (spec 5, reference 2.11).

Whatever a page asks for (frames, scripts, redirects, web sockets, downloads) comes through here, and the address that
is connected to is looked at here, so no way of asking gets by. Bytes of https pass through as they are.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable
from contextlib import aclosing, suppress
from typing import Final
from urllib.parse import urlsplit

import h11
import httpcore

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.web.addresses import AllowedHosts
from halo_runtime.tools.web.client import clean
from halo_runtime.tools.web.network import CONNECT_SECONDS, GuardedNetwork, Resolve, look_up

MAX_PAGE_BYTES: Final = 64 << 20
"""What may come in for one page, from going there until the next page is gone to."""
MAX_REFUSALS: Final = 20

_ERRANDS: Final = frozenset(("content-autofill.googleapis.com:443",))
"""What the browser itself asks for in the name of a page with a form; it tells Google about the form."""
_PIECE: Final = 1 << 16
_FRAMES: Final = frozenset((b"content-length", b"transfer-encoding"))
"""What says that a request has a body."""
_HOP_BY_HOP: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
     b"trailer", b"upgrade")
)  # fmt: skip


@record
class Refusal:
    """What was not let through, and why. `passing`: it may be another time."""

    host: str
    reason: str
    passing: bool = False

    def __str__(self) -> str:
        return f"{self.host} {self.reason}"


class Proxy:
    """Answers one browser. `refusals` says what was not let through since `begin_page`, by host."""

    def __init__(self, allow: Iterable[str] = (), *, resolve: Resolve = look_up) -> None:
        self.refusals: dict[str, Refusal] = {}
        self._network = GuardedNetwork(AllowedHosts.of(allow), resolve)
        self._received = 0
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def start(self) -> str:
        """Listen; the address as browsers take it."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._pool = httpcore.AsyncConnectionPool(
            # Of https only the tunnel is seen, so there is nothing to check certificates for.
            ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            max_connections=None,
            keepalive_expiry=5.0,
            network_backend=self._network,
        )
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def close(self) -> None:
        """Stop listening and break all connections."""
        if self._server is None or self._pool is None:
            return
        self._server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        await self._server.wait_closed()
        await self._pool.aclose()

    def begin_page(self) -> None:
        """Forget what was refused, and count the bytes of a page anew."""
        self.refusals.clear()
        self._received = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a server runs this in a task"
        self._clients.add(task)
        try:
            # A client that goes away, or sends what is no HTTP, ends its own connection and nothing else.
            with suppress(OSError, EOFError, h11.ProtocolError, httpcore.NetworkError, httpcore.ProtocolError):
                await self._requests(_Client(reader, writer))
        except asyncio.CancelledError:
            pass  # asyncio's streams would report it; whoever cancels waits for the end of this task, not its outcome
        finally:
            self._clients.discard(task)
            writer.close()

    async def _requests(self, client: _Client) -> None:
        """Answer a client's requests until it goes, or something goes wrong that ends its connection."""
        while (request := await client.request()) is not None:
            if request.method == b"CONNECT":
                await self._tunnel(client, request.target.decode("ascii"))
                return
            if not await self._forward(client, request) or not client.again():
                return

    async def _tunnel(self, client: _Client, target: str) -> None:
        """Connect a client with a host and port, and pass bytes both ways until one side ends."""
        parts = urlsplit(f"//{target}")
        try:
            if target in _ERRANDS:
                raise ToolError("is nothing that a page asks for")
            stream = await self._connect(parts.hostname or "", parts.port or 443)
        except ToolError as error:
            self._refuse(target, error)
            await client.refuse()
            return
        async with aclosing(stream):
            await client.accept()
            both = [
                asyncio.ensure_future(self._outward(client, stream)),
                asyncio.ensure_future(self._inward(client, stream)),
            ]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in both:
                    one.cancel()
                await asyncio.gather(*both, return_exceptions=True)

    async def _connect(self, host: str, port: int) -> httpcore.AsyncNetworkStream:
        """Raises ToolError for an address that is closed, and where there is no connection."""
        if self._received >= MAX_PAGE_BYTES:
            raise self._too_much()
        try:
            return await self._network.connect_tcp(host, port, timeout=CONNECT_SECONDS)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise _no_connection(error) from None

    async def _outward(self, client: _Client, stream: httpcore.AsyncNetworkStream) -> None:
        while data := await client.read():
            await stream.write(data)

    async def _inward(self, client: _Client, stream: httpcore.AsyncNetworkStream) -> None:
        while data := await stream.read(_PIECE):
            if not self._counted(data):
                return
            await client.write(data)

    async def _forward(self, client: _Client, request: h11.Request) -> bool:
        """Send a request of plain http on, and its answer back; whether that was done whole."""
        url = urlsplit(request.target.decode("ascii"))
        if url.scheme != "http" or not url.hostname:
            return False
        target = httpcore.URL(
            scheme=b"http", host=url.hostname.encode(), port=url.port or 80,
            target=(url.path or "/").encode() + (f"?{url.query}".encode() if url.query else b""),
        )  # fmt: skip
        try:
            if self._received >= MAX_PAGE_BYTES:
                raise self._too_much()
            return await _unless(client.gone(), self._exchange(client, request, target))
        except ToolError as error:
            self._refuse(url.netloc, error)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            self._refuse(url.netloc, _no_connection(error))
        return False

    async def _exchange(self, client: _Client, request: h11.Request, url: httpcore.URL) -> bool:
        assert self._pool is not None, "it was started"
        headers = _passed_on(request.headers.raw_items())
        content = client.body() if _FRAMES & {name.lower() for name, _ in headers} else None
        if content is None:
            await client.end_of_request()
        async with self._pool.stream(request.method, url, headers=headers, content=content) as response:
            # h11 frames anew what it sends, and httpcore has undone the framing of what it has received.
            headers = [
                (name, value) for name, value in _passed_on(response.headers) if name.lower() != b"transfer-encoding"
            ]
            await client.send(h11.Response(status_code=response.status, headers=headers))
            async for piece in response.aiter_stream():
                if not self._counted(piece):
                    return False
                await client.send(h11.Data(data=piece))
        await client.send(h11.EndOfMessage())
        return True

    def _counted(self, data: bytes) -> bool:
        """Whether there is room for `data` in what one page may bring."""
        self._received += len(data)
        if self._received <= MAX_PAGE_BYTES:
            return True
        self._refuse("the page", self._too_much())
        return False

    def _too_much(self) -> ToolError:
        return ToolError(f"sends more than {MAX_PAGE_BYTES >> 20} MB")

    def _refuse(self, host: str, error: ToolError) -> None:
        if len(self.refusals) < MAX_REFUSALS and host not in _ERRANDS:
            self.refusals.setdefault(host, Refusal(host, error.message, error.retryable))


class _Client:
    """One connection of the browser, as HTTP messages and, behind CONNECT, as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._whole = asyncio.Event()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 18)

    async def request(self) -> h11.Request | None:
        """The head of the next request; None at the end."""
        event = await self._next()
        return event if isinstance(event, h11.Request) else None

    async def body(self) -> AsyncIterator[bytes]:
        """The body of the request, piece by piece."""
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                yield piece

    async def _pieces(self) -> AsyncGenerator[bytes]:
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    async def end_of_request(self) -> None:
        """Take note that a request has no body."""
        await self._next()

    async def gone(self) -> None:
        """Return when the browser has closed the connection, from the end of its request on."""
        await self._whole.wait()
        while data := await self._reader.read(_PIECE):
            self._http.receive_data(data)  # of its next request

    def again(self) -> bool:
        """Make ready for another request; false where the connection ends with this one."""
        self._whole.clear()
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def send(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        """Send a part of an answer."""
        data = self._http.send(event)
        if data:
            await self.write(data)

    async def accept(self) -> None:
        """Say that a tunnel stands."""
        await self.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def refuse(self) -> None:
        """Say that there is no tunnel."""
        await self.write(b"HTTP/1.1 403 Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    async def read(self) -> bytes:
        """Bytes behind a CONNECT; none at the end."""
        early, _ = self._http.trailing_data
        if early:
            self._http = h11.Connection(h11.SERVER)
            return early
        return await self._reader.read(_PIECE)

    async def write(self, data: bytes) -> None:
        """Send bytes, waiting where the browser is slow to take them."""
        self._writer.write(data)
        await self._writer.drain()

    async def _next(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.EndOfMessage):
                self._whole.set()
            if event is h11.PAUSED or isinstance(event, h11.Event):
                return event
            self._http.receive_data(await self._reader.read(_PIECE))


async def _unless(gone: Coroutine[None, None, None], work: Coroutine[None, None, bool]) -> bool:
    """Do `work` as long as somebody waits for it; whether it was done."""
    leaving, working = asyncio.ensure_future(gone), asyncio.ensure_future(work)
    try:
        await asyncio.wait((leaving, working), return_when=asyncio.FIRST_COMPLETED)
        return working.done() and working.result()
    finally:
        for one in (leaving, working):
            one.cancel()
        await asyncio.gather(leaving, working, return_exceptions=True)


def _passed_on(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers without those that are between two neighbours only."""
    pairs = list(headers)
    named = {
        token.strip().lower() for name, value in pairs if name.lower() == b"connection" for token in value.split(b",")
    }
    return [(name, value) for name, value in pairs if name.lower() not in _HOP_BY_HOP | named]


def _no_connection(error: Exception) -> ToolError:
    return ToolError(f"cannot be reached: {clean(str(error)) or 'no answer in time'}", retryable=True)
