"""Text that grows at its end while somebody reads it: of a long one only the end is kept."""

from __future__ import annotations

from typing import Final

MAX_KEPT: Final = 20_000
"""Characters that are kept at least, where so many have come."""


class Growing:
    """Text as it streams. Adding costs what is added, however much there is already.

    `total` counts all characters that have come, `first` those of them that are kept no more.
    """

    def __init__(self, text: str = "") -> None:
        self.total = 0
        self.first = 0
        self._parts: list[str] = []
        self.add(text)

    def add(self, text: str) -> None:
        """Take more text."""
        if text:
            self._parts.append(text)
            self.total += len(text)
            if self.total - self.first > 2 * MAX_KEPT:
                self._forget()

    @property
    def text(self) -> str:
        """What is kept."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def since(self, place: int) -> str:
        """What has come after so many characters, as far as it is kept."""
        return self.text[max(0, place - self.first) :]

    def end(self, length: int) -> str:
        """The last characters; cheap also where many have come since the text was read."""
        found: list[str] = []
        for part in reversed(self._parts):
            found.append(part[-length:])
            length -= len(part)
            if length <= 0:
                break
        return "".join(reversed(found))

    def _forget(self) -> None:
        kept = self.text[-MAX_KEPT:]
        # From a line's beginning, where there is one: half a line says little.
        kept = kept[kept.find("\n", 0, MAX_KEPT // 2) + 1 :]
        self._parts, self.first = [kept], self.total - len(kept)
