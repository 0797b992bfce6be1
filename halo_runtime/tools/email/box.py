"""A folder that is open, as imap-tools has it: finding, fetching, marking, moving mails (RFC 9051). Blocking."""

from __future__ import annotations

import imaplib
import re
from typing import Final

from imap_tools import BaseMailBox
from imap_tools.utils import encode_folder

from halo_lang.records import record
from halo_runtime.tools.web.client import clean

MAX_FOLDERS: Final = 20
"""Folders that a message names."""

_META: Final = re.compile(rb"\b(UID|RFC822\.SIZE) (\d+)")
_FLAGS: Final = re.compile(rb"\bFLAGS \(([^)]*)\)")


@record
class Fetched:
    """What the server has of a mail: `size` in bytes, and the piece of it that was asked for."""

    uid: int
    size: int
    seen: bool
    data: bytes = b""


class Box:
    """A folder that is open, for the thread that works with it. Raises imaplib's and imap-tools' errors, ToolError."""

    def __init__(self, mailbox: BaseMailBox) -> None:
        self._mailbox = mailbox

    @property
    def _client(self) -> imaplib.IMAP4:
        return self._mailbox.client

    def search(self, criteria: str) -> list[int]:
        """The uids of mails, oldest first."""
        found = self._mailbox.uids(criteria, None if criteria.isascii() else "UTF-8")
        return sorted(int(uid) for uid in found)

    def fetch(self, uids: list[int], item: str = "") -> list[Fetched]:
        """What the server has of some mails; those that are gone are left out. `item` is what to fetch of them."""
        if not uids:
            return []
        items = f"(UID FLAGS RFC822.SIZE{f' {item}' if item else ''})"
        answer = self._command("FETCH", ",".join(map(str, uids)), items)
        return _fetched(answer)

    def mark(self, uid: int, flag: str) -> None:
        """Give a mail a flag."""
        self._command("STORE", str(uid), "+FLAGS.SILENT", f"({flag})")

    def remove(self, uid: int) -> None:
        """Remove a mail; where the server cannot remove a single one it stays, marked as deleted."""
        self.mark(uid, r"\Deleted")
        if "UIDPLUS" in self._client.capabilities:
            self._command("EXPUNGE", str(uid))

    def move(self, uid: int, folder: str) -> None:
        """Move a mail to another folder."""
        name = encode_folder(folder)
        whole = "MOVE" in self._client.capabilities
        try:
            self._command("MOVE" if whole else "COPY", str(uid), name)
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as error:
            hint = self.others() if "[TRYCREATE]" in str(error) else ""
            raise imaplib.IMAP4.error(f"{error}{hint}") from None
        if not whole:
            self.remove(uid)

    def others(self) -> str:
        """The folders that there are, as the end of a sentence."""
        names = [info.name for info in self._mailbox.folder.list()]
        more = ", …" if len(names) > MAX_FOLDERS else ""
        return f"; there are {', '.join(names[:MAX_FOLDERS])}{more}"

    def _command(self, command: str, *args: str | bytes) -> list[bytes | tuple[bytes, bytes] | None]:
        kind, answer = self._client.uid(command, *args)  # pyright: ignore[reportArgumentType] - bytes are taken too
        if kind != "OK":
            raise imaplib.IMAP4.error(
                b" ".join(one for one in answer if isinstance(one, bytes)).decode("utf-8", "replace")
            )
        return answer if command == "FETCH" else []


def _fetched(answer: list[bytes | tuple[bytes, bytes] | None]) -> list[Fetched]:
    """The mails of a FETCH answer: for each a piece with its attributes, a literal perhaps, and the rest of them."""
    found: list[Fetched] = []
    for number, item in enumerate(answer):
        rest = answer[number + 1] if number + 1 < len(answer) else None
        if isinstance(item, tuple):
            found += _one(item[0] + b" " + (rest if isinstance(rest, bytes) else b""), item[1])
        elif isinstance(item, bytes) and not (number and isinstance(answer[number - 1], tuple)):
            found += _one(item, b"")
    return found


def _one(attributes: bytes, data: bytes) -> list[Fetched]:
    numbers = {name: int(value) for name, value in _META.findall(attributes)}
    flags = _FLAGS.search(attributes)
    if b"UID" not in numbers:  # what the server says by itself, of mails that nobody asked about
        return []
    seen = flags is not None and rb"\seen" in flags[1].lower()
    return [Fetched(numbers[b"UID"], numbers.get(b"RFC822.SIZE", 0), seen, data)]


def words_of(error: Exception) -> str:
    """The server's own words."""
    result: object = getattr(error, "command_result", None)
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], list):  # pyright: ignore
        told = b" ".join(one for one in result[1] if isinstance(one, bytes))  # pyright: ignore
        return clean(told.decode("utf-8", "replace"))
    told = error.args[0] if error.args else ""
    return clean(told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)) or type(error).__name__
