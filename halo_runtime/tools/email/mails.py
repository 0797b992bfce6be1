"""Mails as they came, as text: parts, charsets and headers of every kind, broken ones too. Pure functions.

Everything here was written by strangers. Nothing is fetched, nothing is run, and what cannot be read is passed over or
said; what would take for ever is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from email.utils import getaddresses, parsedate_to_datetime
from typing import Final, TypeAlias, cast

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.prompts import cut
from halo_runtime.tools.documents.html import read_html
from halo_runtime.tools.email.addresses import AddressProblem, MailAddress, parse_address
from halo_runtime.tools.email.files import plain_name

MAX_TEXT: Final = 1_000_000
"""Characters of a mail's text that a result has."""
MAX_HEADER: Final = 1_000
MAX_RAW: Final = 10_000
"""Characters of a header that are looked at: reading it takes time that grows faster than it."""
MAX_PEOPLE: Final = 100
MAX_PARTS: Final = 1_000
MAX_WORK: Final = 10_000_000
"""Lines of a mail times the depth that its parts may have: the parser looks at each line once for each level.

Some five seconds, in a thread that cannot be stopped; a mail of 64 MB with five levels of attachments is below it.
"""

Mail: TypeAlias = "Message[str, str]"


@record
class Part:
    """Something that came along: its name here, its type, its size in bytes, and itself."""

    name: str
    kind: str
    size: int
    content: bytes


class _BoundedHeaders(Compat32):
    """The library's usual way, with headers no longer than MAX_RAW."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:MAX_RAW]


def parse_mail(data: bytes) -> Mail:
    """A mail taken apart. Raises ToolError for one that is built so as not to be."""
    levels = 1 + min(len(re.findall(rb"multipart/|message/", data, re.IGNORECASE)), data.lower().count(b"boundary"))
    if levels * data.count(b"\n") > MAX_WORK:
        raise ToolError("the mail has so many lines, or parts in parts, that it is not taken apart")
    try:
        return message_from_bytes(data, policy=_BoundedHeaders())
    except RecursionError:
        raise ToolError("the mail has so many parts in parts that it is not taken apart") from None


def headline(mail: Mail) -> JsonObject:
    """Who wrote what to whom and when, for lists. `date` in ISO 8601; null where there is none that can be read."""
    return {
        "from": next(iter(people(mail, "From")), ""),
        "to": people(mail, "To"),
        "subject": header(mail, "Subject"),
        "date": _date(mail),
    }


def whole(mail: Mail, note: str = "") -> JsonObject:
    """A mail with its text and the list of what came along. `note` stands at the end of the text."""
    copies, answers = people(mail, "Cc"), people(mail, "Reply-To")
    return headline(mail) | {
        "cc": copies,
        "replyTo": answers,
        "text": cut(text_of(mail), MAX_TEXT) + note,
        "attachments": [{"name": part.name, "type": part.kind, "size": part.size} for part in attachments(mail)],
    }


def text_of(mail: Mail) -> str:
    """What a reader sees: the plain text where there is some, else the HTML as Markdown."""
    plain: list[str] = []
    pages: list[str] = []
    for part in _leaves(mail):
        kind = part.get_content_type()
        if kind in ("text/plain", "text/html") and not _is_attached(part):
            (plain if kind == "text/plain" else pages).append(_decoded(part))
    text = "\n\n".join(piece.strip("\n") for piece in plain if piece.strip())
    return text or "\n\n".join(read_html(page).text for page in pages)


def attachments(mail: Mail) -> list[Part]:
    """What came along, each under a name of its own: files, pictures in the text, mails in mails."""
    found: list[Part] = []
    taken: set[str] = set()
    for number, part in enumerate(_leaves(mail), 1):
        kind = part.get_content_type()
        if kind in ("text/plain", "text/html") and not _is_attached(part):
            continue
        ending = ".eml" if kind == "message/rfc822" else ""
        name = plain_name(_decode(part.get_filename() or ""), f"part-{number}{ending}")
        while name.casefold() in taken:
            name = f"{number}-{name}"
        taken.add(name.casefold())
        content = _content(part)
        found.append(Part(name, kind, len(content), content))
    return found


def people(mail: Mail, name: str) -> list[Json]:
    """The addresses of a header, as `Ada Lovelace <ada@example.org>`; for reading, not for sending."""
    raw = headers(mail, name)
    try:
        pairs = getaddresses(raw)
    except (ValueError, IndexError, RecursionError):  # of old Pythons, for headers that are no addresses at all
        return [one for one in map(_decode, raw) if one][:MAX_PEOPLE]
    shown = ((_decode(person), _clean(address)) for person, address in pairs[:MAX_PEOPLE])
    return [f"{person} <{address}>" if person else address for person, address in shown if person or address]


def authors(mail: Mail) -> tuple[MailAddress, ...]:
    """Who is to be answered. Raises AddressProblem where the mail does not say so plainly."""
    for name in ("Reply-To", "From"):
        pairs = getaddresses(headers(mail, name))
        if any(address for _, address in pairs):
            return tuple(parse_address(address, f"the mail's {name}") for _, address in pairs)
    raise AddressProblem("the mail does not say from whom it is")


def headers(mail: Mail, name: str) -> list[str]:
    """All headers of a name, as they came."""
    return [_raw(str(value)) for key, value in mail.raw_items() if key.lower() == name.lower()]


def header(mail: Mail, name: str) -> str:
    """A header's text on one line, "" for none."""
    return _decode(next(iter(headers(mail, name)), ""))


def _raw(text: str) -> str:
    """A header as text; the library keeps bytes that are no ASCII as halves of surrogate pairs."""
    return text if text.isascii() else _by_guess(text.encode("utf-8", "surrogateescape"))


def _decode(text: str) -> str:
    """Encoded words (RFC 2047) as what they stand for."""
    try:
        pieces = [
            piece if isinstance(piece, str) else _by_charset(piece, charset) for piece, charset in decode_header(text)
        ]
    except ValueError:  # broken base64
        pieces = [text]
    return _clean("".join(pieces))


def _clean(text: str) -> str:
    """On one line, bounded, without halves of characters."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ").split())
    return line if len(line) <= MAX_HEADER else line[:MAX_HEADER] + "…"


def _date(mail: Mail) -> str | None:
    try:
        return parsedate_to_datetime(header(mail, "Date")).isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _leaves(mail: Mail) -> Iterator[Mail]:
    """The parts that hold something, in order. A mail in a mail is one part. Raises ToolError for too many."""
    pending = [mail]
    count = 0
    while pending:
        part = pending.pop()
        count += 1
        if count > MAX_PARTS:
            raise ToolError(f"the mail has more than {MAX_PARTS:,} parts")
        if part.is_multipart() and part.get_content_maintype() == "multipart":
            pending += reversed(_inner(part))
        else:
            yield part


def _inner(part: Mail) -> list[Mail]:
    """The parts of a part that has some."""
    return cast("list[Mail]", part.get_payload())


def _is_attached(part: Mail) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_filename() is not None


def _content(part: Mail) -> bytes:
    """The bytes of a part, unpacked as far as they can be."""
    if part.is_multipart():
        try:
            return b"".join(one.as_bytes() for one in _inner(part))
        except (RecursionError, ValueError, LookupError):
            return b""
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _decoded(part: Mail) -> str:
    return _by_charset(_content(part), _charset(part)).replace("\r\n", "\n").replace("\0", "")


def _charset(part: Mail) -> str | None:
    try:
        charset = part.get_content_charset()
    except (ValueError, LookupError):
        return None
    return charset if isinstance(charset, str) else None


def _by_charset(data: bytes, charset: str | None) -> str:
    """Bytes as text by the charset that is named where it is one of text, else by guess."""
    if charset and charset not in ("us-ascii", "ascii", "unknown-8bit"):
        try:
            return data.decode(charset, "replace").encode("utf-8", "replace").decode("utf-8")
        except (LookupError, UnicodeError, ValueError):
            pass
    return _by_guess(data)


def _by_guess(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")
