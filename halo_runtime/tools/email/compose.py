"""A mail as bytes: headers that nothing can break out of, text, HTML, attachments. Pure functions.

RFC 5322 and MIME by the standard library, in 7-bit, so that every server takes it as it is.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from typing import Final

from halo_lang.records import record
from halo_runtime.tools.email.addresses import (
    MAX_RECIPIENTS,
    AddressProblem,
    MailAddress,
    Recipients,
    header_text,
)
from halo_runtime.tools.workspace.taking import TakenFile

MAX_SUBJECT: Final = 900
MAX_MESSAGE_BYTES: Final = 25 * 1024 * 1024
"""What most servers take, as it goes over the wire."""
MAX_FILES_BYTES: Final = 18 * 1024 * 1024
"""Of all files of a mail: packing for the way makes them a third larger."""

_POLICY: Final = SMTP.clone(cte_type="7bit")
_ID: Final = re.compile(r"<[!-;=?-~]{3,248}>")
_REPLY: Final = re.compile(r"\s*(?:re|aw|sv|antw)(?:\[\d+\])?\s*:", re.IGNORECASE)
_RAW_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_KEPT_REFERENCES: Final = 20


@record
class Draft:
    """A mail to be sent. `bcc` get it and stand in no header; `in_reply_to` and `references` are message ids."""

    sender: MailAddress
    to: tuple[MailAddress, ...]
    subject: str
    text: str
    cc: tuple[MailAddress, ...] = ()
    bcc: tuple[MailAddress, ...] = ()
    reply_to: tuple[MailAddress, ...] = ()
    html: str | None = None
    attachments: tuple[TakenFile, ...] = ()
    in_reply_to: str | None = None
    references: tuple[str, ...] = ()

    @property
    def recipients(self) -> tuple[str, ...]:
        """Everybody who gets it, each once."""
        return tuple(dict.fromkeys(one.address for one in (*self.to, *self.cc, *self.bcc)))


def check_recipients(draft: Draft, allowed: Recipients | None) -> None:
    """Raises AddressProblem for nobody, for too many, and for those who may get no mail; nobody gets any then."""
    if not draft.recipients:
        raise AddressProblem("nobody is named in to:")
    if len(draft.recipients) > MAX_RECIPIENTS:
        raise AddressProblem(f"there are more than {MAX_RECIPIENTS} recipients")
    refused = [one.address for one in (*draft.to, *draft.cc, *draft.bcc) if allowed and not allowed.allow(one)]
    if refused:
        named = ", ".join(dict.fromkeys(refused))
        raise AddressProblem(f"{named} may get no mail from here (see allowRecipients: in the declaration)")


def compose(draft: Draft, moment: datetime) -> tuple[str, bytes]:
    """The mail's id and the mail itself. Raises AddressProblem for what no header can hold."""
    subject = header_text(draft.subject, "subject")
    if len(subject) > MAX_SUBJECT:
        raise AddressProblem(f"subject is longer than {MAX_SUBJECT} characters")
    message = EmailMessage(_POLICY)
    message["From"] = _header(draft.sender)
    for name, addresses in (("To", draft.to), ("Cc", draft.cc), ("Reply-To", draft.reply_to)):
        if addresses:
            message[name] = tuple(map(_header, addresses))
    message["Subject"] = subject
    message["Date"] = format_datetime(moment)
    message["Message-ID"] = identity = make_msgid(domain=draft.sender.domain)
    _add_body(message, draft)
    for attachment in draft.attachments:
        kind = (mimetypes.guess_type(attachment.name)[0] or "application/octet-stream").split("/")
        # A mail that is attached as a message would go out unencoded, with whatever headers it has.
        maintype, subtype = kind if kind[0] not in ("message", "multipart") else ("application", "octet-stream")
        message.add_attachment(attachment.content, maintype=maintype, subtype=subtype, filename=attachment.name)
    return identity, _thread_headers(draft) + message.as_bytes(policy=_POLICY)


def answer_to(draft: Draft, subject: str, message_id: str, references: Iterable[str]) -> Draft:
    """`draft` as the answer to a mail with these headers: `Re:` once, and ids that clients make threads of."""
    ids = [one for text in references for one in _ID.findall(text)]
    own = _ID.search(message_id)
    chain = [*ids, own[0]] if own else ids
    kept = chain[:1] + chain[1:][-_KEPT_REFERENCES:]  # the first is the thread's, the last ones are the nearest
    # A stranger's subject is cleaned, where a program's own would be refused.
    plain = " ".join(re.sub(r"=\?|\?=|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", " ", subject).split())
    answered = plain if _REPLY.match(plain) else f"Re: {plain}"
    return replace(
        draft,
        subject=answered[:MAX_SUBJECT],
        in_reply_to=own[0] if own else None,
        references=tuple(dict.fromkeys(kept)),
    )


def _header(one: MailAddress) -> Address:
    return Address(display_name=one.name, username=one.local, domain=one.domain)


def _add_body(message: EmailMessage, draft: Draft) -> None:
    message.set_content(_whole(draft.text), cte=_encoding(draft.text))
    if draft.html is not None:
        message.add_alternative(_whole(draft.html), subtype="html", cte=_encoding(draft.html))


def _whole(text: str) -> str:
    """Halves of surrogate pairs are no characters."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _encoding(text: str) -> str | None:
    """How a text is packed; None leaves that to the library, which takes controls and lone returns as they are."""
    return "base64" if _RAW_CONTROLS.search(text) else None


def _thread_headers(draft: Draft) -> bytes:
    """Headers of an answer. The library would encode ids that are longer than a line, which no client undoes."""
    if draft.in_reply_to is None and not draft.references:
        return b""
    lines = ["Auto-Submitted: auto-replied"]  # so that other machines do not answer (RFC 3834)
    if draft.in_reply_to is not None:
        lines.append(f"In-Reply-To: {draft.in_reply_to}")
    if draft.references:
        lines.append("References: " + "\r\n ".join(draft.references))
    return "".join(f"{line}\r\n" for line in lines).encode("ascii")
