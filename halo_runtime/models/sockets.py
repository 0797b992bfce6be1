"""Sockets for the HTTP library, straight on asyncio.

Its own way over anyio costs a call of a model more than all the rest of the exchange. This module imports that
library, which takes time; `connections` imports it when a request is first sent.
"""

from __future__ import annotations

import asyncio
import ipaddress
import select
import ssl
from collections.abc import Iterable
from typing import Final, cast

import httpcore

HIGH_WATER: Final = 256 * 1024
"""Bytes that came and were not read yet, from which on no more are taken from the network."""
SMALL: Final = 16 * 1024
"""Bytes up to which a piece is one of those in which a model streams its tokens."""
MANY: Final = 32
"""Small pieces in a row after which they are collected: an answer streams, and waking up costs more than a piece."""
COLLECT_SECONDS: Final = 0.01
CLOSE_SECONDS: Final = 1.0
HAPPY_EYEBALLS: Final = 0.25
"""Seconds after which the next address of a name is tried beside the first (RFC 8305)."""


class _Flow(asyncio.Protocol):
    """What comes and goes on one connection; one reads and one writes at a time, as HTTP/1.1 and the library do."""

    def __init__(self) -> None:
        self.ended = False
        self.failure: Exception | None = None
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._readers: list[asyncio.Future[None]] = []
        self._paused = False
        self._held: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > HIGH_WATER and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self.ended = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended, self.failure = True, self.failure or exc
        if not self.lost.done():
            self.lost.set_result(None)
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        if self._held is None:
            self._held = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        held, self._held = self._held, None
        if held is not None and not held.done():
            held.set_result(None)

    @property
    def waiting(self) -> bool:
        """Whether something is there to be read, the end of the connection too."""
        return self.ended or bool(self._received)

    async def take(self, limit: int) -> bytes:
        """The next bytes, at most `limit`, once some are there; none at the end. Raises what broke the connection."""
        while not self._received and not self.ended:
            reader = asyncio.get_running_loop().create_future()
            self._readers.append(reader)
            await reader
        if not self._received and self.failure is not None:
            raise self.failure
        data = bytes(self._received[:limit])
        del self._received[:limit]
        if self._paused and len(self._received) < HIGH_WATER and self._transport is not None and not self.ended:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def collect(self) -> None:
        """Let what comes in the next moment gather in the system, so that it is taken in one go."""
        transport = self._transport
        if transport is None or self.waiting or self._paused:
            return
        transport.pause_reading()
        try:
            await asyncio.sleep(COLLECT_SECONDS)
        finally:
            if not transport.is_closing():
                transport.resume_reading()

    async def drained(self) -> None:
        """Return when the network has taken what was written, or never will."""
        if self._held is not None:
            await asyncio.shield(self._held)

    def _wake(self) -> None:
        readers, self._readers = self._readers, []
        for reader in readers:
            if not reader.done():
                reader.set_result(None)


class Socket(httpcore.AsyncNetworkStream):
    """One connection as the HTTP library wants it."""

    def __init__(self, transport: asyncio.Transport, flow: _Flow) -> None:
        self._transport = transport
        self._flow = flow
        self._small = 0  # pieces in a row

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes; none at the end."""
        try:
            if self._small >= MANY:
                await self._flow.collect()
            if timeout is None or self._flow.waiting:
                data = await self._flow.take(max_bytes)
            else:
                async with asyncio.timeout(timeout):
                    data = await self._flow.take(max_bytes)
        except OSError as error:  # TLS failures and timeouts are such, too
            if isinstance(error, TimeoutError) and timeout is not None:
                raise httpcore.ReadTimeout(f"nothing came for {timeout:g} s") from error
            raise httpcore.ReadError(str(error)) from error
        self._small = self._small + 1 if len(data) <= SMALL else 0
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes. That the other side is gone shows when its answer is read."""
        if not buffer:
            return
        self._small = 0
        if self._flow.ended or self._transport.is_closing():
            raise httpcore.WriteError("the connection was closed")
        self._transport.write(buffer)
        await self._flow.drained()

    async def aclose(self) -> None:
        """Close at once: what is not sent yet is dropped. HTTP has nothing to say after an exchange."""
        self._transport.abort()
        await asyncio.wait((self._flow.lost,), timeout=CLOSE_SECONDS)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """The same connection under TLS."""
        flow = _Flow()
        try:
            async with asyncio.timeout(timeout):
                transport = await asyncio.get_running_loop().start_tls(
                    self._transport, flow, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            self._transport.abort()
            raise httpcore.ConnectTimeout("no TLS connection in time") from error
        except OSError as error:
            self._transport.abort()
            raise httpcore.ConnectError(str(error)) from error
        except BaseException:
            self._transport.abort()
            raise
        if transport is None:
            raise httpcore.ConnectError("the connection was closed before TLS had begun")
        flow.connection_made(transport)
        return Socket(transport, flow)

    def get_extra_info(self, info: str) -> object:
        """What the library asks: the TLS connection, and whether something came that nobody waits for."""
        if info == "is_readable":
            return self._flow.waiting or self._has_unread()
        return self._transport.get_extra_info({"ssl_object": "ssl_object", "socket": "socket"}.get(info, ""))

    def _has_unread(self) -> bool:
        """Whether the system holds something, the end too, that the event loop has had no time yet to see."""
        plug = self._transport.get_extra_info("socket")
        if plug is None or plug.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(plug.fileno(), select.POLLIN)
        return bool(poll.poll(0))


class Network(httpcore.AsyncNetworkBackend):
    """Opens connections: the addresses of a name are tried beside each other, the first that answers is taken."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect. The cause of a ConnectError is what the system said."""
        loop = asyncio.get_running_loop()
        source = None if local_address is None else (local_address, 0)
        delay = None if _is_address(host) else HAPPY_EYEBALLS
        try:
            async with asyncio.timeout(timeout):
                transport, flow = await loop.create_connection(
                    _Flow, host, port, local_addr=source, happy_eyeballs_delay=delay
                )
        except TimeoutError as error:
            raise httpcore.ConnectTimeout("no connection in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error
        return Socket(transport, flow)

    async def sleep(self, seconds: float) -> None:
        """Wait; the library's own pause between tries."""
        await asyncio.sleep(seconds)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
