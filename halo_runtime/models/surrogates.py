"""Halves of surrogate pairs, which services send where a character was cut in two; UTF-8 has none. Pure."""

from __future__ import annotations

import re
from typing import Final

from halo_runtime.models.base import OnDelta

_HALF: Final = re.compile("[\ud800-\udfff]")


def valid_text(text: str) -> str:
    """The text with the two halves of a character joined, and halves that stand alone replaced."""
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Mended:
    """Text in pieces as `valid_text` makes the whole of it: a first half waits for the piece that may bring its second.

    What can be shown goes to `on_delta`, where there is one, as it comes.
    """

    def __init__(self, on_delta: OnDelta | None = None) -> None:
        self._on_delta = on_delta
        self._half = ""

    def feed(self, text: str) -> str:
        """What of the text can be shown now."""
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return self._show(valid_text(text.removesuffix(self._half)))

    def end(self) -> str:
        """What is left when nothing more comes."""
        half, self._half = self._half, ""
        return self._show(valid_text(half))

    def _show(self, text: str) -> str:
        if text and self._on_delta is not None:
            self._on_delta(text)
        return text
