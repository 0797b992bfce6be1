"""What model services stream, taken apart as the bytes come: lines, and server-sent events by the WHATWG standard.

Pure and without a limit of their own: http.py bounds the bytes. Bytes may end anywhere, inside a character too.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from halo_lang.records import record

_LINE_END: Final = re.compile("\r\n|\n|\r")
"""Not `str.splitlines`, which would also cut at characters that may stand inside a JSON string (U+2028, U+0085)."""


class Lines:
    """Cuts a stream of UTF-8 into lines; a first BOM is dropped. Bytes that are none raise UnicodeDecodeError."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
        self._parts: list[str] = []
        self._half = ""

    def feed(self, part: bytes) -> list[str]:
        """The lines that are complete with `part`, without their ends."""
        text = self._half + self._decoder.decode(part)
        self._half = "\r" if text.endswith("\r") else ""  # of a CRLF, perhaps
        return self._cut(text.removesuffix("\r"))

    def end(self) -> list[str]:
        """What is left when the stream ends: the last line, where it has no end of its own.

        A replacement character stands for one that was begun: with it the line is no JSON.
        """
        begun, _ = self._decoder.getstate()
        lines = self._cut(self._half + ("\ufffd" if begun else ""))
        rest = "".join(self._parts)
        self._parts, self._half = [], ""
        return [*lines, rest] if rest else lines

    def _cut(self, text: str) -> list[str]:
        first, *others = _LINE_END.split(text)
        self._parts.append(first)
        if not others:
            return []
        lines = ["".join(self._parts), *others[:-1]]
        self._parts = [others[-1]]
        return lines


@record
class Event:
    """One server-sent event; `name` is `message` where the service gives none."""

    name: str
    data: str


class Events:
    """Cuts a stream into server-sent events. Comments and events without data are dropped, as the standard says."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._name = ""
        self._data: list[str] = []

    def feed(self, part: bytes) -> list[Event]:
        """The events that are complete with `part`."""
        return [event for line in self._lines.feed(part) if (event := self._take(line)) is not None]

    def end(self) -> list[Event]:
        """The last event, where the blank line after it is missing: the standard drops it, services forget the line."""
        found = [self._take(line) for line in (*self._lines.end(), "")]
        return [event for event in found if event is not None]

    def _take(self, line: str) -> Event | None:
        if not line:
            event = Event(self._name or "message", "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        return None
