"""A connection to a mailbox over IMAP (RFC 9051): made at first use, kept, used by one call at a time.

The library blocks, so it works in a thread. Whoever stops waiting shuts the connection down, and the thread with it
comes to its end.
"""

from __future__ import annotations

import asyncio
import imaplib
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from imap_tools import BaseMailBox, ImapToolsError, MailboxLoginError

from halo_runtime.errors import ToolError
from halo_runtime.tools.email.box import Box, words_of
from halo_runtime.tools.email.servers import Server, failure, trust, unreachable
from halo_runtime.tools.threads import Stop, Workers
from halo_runtime.tools.web.client import clean

T = TypeVar("T")

MAX_ANSWER: Final = 80 * 1024 * 1024
"""Bytes of one piece of an answer that are read."""

CONNECT_SECONDS: Final = 10.0

_GOODBYE_SECONDS: Final = 1.0
_BROKEN: Final = (OSError, ssl.SSLError, imaplib.IMAP4.abort, ValueError)
"""How the library tells that a connection is of no more use; ValueError for files and sockets that are closed."""


class Session:
    """The connection of one tool."""

    def __init__(self, name: str, server: Server, seconds: float) -> None:
        self._server = server
        self._seconds = seconds
        self._workers = Workers(name)
        self._lock = asyncio.Lock()
        self._open: _Connection | None = None

    async def do(self, folder: str, work: Callable[[Box], T], *, change: bool = False, once: bool = False) -> T:
        """The result of `work` in an open folder; without `change` the folder is open for reading only.

        `once`: what is done must not be done twice. Cancelled, the connection is shut down. Raises ToolError.
        """
        async with self._lock:
            try:
                async with asyncio.timeout(self._seconds):
                    connection = await self._entered(folder, change)
                    return await connection.do(lambda: work(connection.box))
            except _Refused as refused:
                raise failure(self._server, str(refused)) from None
            except ToolError:
                raise
            except TimeoutError:
                problem = f"gave no complete answer within {self._seconds:g} s; allow more with timeout:"
                raise self._broken(problem, once) from None
            except _BROKEN as error:
                problem = f"broke the connection: {clean(str(error)) or type(error).__name__}"
                raise self._broken(problem, once) from None
            except BaseException:
                self._drop()
                raise

    async def close(self) -> None:
        """Say goodbye and close the connection."""
        connection = self._open
        if connection is not None:
            with suppress(_Refused, *_BROKEN):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await connection.do(connection.log_out)
        self._drop()
        self._workers.close()

    def _broken(self, problem: str, once: bool) -> ToolError:
        """The error for a connection that is of no more use."""
        self._drop()
        return failure(self._server, problem + ("; it may have been done" if once else ""), retryable=not once)

    def _drop(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()

    async def _entered(self, folder: str, change: bool) -> _Connection:
        """The connection, with the folder open: the one that is there if it still works, else a new one."""
        if self._open is not None:
            connection = self._open
            try:
                await connection.do(lambda: connection.enter(folder, change))
            except _BROKEN:
                self._drop()  # servers end connections that nobody uses for a while
            else:
                return connection
        connected = await _connected(self._server)
        self._open = made = _Connection(connected, self._workers)
        connected.settimeout(self._seconds)
        try:
            await made.do(lambda: made.log_in(self._server, connected))
        except _BROKEN as error:
            self._drop()
            raise unreachable(self._server, error) from None
        await made.do(lambda: made.enter(folder, change))
        return made


class _Refused(Exception):
    """The server said no; the connection works."""


class _Client(imaplib.IMAP4):
    """The library's client on a socket that is connected already."""

    def __init__(self, connected: socket.socket, server: Server, context: ssl.SSLContext) -> None:
        self._connected = connected
        self._server = server
        self._context = context
        super().__init__(server.host, server.port)
        try:
            if server.security != "tls" and ("STARTTLS" in self.capabilities or server.security == "starttls"):
                self.starttls(context)
        except BaseException:
            self.shutdown()
            raise

    def _create_socket(self, timeout: float | None) -> socket.socket:
        if self._server.security == "tls":
            return self._context.wrap_socket(self._connected, server_hostname=self._server.host)
        return self._connected

    def read(self, size: int) -> bytes:
        """A piece of an answer of which the server has said how long it is."""
        if size > MAX_ANSWER:
            raise self.abort(f"an answer of {size >> 20} MB is too much")
        return super().read(size)


class _MailBox(BaseMailBox):
    """imap-tools on that client."""

    def __init__(self, client: _Client) -> None:
        self._given = client
        super().__init__()

    def _get_mailbox_client(self) -> imaplib.IMAP4:
        return self._given


class _Connection:
    """A connection, and the switch that breaks it off whatever its thread is waiting for.

    The methods without `async` but `close` are for the thread.
    """

    def __init__(self, connected: socket.socket, workers: Workers) -> None:
        # A second name of the connection, for the first one goes to TLS and to a thread.
        self._switch = socket.socket(fileno=os.dup(connected.fileno()))
        self._connected = connected
        self._workers = workers
        self._mailbox: _MailBox | None = None

    @property
    def box(self) -> Box:
        """What works with the folder that is open."""
        assert self._mailbox is not None, "after log_in"
        return Box(self._mailbox)

    async def do(self, work: Callable[[], T]) -> T:
        """The result of `work` in a thread. Cancelled, the connection is shut down and the thread is over."""

        def working(stop: Stop) -> T:
            stop.on_set(self._break_off)
            try:
                return work()
            except (imaplib.IMAP4.readonly, ImapToolsError, imaplib.IMAP4.error) as error:
                if isinstance(error, imaplib.IMAP4.abort) and not isinstance(error, imaplib.IMAP4.readonly):
                    raise
                raise _Refused(f"refuses: {words_of(error)}") from None

        return await self._workers.do(working)

    def log_in(self, server: Server, connected: socket.socket) -> None:
        """Take up the connection and say who asks."""
        try:
            self._mailbox = _MailBox(_Client(connected, server, trust()))
        except imaplib.IMAP4.abort as error:
            if "TLS" in str(error):  # the library's own words
                problem = "offers no STARTTLS, so mail and password could be read on their way; try imaps://"
                raise _Refused(problem) from None
            raise
        user = server.user or ""
        try:
            # What LOGIN takes is ASCII.
            if "AUTH=PLAIN" in self._mailbox.client.capabilities:
                self._mailbox.login_utf8(user, server.password, initial_folder=None)
            else:
                self._mailbox.login(user, server.password, initial_folder=None)
        except UnicodeEncodeError:
            raise _Refused("takes a user and a password of plain ASCII only") from None
        except (MailboxLoginError, imaplib.IMAP4.error) as error:
            if isinstance(error, imaplib.IMAP4.abort):
                raise
            raise _Refused(
                f"does not take the user and password; check user: and password: ({words_of(error)})"
            ) from None
        # What the library has read before the login is less, and stays.
        _, told = self._mailbox.client.capability()
        words = b" ".join(one for one in told if isinstance(one, bytes)).decode("ascii", "replace").upper()
        self._mailbox.client.capabilities = tuple(words.split())

    def enter(self, folder: str, change: bool) -> None:
        """Open a folder."""
        assert self._mailbox is not None, "after log_in"
        try:
            self._mailbox.folder.set(folder, readonly=not change)  # pyright: ignore[reportUnknownMemberType]
        except ImapToolsError as error:
            raise _Refused(f"does not open `{folder}`: {words_of(error)}{self.box.others()}") from None

    def log_out(self) -> None:
        """Say goodbye."""
        if self._mailbox is not None:
            self._mailbox.client.logout()

    def close(self) -> None:
        """End it; no thread is at work with it any more."""
        self._break_off()
        self._switch.close()
        if self._mailbox is not None:
            with suppress(OSError, ValueError):
                self._mailbox.client.shutdown()
        self._connected.close()

    def _break_off(self) -> None:
        with suppress(OSError):
            self._switch.shutdown(socket.SHUT_RDWR)


async def _connected(server: Server) -> socket.socket:
    """A socket that is connected to the server. Raises ToolError."""
    loop = asyncio.get_running_loop()
    failed: OSError | None = None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            for family, kind, proto, _, address in await loop.getaddrinfo(
                server.host, server.port, type=socket.SOCK_STREAM
            ):
                made = socket.socket(family, kind, proto)
                made.setblocking(False)
                try:
                    await loop.sock_connect(made, address)
                except OSError as error:
                    made.close()
                    failed = error
                except BaseException:
                    made.close()
                    raise
                else:
                    return made
    except (OSError, UnicodeError) as error:  # TimeoutError too
        raise unreachable(server, error) from None
    raise unreachable(server, failed or OSError("the name leads nowhere"))
