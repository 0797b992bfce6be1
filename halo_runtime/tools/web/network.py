"""Connections of tools: a name is looked up once, every address that it leads to is looked at, and one of these very
addresses is connected to. So it cannot lead elsewhere between the look and the connection (DNS rebinding).

This module imports the HTTP library, which takes time; `web` imports it when a request is first sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias, cast

import httpcore

from halo_runtime.errors import ToolError
from halo_runtime.tools.web.addresses import AllowedHosts, why_closed

CONNECT_SECONDS: Final = 10.0

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host and port, best first. Raises OSError where there is none."""
SocketOptions: TypeAlias = Iterable[httpcore.SOCKET_OPTION] | None


async def look_up(host: str, port: int) -> list[str]:
    """What the system's resolver says, which reads numbers in every form as addresses."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to public addresses, and to any address of a host that `allowed` names. ToolError for the others."""

    def __init__(
        self,
        allowed: AllowedHosts,
        resolve: Resolve = look_up,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._network = network or cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: SocketOptions = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that takes one."""
        failure: Exception | None = None
        for address in await self._vetted(host, port):
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def sleep(self, seconds: float) -> None:
        """Wait; the library's own pause between tries."""
        await asyncio.sleep(seconds)

    async def _vetted(self, host: str, port: int) -> list[str]:
        """The addresses of a host. One that is closed closes the host, as which one is taken is left to chance."""
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name {host} leads nowhere ({error})") from None
        if not self._allowed.include(host, port):
            for address in addresses:
                kind = why_closed(address)
                if kind is not None:
                    raise ToolError(
                        f"is at {address} ({kind}), which tools do not connect to by themselves; "
                        f'name the host in the declaration if it is meant: allowHosts: ["{host}"]'
                    )
        return addresses
