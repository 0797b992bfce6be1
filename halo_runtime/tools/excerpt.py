"""What is kept of a long text while it comes in: its start and its end, with a mark where the middle is left out."""

from __future__ import annotations

from typing import Final

KEPT_BYTES: Final = 1_000_000


class Excerpt:
    """Takes bytes without end and keeps `limit` of them: half from the start, half from the end."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._start = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        half = self._limit // 2
        room = half - len(self._start)
        self._start += data[:room] if room > 0 else b""
        self._tail += data[max(room, 0) :]
        if len(self._tail) > self._limit:
            self._left_out += len(self._tail) - half
            del self._tail[:-half]

    def text(self) -> str:
        """What was kept, what is not UTF-8 replaced."""
        half = self._limit // 2
        surplus = max(0, len(self._tail) - half)
        left_out = self._left_out + surplus
        if not left_out:
            return (self._start + self._tail).decode(errors="replace")
        start, tail = self._start.decode(errors="replace"), self._tail[surplus:].decode(errors="replace")
        return f"{start}\n[… {left_out:,} bytes left out]\n{tail}"
