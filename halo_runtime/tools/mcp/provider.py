"""`MCP(command or url · args, env, headers, tools, pins)`: the tools of an MCP server (spec 5, reference 2.10)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from halo_lang.catalog.signature import duration_seconds
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.base import OfferedMethod, ToolConfig
from halo_runtime.tools.mcp.listing import ServerTool, checkable, find_tool
from halo_runtime.tools.mcp.pins import Pins, identity_of
from halo_runtime.tools.mcp.results import read_result
from halo_runtime.tools.web.client import clean
from halo_runtime.tools.web.headers import HeaderProblem, read_headers
from halo_runtime.tools.web.urls import declared_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from httpcore import AsyncNetworkBackend
    from jsonschema.protocols import Validator

    from halo_runtime.tools.mcp.connection import Connection, Link
    from halo_runtime.tools.web.network import Resolve

    T = TypeVar("T")

DEFAULT_TIMEOUT: Final = 30.0


class Server:
    """One declared server. It is connected to at the first use, and again when the connection was lost.

    `only` are the tools that may be used, all where it is None. `link` makes the way to it.
    """

    def __init__(
        self, name: str, link: Callable[[], Link], pins: Pins, *, only: Collection[str] | None, timeout: float
    ) -> None:
        self._name = name
        self._link = link
        self._pins = pins
        self._only = only
        self._timeout = timeout
        self._connection: Connection | None = None
        self._tools: dict[str, _Known] | None = None
        self._opening = asyncio.Lock()

    async def call(self, method: str, args: JsonObject) -> Json:
        """Call the tool of that name. Raises ToolError."""
        try:
            known = await self._known(method)
            known.check(args)
            return read_result(await self._asked(lambda connection: connection.call(known.tool.name, args)))
        except ToolError as error:
            raise ToolError(f"{self._name}.{method}: {error.message}", detail=error.detail) from None

    async def methods(self) -> Sequence[OfferedMethod]:
        """The tools that may be used."""
        try:
            return [known.tool.offered() for known in (await self._listed()).values()]
        except ToolError as error:
            raise ToolError(f"{self._name}: {error.message}") from None

    async def probe(self) -> str:
        """Connect and list the tools."""
        number = len(await self.methods())
        assert self._connection is not None, "the tools were listed over it"
        return f"{await self._connection.server()}, {number} tool{'' if number == 1 else 's'}"

    async def close(self) -> None:
        """End the session, and the server where it is a command."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _known(self, method: str) -> _Known:
        tools = await self._listed()
        return tools[find_tool((known.tool for known in tools.values()), method).name]

    async def _listed(self) -> dict[str, _Known]:
        """The tools by name, listed when they are not known or are said to be others now."""
        async with self._opening:
            connection = self._connection
            if self._tools is None or connection is None or connection.broken or connection.stale:
                self._tools = None  # what comes now may be refused, and then nothing is left that could be called
                await self._connected()
                found = await self._asked(lambda connection: connection.list_tools(), opening=True)
                tools = self._allowed(found)
                self._pins.hold(tools)
                self._tools = {tool.name: _Known(tool) for tool in tools}
            return self._tools

    def _allowed(self, tools: Sequence[ServerTool]) -> list[ServerTool]:
        """Those that the declaration lets be used. Raises ToolError where it names one that is not there."""
        return list(tools) if self._only is None else [find_tool(tools, name) for name in dict.fromkeys(self._only)]

    async def _asked(self, ask: Callable[[Connection], Awaitable[T]], *, opening: bool = False) -> T:
        """What the server answers; asked once more where it has forgotten the session or the tool, and done nothing."""
        from halo_runtime.tools.mcp.connection import AskAgain

        try:
            return await ask(self._connection or await self._connected())
        except AskAgain:
            pass
        if not opening:
            await self._listed()
        try:
            return await ask(await self._connected())
        except AskAgain:
            raise ToolError("the server forgets its sessions or tools at once; is it the right address?") from None

    async def _connected(self) -> Connection:
        """A connection that can be used."""
        from halo_runtime.tools.mcp.connection import Connection

        connection = self._connection
        if connection is None or connection.broken:
            if connection is not None:
                await connection.close()
            self._connection = connection = Connection(self._link(), self._timeout)
        return connection


class _Known:
    """A tool with the check of its arguments."""

    def __init__(self, tool: ServerTool) -> None:
        self.tool = tool

    def check(self, args: JsonObject) -> None:
        """Raises ToolError for arguments that the tool's schema does not take, before anything is sent."""
        try:
            flaw = next(iter(self._validator.iter_errors(args)), None)
        except Exception as error:  # a stranger's schema may be none: then the server itself has to check
            del error
            return
        if flaw is not None:
            place = ".".join(map(str, flaw.absolute_path))
            raise ToolError(f"the arguments do not fit: {clean(f'{place}: {flaw.message}' if place else flaw.message)}")

    @cached_property
    def _validator(self) -> Validator:
        from jsonschema import Draft202012Validator

        return Draft202012Validator(checkable(self.tool.schema))


def open_mcp(config: ToolConfig, resolve: Resolve | None = None, network: AsyncNetworkBackend | None = None) -> Server:
    """The server of a declaration; nothing is started or connected to yet. Raises ConfigError.

    `resolve` and `network` stand for the system's resolver and its connections.
    """
    settings = config.settings
    server = settings["server"].strip()
    remote = server.lower().startswith(("http://", "https://"))
    _check_settings(settings, remote)
    link = _address(config, server, resolve, network) if remote else _command(config, server)
    pins = settings.get("pins") or f".halo/mcp/{config.name}.json"
    identity = identity_of((server, *(settings.get("args") or ())))
    timeout = duration_seconds(settings.get("timeout") or "") or DEFAULT_TIMEOUT
    only = settings.get("tools")
    return Server(config.name, link, Pins(config.folder / pins, pins, identity), only=only, timeout=timeout)


def _check_settings(settings: JsonObject, remote: bool) -> None:
    """Refuse settings that would mean nothing, which may be an address or a command that was taken for the other."""
    for name in ("args", "env") if remote else ("headers", "allowHosts"):
        if settings.get(name):
            kind = "an address, and only commands take it" if remote else "a command, and only addresses take it"
            raise ConfigError(f"{name}: does not go with {kind}; addresses begin with https:// or http://")


def _command(config: ToolConfig, command: str) -> Callable[[], Link]:
    found = shutil.which(config.folder / command if "/" in command else command, path=config.env.get("PATH"))
    if found is None:
        apart = "; give what follows the command as args: […]" if " " in command else ""
        raise ConfigError(f"the command {command} is not installed, or not on the PATH{apart}")
    argv = (str(found), *(config.settings.get("args") or ()))
    if any("\0" in word for word in argv):
        raise ConfigError("args: holds a NUL character, which no command can be given")

    def link() -> Link:
        from halo_runtime.tools.mcp.stdio import CommandLink

        return CommandLink(argv, config.folder, config.env)

    return link


def _address(
    config: ToolConfig, server: str, resolve: Resolve | None, network: AsyncNetworkBackend | None
) -> Callable[[], Link]:
    url = declared_url(server, "the address", query=True)
    try:
        headers = read_headers(config.settings.get("headers"))
    except HeaderProblem as problem:
        raise ConfigError(str(problem)) from None

    def link() -> Link:
        from halo_runtime.tools.mcp.http import AddressLink

        return AddressLink(url, headers, config.settings.get("allowHosts") or (), resolve, network)

    return link
