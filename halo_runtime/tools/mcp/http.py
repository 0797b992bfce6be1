"""Servers that answer at an address (MCP, transport streamable HTTP).

The protocol's SDK has an HTTP library of its own; its requests go out here over the connections of all tools, which
look at the address that is connected to. Redirects within the server's origin are followed by the SDK, others never.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import httpcore
import httpx
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from halo_runtime.errors import ToolError
from halo_runtime.models.complaints import read_complaint
from halo_runtime.tools.mcp.limits import MAX_MESSAGE
from halo_runtime.tools.web.addresses import AllowedHosts
from halo_runtime.tools.web.client import clean
from halo_runtime.tools.web.network import CONNECT_SECONDS, GuardedNetwork, Resolve, look_up
from halo_runtime.tools.web.urls import host_of
from halo_runtime.version import __version__

_ADVICE: Final = {
    401: "check headers: in the declaration",
    403: "these headers may not do this",
    404: "check the address",
    405: "check the address: no MCP server takes messages there",
}
_Note: TypeAlias = Callable[[int, bytes], None]
"""Takes down the status of an answer to a message, and the body of a refusal."""


class AddressLink:
    """The address of a server; `headers` go with every request.

    `resolve` and `network` stand for the system's resolver and its connections.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        allow: Iterable[str],
        resolve: Resolve | None = None,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._url = url
        self._headers = headers
        self._network = GuardedNetwork(AllowedHosts.of(allow), resolve or look_up, network)
        self._refused: tuple[int, str] | None = None

    def forgot_session(self) -> bool:
        """Whether the last answer was a 404, which the protocol has for that."""
        return self._refused is not None and self._refused[0] == 404

    async def trouble(self) -> str:
        """The last status that was a refusal, with the server's words and what to do about it."""
        if self._refused is None:
            return ""
        (status, detail), self._refused = self._refused, None
        told = f"{host_of(self._url)} answered {status}"
        return "; ".join(part for part in (f"{told}: {detail}" if detail else told, _ADVICE.get(status)) if part)

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[TransportStreams]:
        """The two ends of a session. ToolError is raised inside it for what no connection is made to."""
        headers = {"user-agent": f"halo/{__version__}", **self._headers, "accept-encoding": "identity"}
        limits = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        async with (
            httpx2.AsyncClient(transport=_Transport(self._network, self._note), headers=headers, timeout=limits) as web,
            streamable_http_client(self._url, http_client=web, max_sse_event_size=MAX_MESSAGE) as streams,
        ):
            yield streams

    def _note(self, status: int, content: bytes) -> None:
        is_refusal = status >= 400 and b'"jsonrpc"' not in content  # such an error is told by itself
        self._refused = (status, clean(read_complaint(content).message)) if is_refusal else None


class _Transport(httpx2.AsyncBaseTransport):
    """Sends the SDK's requests over guarded connections, and bounds what comes back."""

    def __init__(self, network: GuardedNetwork, note: _Note) -> None:
        self._note = note
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=None,
            keepalive_expiry=5.0,
            network_backend=network,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        assert isinstance(request.stream, AsyncIterable)
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        stream = _Bounded(answer)
        response = httpx2.Response(answer.status, headers=answer.headers, stream=stream, request=request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await stream.aclose()
            raise ToolError("packs its answers, although it was asked not to")
        if response.status_code < 400 and "text/event-stream" in response.headers.get("content-type", ""):
            stream.limit = None  # it goes on as long as the session; each of its messages is bounded
        if request.method == "POST":
            self._note(response.status_code, await response.aread() if response.status_code >= 400 else b"")
        return response

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """The body of an answer. Raises ToolError where it is longer than `limit`, in bytes."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer
        self.limit: int | None = MAX_MESSAGE

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._answer.aiter_stream():
            read += len(piece)
            if self.limit is not None and read > self.limit:
                raise ToolError(f"answers with more than {self.limit >> 20} MiB; ask it for less at once")
            yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()
