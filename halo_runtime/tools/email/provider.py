"""`Email(smtp, imap, user, password, from, allowRecipients)`: sending, answering, finding and reading mail (spec 5)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from halo_lang.catalog.signature import duration_seconds
from halo_lang.records import record
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.email.addresses import (
    AddressProblem,
    MailAddress,
    Recipients,
    parse_address,
    parse_addresses,
)
from halo_runtime.tools.email.servers import Protocol, Server, read_server
from halo_runtime.tools.threads import Stop, Workers

if TYPE_CHECKING:
    from halo_runtime.tools.email.compose import Draft
    from halo_runtime.tools.email.files import Files
    from halo_runtime.tools.email.mailbox import Session

SECONDS: Final = 60.0

_SENDING: Final = ("send", "reply")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@record
class Account:
    """What a declaration says: servers, who sends, and who may get mail (None: whomever the program names)."""

    smtp: Server | None
    imap: Server | None
    sender: MailAddress | None
    allowed: Recipients | None
    seconds: float = SECONDS


class Email:
    """One declared account. Mail is read over one connection that is kept, and sent over one for each mail."""

    def __init__(self, name: str, account: Account, files: Path, shown: str, told: Sequence[str] = ()) -> None:
        self._name = name
        self._account = account
        self._root = files
        self._shown = shown
        self._told = tuple(told)
        self._workers = Workers(name)
        self._mailbox: Session | None = None

    def refuses(self, method: str, args: JsonObject) -> str | None:
        """Why a call that an agent chose is not made: mail to anybody is a way out for whatever the agent has read."""
        if method in _SENDING and self._account.allowed is None:
            return (
                "agents send mail only where the declaration says to whom:"
                ' allowRecipients: ["ada@example.org", "@example.org"], or ["*"] for anybody'
            )
        return None

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError."""
        try:
            return await self._done(method, args)
        except AddressProblem as problem:
            raise ToolError(f"{self._name}.{method}: {problem}; nothing was sent") from None
        except ToolError as error:
            error.args = (f"{self._name}.{method}: {error.message}",)
            raise
        except OSError as error:
            raise ToolError(f"{self._name}.{method}: {error.strerror} (`{error.filename or self._shown}`)") from None

    async def close(self) -> None:
        """Close the connection to the mailbox and end the threads."""
        if self._mailbox is not None:
            await self._mailbox.close()
        self._workers.close()

    async def notify(self, subject: str, text: str) -> None:
        """Send the text to those whom the declaration names. Raises ToolError."""
        if not self._told:
            raise ToolError(f'{self._name} does not say who is told of questions; give it notify: ["ada@example.org"]')
        await self.call("send", {"to": list(self._told), "subject": subject, "text": text})

    async def probe(self) -> str:
        """Connect and log in at each server; nothing is sent, and nothing is marked."""
        found: list[str] = []
        if self._account.smtp is not None:
            from halo_runtime.tools.email.sending import greet

            await greet(self._account.smtp, self._account.seconds)
            found.append(f"{self._account.smtp.shown} takes mail")
        if self._account.imap is not None:
            new = await self._mails().do("INBOX", lambda box: len(box.search("UNSEEN UNDELETED")))
            found.append(f"{self._account.imap.shown} has {new} unread mails")
        return ", ".join(found)

    async def _done(self, method: str, args: JsonObject) -> Json:
        if method == "send":
            return await self._send(args)
        session = self._mails()
        from halo_runtime.tools.email.reading import OPERATIONS, folder_of

        folder = folder_of(args)
        if method == "reply":
            return await self._reply(session, folder, args)
        if method == "attachment":
            return await self._attachment(session, folder, args)
        operation = OPERATIONS.get(method)
        if operation is None:
            raise ToolError(f"there is no such method; there are send, reply, attachment, {', '.join(OPERATIONS)}")
        return await session.do(folder, operation.prepare(args), change=operation.change, once=operation.once)

    def _mails(self) -> Session:
        """The connection to the mailbox."""
        if self._account.imap is None:
            raise ToolError("the declaration names no server that holds mail; give it imap:")
        if self._mailbox is None:
            from halo_runtime.tools.email.mailbox import Session

            self._mailbox = Session(self._name, self._account.imap, self._account.seconds)
        return self._mailbox

    def _files(self) -> Files:
        from halo_runtime.tools.email.files import Files

        return Files(self._root, self._shown)

    # --- sending ------------------------------------------------------------------------------------------------

    async def _send(self, args: JsonObject) -> JsonObject:
        from halo_runtime.tools.email.compose import Draft

        draft = Draft(
            self._sender(),
            parse_addresses(args["to"], "to"),
            args["subject"],
            args["text"],
            parse_addresses(args.get("cc"), "cc"),
            parse_addresses(args.get("bcc"), "bcc"),
            parse_addresses(args.get("replyTo"), "replyTo"),
            args.get("html"),
        )
        return await self._sent(draft, args)

    async def _reply(self, session: Session, folder: str, args: JsonObject) -> JsonObject:
        from halo_runtime.tools.email.compose import Draft, answer_to
        from halo_runtime.tools.email.mails import authors, header, headers
        from halo_runtime.tools.email.reading import to_answer

        sender = self._sender()
        mail = await session.do(folder, to_answer(args))
        draft = Draft(sender, authors(mail), "", args["text"], html=args.get("html"))
        chain = headers(mail, "References") or headers(mail, "In-Reply-To")
        ids = "".join(headers(mail, "Message-ID"))
        return await self._sent(answer_to(draft, header(mail, "Subject"), ids, chain), args)

    def _sender(self) -> MailAddress:
        if self._account.smtp is None or self._account.sender is None:
            raise ToolError("the declaration names no server that sends mail; give it smtp:")
        return self._account.sender

    async def _sent(self, draft: Draft, args: JsonObject) -> JsonObject:
        """Hand the mail over: its id, and who was refused."""
        from halo_runtime.tools.email.compose import MAX_MESSAGE_BYTES, check_recipients, compose
        from halo_runtime.tools.email.sending import send

        check_recipients(draft, self._account.allowed)
        paths: list[str] = args.get("attachments") or []
        files = self._files()

        def composed(stop: Stop) -> tuple[str, bytes]:
            return compose(replace(draft, attachments=files.load(paths, stop) if paths else ()), datetime.now(UTC))

        identity, message = await self._workers.do(composed)
        if len(message) > MAX_MESSAGE_BYTES:
            raise ToolError(f"the mail has more than {MAX_MESSAGE_BYTES >> 20} MB; nothing was sent")
        server, seconds = self._account.smtp, self._account.seconds
        assert server is not None, "there is a sender"
        refused = await send(server, draft.sender.address, draft.recipients, message, seconds)
        told = [{"address": one.address, "code": one.code, "message": one.message} for one in refused]
        return {"id": identity, "refused": told}

    # --- attachments --------------------------------------------------------------------------------------------

    async def _attachment(self, session: Session, folder: str, args: JsonObject) -> JsonObject:
        from halo_runtime.tools.email.mails import attachments
        from halo_runtime.tools.email.reading import to_keep

        mail = await session.do(folder, to_keep(args))
        parts = {part.name: part for part in await self._workers.do(lambda stop: attachments(mail))}
        part = parts.get(args["name"])
        if part is None:
            names = ", ".join(f"`{name}`" for name in parts) or "none"
            raise ToolError(f"the mail has no attachment `{args['name']}`; there are {names}")
        files = self._files()
        path = await self._workers.do(lambda stop: files.keep(part.name, part.content, stop))
        return {"path": path, "size": part.size}


def open_email(config: ToolConfig) -> Email:
    """The account of a declaration; nothing is connected to yet. Raises ConfigError."""
    settings = config.settings
    smtp = _server("smtp", settings, settings.get("user"), settings.get("password"))
    imap = _server(
        "imap", settings, settings.get("imapUser") or settings.get("user"),
        settings.get("imapPassword") or settings.get("password"),
    )  # fmt: skip
    if smtp is None and imap is None:
        raise ConfigError("Email needs a server: smtp: to send (or SMTP_HOST), imap: to read (or IMAP_HOST), or both")
    if imap is not None and imap.user is None:
        raise ConfigError("imap: needs user: and password: (or IMAP_USER and IMAP_PASSWORD)")
    try:
        sender = _sender_of(settings) if smtp is not None else None
        entries: list[str] | None = settings.get("allowRecipients")
        allowed = None if entries is None else Recipients.of(entries)
    except AddressProblem as problem:
        raise ConfigError(str(problem)) from None
    seconds = duration_seconds(settings.get("timeout") or "") or SECONDS
    shown = settings.get("files") or "."
    account = Account(smtp, imap, sender, allowed, seconds)
    return Email(config.name, account, config.folder / shown, shown, settings.get("notify") or ())


def _server(protocol: Protocol, settings: JsonObject, user: str | None, password: str | None) -> Server | None:
    text = settings.get(protocol)
    if not text:
        return None
    server = read_server(protocol, text, settings.get(f"{protocol}Port"))
    if (user is None) != (password is None):
        raise ConfigError(f"{'password' if password is None else 'user'}: is missing; a server wants both, or none")
    if user is None or password is None:
        return server
    if _CONTROLS.search(user) or _CONTROLS.search(password):
        raise ConfigError("user: or password: holds a line break or control characters; set it again")
    return replace(server, user=user, password=password)


def _sender_of(settings: JsonObject) -> MailAddress:
    text = settings.get("from")
    if text:
        return parse_address(text, "from:")
    try:
        return parse_address(settings.get("user") or "", "user:")
    except AddressProblem:
        raise AddressProblem("from: is missing: the address that mail is sent from (or SMTP_FROM)") from None
