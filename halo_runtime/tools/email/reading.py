"""The methods that work in a mailbox: arguments first, then a thread does the rest in an open folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Final, TypeAlias

from imap_tools import AND

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.email.box import Box, Fetched
from halo_runtime.tools.email.mails import Mail, headline, parse_mail, whole

MAX_READ_BYTES: Final = 8 * 1024 * 1024
"""Of a mail that is read; the rest of a larger one is left at the server."""
MAX_MAIL_BYTES: Final = 64 * 1024 * 1024
"""Of a mail of which an attachment is kept."""
MAX_TERM: Final = 500

_UID: Final = re.compile(r"[1-9][0-9]{0,9}")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_LISTED: Final = "BODY.PEEK[HEADER.FIELDS (DATE FROM TO SUBJECT)]<0.16384>"
_ANSWERED: Final = "BODY.PEEK[HEADER.FIELDS (FROM REPLY-TO SUBJECT MESSAGE-ID REFERENCES IN-REPLY-TO)]<0.65536>"

Work: TypeAlias = Callable[[Box], Json]


@record
class Operation:
    """A method: `prepare` makes its work of the arguments. `change` and `once` as `Session.do` takes them."""

    prepare: Callable[[JsonObject], Work]
    change: bool = False
    once: bool = False


def folder_of(args: JsonObject) -> str:
    """The folder that a call names. Raises ToolError."""
    return _term(args.get("folder") or "INBOX", "folder")


def to_answer(args: JsonObject) -> Callable[[Box], Mail]:
    """What an answer needs to know of a mail. Raises ToolError."""
    uid = _uid(args)
    return lambda box: parse_mail(_one(box, uid, _ANSWERED).data)


def to_keep(args: JsonObject) -> Callable[[Box], Mail]:
    """A mail with all that came along. Raises ToolError."""
    uid = _uid(args)

    def work(box: Box) -> Mail:
        size = _one(box, uid).size
        if size > MAX_MAIL_BYTES:
            raise ToolError(f"mail {uid} has {size >> 20} MB; of more than {MAX_MAIL_BYTES >> 20} MB nothing is kept")
        return parse_mail(_one(box, uid, f"BODY.PEEK[]<0.{MAX_MAIL_BYTES}>").data)

    return work


def _list(args: JsonObject) -> Work:
    criteria = "UNSEEN UNDELETED" if args.get("unseen") else "UNDELETED"
    return lambda box: _newest(box, criteria, int(args["limit"]))


def _search(args: JsonObject) -> Work:
    terms: dict[str, str] = {}
    for name, key in (("from", "from_"), ("subject", "subject"), ("text", "text")):
        if args.get(name):
            terms[key] = _term(args[name], name)
    since = args.get("since")
    try:
        day = None if not since else date.fromisoformat(since)
    except ValueError:
        raise ToolError("since is a date such as 2026-01-31") from None
    criteria = str(AND(deleted=False, date_gte=day, **terms))  # type: ignore[arg-type]
    return lambda box: _newest(box, criteria, int(args["limit"]))


def _read(args: JsonObject) -> Work:
    uid = _uid(args)

    def work(box: Box) -> Json:
        found = _one(box, uid, f"BODY.PEEK[]<0.{MAX_READ_BYTES}>")
        cut = found.size > MAX_READ_BYTES
        note = f"\n[… the mail has {found.size:,} bytes; only the first {MAX_READ_BYTES:,} were read]" if cut else ""
        return _shown(found) | whole(parse_mail(found.data), note)

    return work


def _mark_read(args: JsonObject) -> Work:
    uid = _uid(args)

    def work(box: Box) -> Json:
        _one(box, uid)
        box.mark(uid, r"\Seen")
        return True

    return work


def _move(args: JsonObject) -> Work:
    uid, to = _uid(args), _term(args["to"], "to")

    def work(box: Box) -> Json:
        _one(box, uid)
        box.move(uid, to)
        return True

    return work


def _delete(args: JsonObject) -> Work:
    uid = _uid(args)

    def work(box: Box) -> Json:
        there = bool(box.fetch([uid]))
        if there:
            box.remove(uid)
        return there

    return work


OPERATIONS: Final = {
    "list": Operation(_list),
    "search": Operation(_search),
    "read": Operation(_read),
    "markRead": Operation(_mark_read, change=True),
    "move": Operation(_move, change=True, once=True),
    "delete": Operation(_delete, change=True),
}


def _newest(box: Box, criteria: str, limit: int) -> list[Json]:
    """The last mails that match, newest first."""
    found = box.fetch(box.search(criteria)[-limit:], _LISTED)
    return [_shown(one) | headline(parse_mail(one.data)) for one in sorted(found, key=lambda one: -one.uid)]


def _shown(found: Fetched) -> JsonObject:
    return {"uid": str(found.uid), "seen": found.seen, "size": found.size}


def _one(box: Box, uid: int, item: str = "") -> Fetched:
    """A mail that must be there. Raises ToolError."""
    found = [one for one in box.fetch([uid], item) if one.uid == uid]
    if not found:
        raise ToolError(f"there is no mail {uid} in the folder; it may have been moved or deleted")
    return found[0]


def _uid(args: JsonObject) -> int:
    text: str = args["uid"]
    if _UID.fullmatch(text.strip()) is None or int(text) >= 1 << 32:
        raise ToolError("uid is the number that list and search give")
    return int(text)


def _term(text: str, what: str) -> str:
    """A text that goes into a command: it could end it with a line break. Raises ToolError."""
    if _CONTROLS.search(text):
        raise ToolError(f"{what} holds a line break or control characters")
    if len(text) > MAX_TERM:
        raise ToolError(f"{what} is longer than {MAX_TERM} characters")
    return text
