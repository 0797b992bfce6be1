"""Messages of the base protocol over file descriptors: a header with the length, an empty line, the body.

What arrives is not trusted: a header without end, a length that is none or that no memory holds, and an end in the
middle of a message are answers of their own, and reading goes on behind them where that is possible.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

MAX_BODY: Final = 64 * 1024 * 1024
"""Bytes of one message. A larger one is read past, so that it costs time but no memory."""

MAX_HEADER: Final = 8 * 1024
_CHUNK: Final = 256 * 1024
_END = re.compile(rb"\r?\n\r?\n")
# Not only at the beginning of a line: in front of it may stand what is left of a message with a wrong length.
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


class Malformed(ValueError):
    """What arrived where a message should be; the text says why it is none."""


class Incoming:
    """The bodies that arrive at a file descriptor, one after the other, until its end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def __iter__(self) -> Iterator[bytes | Malformed]:
        while (length := self._header()) is not None:
            if isinstance(length, Malformed):
                yield length
            elif length > MAX_BODY:
                if not self._skip(length):
                    return
                yield Malformed(f"a message of {length} bytes; the most is {MAX_BODY}")
            elif (body := self._take(length)) is not None:
                yield body

    def _header(self) -> int | Malformed | None:
        """The length that the next header tells; None at the end of the input."""
        while (end := _END.search(self._buffer, 0, MAX_HEADER)) is None:
            if len(self._buffer) >= MAX_HEADER:
                self._buffer.clear()
                return Malformed(f"a header of over {MAX_HEADER} bytes")
            if not self._read():
                return None
        header = bytes(self._buffer[: end.end()])
        del self._buffer[: end.end()]
        found = _LENGTH.search(header)
        return int(found[1]) if found else Malformed("a header without Content-Length")

    def _take(self, length: int) -> bytes | None:
        while len(self._buffer) < length:
            if not self._read():
                return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _skip(self, length: int) -> bool:
        while len(self._buffer) < length:
            length -= len(self._buffer)
            self._buffer.clear()
            if not self._read():
                return False
        del self._buffer[:length]
        return True

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, _CHUNK)
        except OSError:
            return False  # closed from the start, or a terminal that has gone
        self._buffer += data
        return bool(data)


class Outgoing:
    """Writes whole messages to a file descriptor; the shape that pygls wants of a writer."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """All of `data`, header and body. Where nobody reads any more it is lost: the input will end as well."""
        rest = memoryview(data)
        with suppress(OSError):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def close(self) -> None:
        """Called before the process ends; nothing is buffered here."""
