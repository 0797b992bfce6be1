"""Connections to a service: kept for the next exchange, and through a proxy where the environment names one.

The HTTP library's own pool looks at all of its connections for each request, which takes longer than the request as
soon as some hundred run side by side. Here the one that was used last is taken.

This module imports the library, which takes time; `http` imports it when a request is first sent.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any, Final, cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from halo_lang.records import record
from halo_runtime.models.sockets import Network
from halo_runtime.models.wire import UnusableURL, target_of

IDLE_SECONDS: Final = 5.0
"""How long a connection is kept that nobody uses. Servers close theirs too, and a request must not meet that."""

FAILURES: Final = (
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.NetworkError,
)
"""All that the library raises for an exchange that failed."""

_SCHEMES: Final = ("http", "https", "socks5", "socks5h")


@record
class Proxy:
    """A proxy and the variable that names it; `shown` is its address without a password."""

    url: str
    variable: str
    shown: str
    auth: tuple[str, str] | None


class SettingError(ValueError):
    """A variable of the environment that says how to connect is of no use; the message says which and what to do."""


def proxy_for(scheme: str, host: str) -> Proxy | None:
    """The proxy that the environment wants for a host and port: HTTPS_PROXY and its kin, NO_PROXY excepted."""
    named = getproxies()
    kind = scheme if named.get(scheme) else "all"
    address = named.get(kind)
    if not address or proxy_bypass(host):
        return None
    names = (f"{kind}_proxy", f"{kind}_proxy".upper())
    variable = next((name for name in names if os.environ.get(name)), names[1])
    return _read_proxy(address, variable)


def _read_proxy(address: str, variable: str) -> Proxy:
    url = address if "://" in address else f"http://{address}"
    usual = "write it like http://proxy.example:3128"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, SplitResult("", "", "", "", "")
    if not usable:
        raise SettingError(f"{variable} names no proxy; {usual}")
    if parts.scheme.startswith("socks") and find_spec("socksio") is None:
        raise SettingError(f"{variable} names a SOCKS proxy, which needs a package: pip install socksio")
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    place = parts.netloc.rpartition("@")[2]
    return Proxy(f"{parts.scheme}://{place}", variable, place, auth)


class Connections:
    """The connections of one event loop to one service, which may be at more than one address."""

    def __init__(self, *, trusts_environment: bool) -> None:
        self._trusts_environment = trusts_environment
        self._lanes: dict[str, _Lane] = {}

    @asynccontextmanager
    async def exchange(self, request: httpcore.Request) -> AsyncGenerator[httpcore.Response]:
        """Send a request; its answer, whose body is to be read before the block ends or is dropped with it.

        Raises one of FAILURES, or SettingError.
        """
        lane = self._lane(request.url.origin)
        connection, response = await lane.send(request)
        try:
            yield response
        finally:
            await response.aclose()
            await lane.give_back(connection)

    def proxy(self, url: str) -> Proxy | None:
        """The proxy that requests to an address go through, where any was sent."""
        try:
            target, _ = target_of(url)
        except UnusableURL:
            return None
        lane = self._lanes.get(str(target.origin))
        return None if lane is None else lane.proxy

    async def close(self) -> None:
        """Close all of them."""
        lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            await lane.close()

    def _lane(self, origin: httpcore.Origin) -> _Lane:
        name = str(origin)
        if name not in self._lanes:
            scheme, host = origin.scheme.decode("ascii"), origin.host.decode("ascii")
            proxy = proxy_for(scheme, f"{host}:{origin.port}") if self._trusts_environment else None
            self._lanes[name] = _Lane(origin, proxy)
        return self._lanes[name]


class _Lane:
    """The connections to one server. Those that can take a request are in `_ready`, the last used at its end.

    `_shared`: they speak HTTP/2, in which one takes many requests side by side.
    """

    def __init__(self, origin: httpcore.Origin, proxy: Proxy | None) -> None:
        self.proxy = proxy
        self._origin = origin
        self._ready: dict[httpcore.AsyncConnectionInterface, None] = {}
        self._shared = False
        tls = _tls() if proxy is not None and proxy.url.startswith("https:") else None
        # It is never asked for a connection that it has: it knows how to make them, and TLS is set up once.
        self._maker = httpcore.AsyncConnectionPool(
            ssl_context=_tls() if origin.scheme == b"https" else None,
            proxy=None if proxy is None else httpcore.Proxy(proxy.url, auth=proxy.auth, ssl_context=tls),
            keepalive_expiry=IDLE_SECONDS,
            http2=find_spec("h2") is not None,
            network_backend=Network(),
        )

    async def send(self, request: httpcore.Request) -> tuple[httpcore.AsyncConnectionInterface, httpcore.Response]:
        """Send a request on a connection that is free, or a new one, which is to be given back when all is read."""
        while True:
            connection = await self._take()
            try:
                response = await connection.handle_async_request(request)
            except httpcore.ConnectionNotAvailable:
                continue  # it was about to be closed
            extensions = cast(Any, response).extensions  # which httpcore does not type
            if extensions.get("http_version") == b"HTTP/2":  # it takes others beside this one
                self._shared = True
                self._ready[connection] = None
            return connection, response

    async def give_back(self, connection: httpcore.AsyncConnectionInterface) -> None:
        """A connection is free again, if it can still be used. The one that was free for longest may be too old."""
        if connection.is_available():
            self._ready[connection] = None
        oldest = next(iter(self._ready), connection)
        if oldest is not connection and oldest.has_expired():
            del self._ready[oldest]
            await oldest.aclose()

    async def close(self) -> None:
        """Close all connections that are not in use; those that are are closed by who uses them."""
        ready, self._ready = self._ready, {}
        for connection in ready:
            await connection.aclose()

    async def _take(self) -> httpcore.AsyncConnectionInterface:
        while self._ready:
            connection = next(reversed(self._ready))
            usable = connection.is_available() and not connection.has_expired()
            if not usable or not self._shared:
                del self._ready[connection]
            if usable:
                return connection
            await connection.aclose()
        return self._maker.create_connection(self._origin)


def _tls() -> ssl.SSLContext:
    """The certificates to trust: those of SSL_CERT_FILE or SSL_CERT_DIR, else those that browsers trust."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        variable = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        told = error.strerror or str(error)
        raise SettingError(f"{variable} does not name certificates that can be read ({told}); set it again") from None
