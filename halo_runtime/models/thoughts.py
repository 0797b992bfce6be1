"""Answers of open models that think aloud first, between `<think>` and `</think>`, without those thoughts. Pure."""

from __future__ import annotations

from typing import Final

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


class Spoken:
    """Lets through what a model says after its thoughts, however its text is cut; all of it where it tells none."""

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._through = False

    def feed(self, text: str) -> str:
        """What is certainly no thought in `text` and what was held back before it."""
        if self._through:
            return text
        self._held += text
        if self._thinking or self._begins_to_think():
            return self._after_thoughts()
        return "" if _OPEN.startswith(self._held.lstrip()) else self._let_through(self._held)

    def end(self) -> str:
        """What was held back and turned out to be no thought. Thoughts without an end stay thoughts."""
        return "" if self._thinking or self._through else self._let_through(self._held)

    def _begins_to_think(self) -> bool:
        self._thinking = self._held.lstrip().startswith(_OPEN)
        return self._thinking

    def _after_thoughts(self) -> str:
        _, mark, said = self._held.partition(_CLOSE)
        said = said.lstrip()
        if said:
            return self._let_through(said)
        self._held = mark or self._held[-len(_CLOSE) :]
        return ""

    def _let_through(self, text: str) -> str:
        self._held, self._through = "", True
        return text


def spoken(text: str) -> str:
    """A whole text without the thoughts at its beginning."""
    answer = Spoken()
    return answer.feed(text) + answer.end()
