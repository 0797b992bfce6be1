"""What tests of `Email` share: mails as bytes, tools for servers of a test, calls as runs make them."""

from __future__ import annotations

from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import uuid4

from halo_lang import catalog
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.email.provider import Email
from tests.services.mail import PASSWORD, Dovecot, Post

SPEC = catalog.provider("Email")
assert SPEC is not None
ME = "Me <me@example.org>"


def mail(
    text: str | None = "Hello.\n", *, subject: str = "Greetings", html: str | None = None,
    sender: str = "Ada <ada@example.org>", files: Mapping[str, bytes] | None = None, **headers: str,
) -> bytes:  # fmt: skip
    """A mail as another client sends it."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = "me@example.org"
    message["Subject"] = subject
    message["Date"] = "Mon, 30 Nov 2026 10:00:00 +0100"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    if text is not None:
        message.set_content(text)
    if html is not None:
        (message.set_content if text is None else message.add_alternative)(html, subtype="html")
    for name, content in (files or {}).items():
        message.add_attachment(content, maintype="application", subtype="pdf", filename=name)
    return message.as_bytes()


class Box:
    """A mailbox of a user whom no other test has."""

    def __init__(self, server: Dovecot) -> None:
        self.server = server
        self.user = f"u{uuid4().hex[:12]}"
        self._count = 0

    def put(self, *mails: bytes, folder: str = "") -> None:
        """Deliver mails; their uids count from 1."""
        for one in mails:
            self._count += 1
            self.server.deliver(self.user, one, f"{1764500000 + self._count}.{self._count}.host", folder)

    @property
    def settings(self) -> dict[str, Any]:
        """What a declaration for it has."""
        return {"imap": f"imaps://127.0.0.1:{self.server.secure}", "user": self.user, "password": PASSWORD}


def sending(port: int, **more: Any) -> dict[str, Any]:
    """What a declaration for a server that sends has."""
    return {"smtp": f"127.0.0.1:{port}", "user": "me", "password": PASSWORD, "from": ME, **more}


def opened(settings: dict[str, Any], folder: Path = Path()) -> Email:
    """The tool of a declaration."""
    tool = tool_factory("Email")(ToolConfig("Post", "Email", settings, folder))
    assert isinstance(tool, Email)
    return tool


async def ask(tool: Email, method: str, **args: Any) -> Any:
    """Call a method as a run does: through its signature, with its defaults."""
    entry = SPEC.method(method)
    assert entry is not None
    bound = entry.signature.bind((), args)
    assert not bound.problems
    assert not bound.wrong_values()
    return await tool.call(method, dict(bound.values()))


async def send(post: Post, folder: Path = Path(), settings: dict[str, Any] | None = None, **args: Any) -> Any:
    """Send one mail and close the tool."""
    tool = opened({**sending(post.port), **(settings or {})}, folder)
    try:
        return await ask(tool, "send", **{"to": "ada@example.org", "subject": "s", "text": "t", **args})
    finally:
        await tool.close()
