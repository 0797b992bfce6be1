"""Real servers for mail: Dovecot with mailboxes, aiosmtpd that keeps what it is sent, and a wire that breaks.

Dovecot runs from its own folder on free ports, as root (its processes then as `nobody`) or as whoever runs the tests.
Every account has the same password and a mailbox of its own, made when it is first used, so a test takes a new name.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

TLS = Path(__file__).parent.parent / "fakes" / "tls"
CERTIFICATE = TLS / "certificate.pem"
"""For localhost, 127.0.0.1 and models.test; signed by itself."""
DOVECOT = shutil.which("dovecot", path=f"{os.defpath}:/usr/sbin") or "dovecot"
PASSWORD = "zq-7731-hidden"

_CONFIG = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
default_internal_user = {internal}
default_internal_group = {group}
default_login_user = {login}
mail_location = maildir:~/Maildir
ssl = yes
ssl_cert = <{certificate}
ssl_key = <{folder}/key.pem
first_valid_uid = 1
auth_mechanisms = plain login
auth_failure_delay = 0
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home/%u
}}
service imap-login {{
  {chroot}
  inet_listener imap {{
    port = {plain}
  }}
  inet_listener imaps {{
    port = {secure}
    ssl = yes
  }}
}}
service anvil {{
  {chroot}
  # Wrong passwords would slow down who comes from the same address.
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service stats {{
  {chroot}
}}
"""


@dataclass(frozen=True)
class Dovecot:
    """The server: its ports (STARTTLS, TLS), and where the mailboxes are."""

    plain: int
    secure: int
    home: Path
    owner: tuple[int, int]

    def deliver(self, user: str, mail: bytes, name: str, folder: str = "") -> None:
        """Put a mail into a user's mailbox, as a delivery does."""
        box = self.home / user / "Maildir" / (f".{folder}" if folder else "")
        for part in ("new", "cur", "tmp"):
            (box / part).mkdir(parents=True, exist_ok=True)
        (box / "new" / name).write_bytes(mail)
        if os.geteuid() == 0:
            for path in (self.home / user, *(self.home / user).rglob("*")):
                os.chown(path, *self.owner)


@contextmanager
def dovecot() -> Generator[Dovecot]:
    """Run Dovecot in a folder of its own, which pytest's are not: nobody else can enter them."""
    with TemporaryDirectory(prefix="halo-dovecot-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        yield from _running(Path(folder))


def _running(folder: Path) -> Generator[Dovecot]:
    root = os.geteuid() == 0
    owner = pwd.getpwnam("nobody") if root else pwd.getpwuid(os.geteuid())
    me = owner.pw_name
    plain, secure = _free_port(), _free_port()
    home = folder / "home"
    home.mkdir()
    shutil.copy(TLS / "key.pem", folder / "key.pem")
    if root:
        os.chown(home, owner.pw_uid, owner.pw_gid)
    text = _CONFIG.format(
        folder=folder, internal="dovecot" if root else me, login="dovenull" if root else me,
        group="dovecot" if root else _group(owner.pw_gid), certificate=CERTIFICATE, password=PASSWORD, uid=owner.pw_uid,
        gid=owner.pw_gid, plain=plain, secure=secure, chroot="chroot =",
    )  # fmt: skip
    config = folder / "dovecot.conf"
    config.write_text(text)
    process = subprocess.Popen(
        [DOVECOT, "-F", "-c", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _wait(plain, process, folder / "log")
        yield Dovecot(plain, secure, home, (owner.pw_uid, owner.pw_gid))
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its goodbye to all its processes takes seconds
        process.communicate(timeout=10)


def _group(gid: int) -> str:
    import grp

    return grp.getgrgid(gid).gr_name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers. Raises RuntimeError with its own words."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as probe:
                if probe.recv(4) == b"* OK":
                    return
        except OSError:
            time.sleep(0.02)
    told = process.stderr.read().decode() if process.poll() is not None and process.stderr else ""
    raise RuntimeError(f"Dovecot does not answer: {told} {log.read_text() if log.exists() else ''}")


@dataclass(frozen=True)
class Sent:
    """A mail as the server got it."""

    sender: str
    recipients: tuple[str, ...]
    data: bytes
    user: str | None


@dataclass
class Post:
    """An SMTP server in the test's own loop; `async with` runs it.

    `says` is asked for each command with what it is about (`RCPT`, an address; `DATA`, a mail) and gives the reply,
    None for the usual one. Without `tls` it offers none; without `auth` everybody may send.
    """

    tls: bool = True
    auth: bool = True
    implicit: bool = False
    says: Callable[[str, str], str | None] = lambda command, about: None
    max_size: int = 40_000_000
    sent: list[Sent] = field(default_factory=list[Sent])
    logins: list[str] = field(default_factory=list[str])
    port: int = 0
    _talks: list[SMTP] = field(default_factory=list[SMTP])

    def parsed(self, number: int = 0) -> Any:
        """A mail as a reader sees it."""
        return message_from_bytes(self.sent[number].data, policy=policy.default)

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE, TLS / "key.pem")
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: self._talk(loop, context), "127.0.0.1", 0, ssl=context if self.implicit else None
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for talk in self._talks:
            if talk.transport is not None:
                talk.transport.abort()
        tasks = [talk._handler_coroutine for talk in self._talks if talk._handler_coroutine is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _talk(self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext) -> SMTP:
        starttls = self.tls and not self.implicit
        with warnings.catch_warnings(action="ignore"):  # of passwords without TLS, which is the point of some tests
            talk = SMTP(
                self, hostname="post.test", data_size_limit=self.max_size, loop=loop,
                tls_context=context if starttls else None, authenticator=self._check if self.auth else None,
                auth_required=self.auth,
                auth_exclude_mechanism=None if self.auth else ["LOGIN", "PLAIN"], auth_require_tls=starttls,
            )  # fmt: skip
        self._talks.append(talk)
        return talk

    def _check(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        user = data.login.decode()
        self.logins.append(user)
        return AuthResult(success=data.password == PASSWORD.encode(), auth_data=user, handled=False)

    async def handle_MAIL(  # noqa: N802 - the names are aiosmtpd's
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        told = self.says("MAIL", address)
        if told is None:
            envelope.mail_from = address
            envelope.mail_options.extend(options)
        return told or "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        told = self.says("RCPT", address)
        if told is None:
            envelope.rcpt_tos.append(address)
        return told or "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        data = envelope.content
        assert isinstance(data, bytes)
        told = self.says("DATA", data.decode("latin-1"))
        if told is None:
            user = session.auth_data if self.auth else None
            self.sent.append(Sent(envelope.mail_from or "", tuple(envelope.rcpt_tos), data, user))
        return told or "250 OK kept"


class Wire:
    """A wire to a server that stops at a word: what a client sends from then on goes nowhere.

    `hide` takes the offer of STARTTLS away, as somebody on the way could. `held` tells that the word has come, `left`
    that the client has gone. `cut` closes the connection at the word instead.
    """

    def __init__(
        self, port: int, *, stop_at: bytes | None = None, stop_after: bytes | None = None, hide: bool = True,
        cut: bool = False,
    ) -> None:  # fmt: skip
        self._target = port
        self._stop_at = stop_at
        self._stop_after = stop_after
        self._hide = hide
        self._cut = cut
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.held = asyncio.Event()
        self.left = asyncio.Event()
        self.connections = 0
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        await self._server.wait_closed()

    def drop(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, out = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += (writer, out)
        self._tasks.add(asyncio.create_task(self._back(there, writer)))
        self._tasks.add(asyncio.create_task(self._forth(reader, out, writer)))

    async def _forth(
        self, reader: asyncio.StreamReader, out: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while data := await reader.read(65536):
                found = self._stop_at is not None and self._stop_at in data
                if not self.held.is_set() and not found:
                    out.write(data)
                    found = self._stop_after is not None and self._stop_after in data
                if found:
                    self.held.set()
                    if self._cut:
                        break
        except ConnectionError:
            pass
        finally:
            self.left.set()
            out.close()
            writer.close()

    async def _back(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await there.read(65536):
                if not self.held.is_set():
                    writer.write(data.replace(b"STARTTLS", b"XTARTTLS") if self._hide else data)
        writer.close()
