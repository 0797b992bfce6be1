"""One connection to a server, in a task of its own.

The SDK's sessions have to be left in the task that entered them, so a task opens one, holds it and closes it; calls are
made from wherever they come. When the task ends, all that waits for an answer fails at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, Protocol, TypeVar, cast

import mcp_types as types
from mcp import Client
from mcp.client._transport import TransportStreams
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import RootModel, ValidationError

from halo_runtime.errors import ToolError
from halo_runtime.json_types import JsonObject
from halo_runtime.tools.mcp.limits import MAX_PAGES, MAX_TOOLS
from halo_runtime.tools.mcp.listing import ServerTool, read_tool
from halo_runtime.tools.web.client import clean
from halo_runtime.version import __version__

T = TypeVar("T")

_CLOSE_SECONDS: Final = 8.0
_CLOSED: Final = (types.CONNECTION_CLOSED, "Connection closed")
"""The SDK's words for a session that has ended."""
_SESSION_GONE: Final = "Session terminated"
"""The SDK's words for a server that no longer knows the session; another server could say the same words."""

# Else what the SDK logs of a server's faults would be written over the terminal, with tracebacks.
logging.getLogger("mcp").addHandler(logging.NullHandler())
logging.getLogger("client").addHandler(logging.NullHandler())


class _Raw(RootModel[dict[str, Any]]):
    """A result as it comes over the wire."""


class Link(Protocol):
    """The way to a server."""

    def streams(self) -> AbstractAsyncContextManager[TransportStreams]:
        """The two ends of a session."""
        ...

    async def trouble(self) -> str:
        """What is known beside an error that came of the session, in words; empty for nothing."""
        ...

    def forgot_session(self) -> bool:
        """Whether the last refusal was that of a server which does not know the session any more."""
        ...


class AskAgain(Exception):
    """The server has done nothing, for it does not know the session, or the tool as it was listed, any more."""


class Connection:
    """A session with a server; `timeout` is seconds for each exchange, the opening too."""

    def __init__(self, link: Link, timeout: float) -> None:
        self._link = link
        self._timeout = timeout
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] = asyncio.create_task(self._own(), name="halo-mcp")
        self.stale = False
        """The server has said that its tools are others now."""
        self.broken = False
        """It cannot be used any more."""

    async def server(self) -> str:
        """The server's own name and version, and the protocol's, once it is open."""
        client = await self._exchange(self._client)
        info = client.server_info
        name = f"{clean(info.name)} {clean(info.version)}" if info is not None else "a server without a name"
        return f"{name} (MCP {client.protocol_version})"

    async def list_tools(self) -> tuple[ServerTool, ...]:
        """All tools, page by page. Raises ToolError, AskAgain."""
        self.stale = False

        async def pages(session: ClientSession) -> tuple[ServerTool, ...]:
            found: list[ServerTool] = []
            cursor: str | None = None
            for _ in range(MAX_PAGES):
                page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                found += [read_tool(tool.model_dump(by_alias=True, exclude_none=True)) for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None or len(found) > MAX_TOOLS:
                    break
            if cursor is not None or len(found) > MAX_TOOLS:
                raise ToolError(
                    f"the server's list of tools has no end (over {MAX_TOOLS:,} tools or {MAX_PAGES} pages)"
                )
            return tuple(found)

        return await self._exchange(lambda: self._in_session(pages))

    async def call(self, name: str, args: JsonObject) -> JsonObject:
        """The result of `tools/call` as it comes over the wire. Cancelling tells the server. As `list_tools`."""
        params = types.CallToolRequestParams(name=name, arguments=args)
        request = types.CallToolRequest(params=params)

        # Not the SDK's own `call_tool`: that one holds results to the server's patterns, which may take for ever.
        async def ask(session: ClientSession) -> JsonObject:
            return (await session.send_request(request, _Raw)).root

        return await self._exchange(lambda: self._in_session(ask))

    async def close(self) -> None:
        """End the session and the server's processes."""
        self.broken = True
        self._closing.set()
        if self._is_open:
            await asyncio.wait([self._owner], timeout=_CLOSE_SECONDS)
        self._owner.cancel()
        await asyncio.wait([self._owner])
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # taken note of

    # --- the task -----------------------------------------------------------------------------------------------

    async def _own(self) -> None:
        try:
            await self._hold()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # told to whoever waits for an answer
            found = _innermost(error)
            ended = isinstance(found, asyncio.CancelledError)
            failure = MCPError(*_CLOSED) if ended else found
            if not self._opened.done():
                self._opened.set_exception(failure)
            elif not self._closing.is_set():
                self._failure = failure
        finally:
            self.broken = True

    _failure: BaseException | None = None
    """What ended the task."""

    async def _hold(self) -> None:
        info = types.Implementation(name="halo", version=__version__)
        client = Client(self._link.streams(), client_info=info, message_handler=self._hear, cache=None)
        async with client, asyncio.TaskGroup() as tasks:
            self._opened.set_result(client)
            listening = tasks.create_task(self._listen(client))
            await self._closing.wait()
            listening.cancel()

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.stale = True

    async def _listen(self, client: Client) -> None:
        """Hear of other tools where the protocol has a request for that."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        with suppress(Exception):  # it is a courtesy; what a server answers to it changes nothing else
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self.stale = True

    # --- exchanges ----------------------------------------------------------------------------------------------

    async def _client(self) -> Client:
        return await asyncio.shield(self._opened)

    @property
    def _is_open(self) -> bool:
        return self._opened.done() and not self._opened.cancelled() and self._opened.exception() is None

    async def _in_session(self, ask: Callable[[ClientSession], Awaitable[T]]) -> T:
        return await ask((await self._client()).session)

    async def _exchange(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` brings, in time and for as long as there is a connection; all failures as ToolError."""
        try:
            if not self._opened.done():
                async with asyncio.timeout(self._timeout):
                    await self._while_connected(self._client)
            async with asyncio.timeout(self._timeout):
                return await self._while_connected(ask)
        except TimeoutError:
            during = "gave no answer" if self._is_open else "did not open a session"
            problem = f"the server {during} within {self._timeout:g} s; allow more with timeout:"
        except MCPError as error:
            if self._has_done_nothing(error):
                raise AskAgain from None
            self.broken = self.broken or (error.code, error.message) == _CLOSED
            problem = _told(error)
        except ToolError as error:
            problem = error.message
        except ValidationError as error:
            problem = f"the server's answer is none that the protocol knows ({_flaw(error)})"
        except Exception as error:  # the SDK and the libraries below it raise many kinds, and all mean the same
            self.broken = True
            problem = f"the server cannot be reached: {clean(str(error)) or type(error).__name__}"
        self.broken = self.broken or not self._is_open
        more = await self._link.trouble()
        raise ToolError("; ".join(part for part in (problem, more) if part)) from None

    def _has_done_nothing(self, error: MCPError) -> bool:
        """Whether an error means that the request was not looked at, so that it can be sent again."""
        if error.message == _SESSION_GONE and self._link.forgot_session():
            self.broken = True
            return True
        self.stale = self.stale or error.code == types.HEADER_MISMATCH
        return error.code == types.HEADER_MISMATCH

    async def _while_connected(self, ask: Callable[[], Awaitable[T]]) -> T:
        asking = asyncio.ensure_future(ask())
        try:
            await asyncio.wait([asking, self._owner], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
        finally:
            if not asking.done():
                asking.cancel()  # which tells the server
                await asyncio.wait([asking])
            if not asking.cancelled():
                asking.exception()
        raise self._failure or MCPError(*_CLOSED)


def _innermost(error: BaseException) -> BaseException:
    """The first error of a group that is no group itself, ToolError before others."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [_innermost(one) for one in cast("BaseExceptionGroup[BaseException]", error).exceptions]
    return next((one for one in found if isinstance(one, ToolError)), found[0])


def _told(error: MCPError) -> str:
    """What an error of the protocol means, in words."""
    if (error.code, error.message) == _CLOSED:
        return "the server broke the connection"
    if error.code == types.CONNECTION_CLOSED:  # of one answer over HTTP; the session goes on
        return f"the server broke off its answer: {clean(error.message)}"
    return f"the server refused: {clean(error.message)} (code {error.code})"


def _flaw(error: ValidationError) -> str:
    """Where and how an answer is wrong, without what it held."""
    first = error.errors(include_input=False, include_url=False)[0]
    return clean(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
