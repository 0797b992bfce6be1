r"""String literals: what they mean, and where each character of their value stands in the source.

The rules are those of spec 1.1 and 12.1 (10). `"…"` and `\"""…\"""` know the escapes `\" \\ \n \t`; any other
backslash stays as written and is reported. `'…'` is raw. A triple-quoted literal that begins with a line break
loses that break, its common indentation and a last line of white space only; this happens before escapes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

_ESCAPES = {r"\"": '"', r"\\": "\\", r"\n": "\n", r"\t": "\t"}
_ESCAPE_OR_TEXT = re.compile(r"\\.?|[^\\]+", re.DOTALL)
_TRIPLE = '"""'

# A run of the value whose characters stand side by side in the literal, and where it begins there.
_Run = tuple[str, int]


@dataclass(frozen=True)
class Literal:
    """A string literal as written, quotes included."""

    text: str

    @property
    def quote(self) -> str:
        """The quotation mark: `"`, `'` or three `"`."""
        return _TRIPLE if self.text.startswith(_TRIPLE) else self.text[0]

    @cached_property
    def value(self) -> str:
        """The text that the literal stands for."""
        return "".join(self._meant(text) for text, _ in self._runs)

    @property
    def unknown_escapes(self) -> tuple[int, ...]:
        """Offset in the literal of each backslash that begins no known escape (HL502)."""
        if self.quote == "'":
            return ()
        return tuple(at for text, at in self._runs if text[0] == "\\" and text not in _ESCAPES)

    def offset(self, index: int) -> int:
        """Where in the literal the character `index` of the value is written; the closing quote past the end."""
        if index >= len(self.value):
            return len(self.text) - len(self.quote)
        run = bisect_right(self._starts, index) - 1
        return self._runs[run][1] + index - self._starts[run]

    def end(self, start: int, end: int) -> int:
        """Where in the literal the characters from `start` up to `end` of the value end.

        That is right behind the last of them: what is written there and is no part of the value stays outside.
        """
        if end <= start or end > len(self.value):
            return self.offset(end)
        run = bisect_right(self._starts, end - 1) - 1
        text, at = self._runs[run]
        return at + len(text) if self._meant(text) != text else at + end - self._starts[run]

    def _meant(self, run: str) -> str:
        """What a run stands for."""
        return run if self.quote == "'" else _ESCAPES.get(run, run)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each run begins in the value."""
        widths = (len(self._meant(text)) for text, _ in self._runs[:-1])
        return list(accumulate(widths, initial=0))

    @cached_property
    def _runs(self) -> list[_Run]:
        width = len(self.quote)
        body = self.text[width : len(self.text) - width]
        if self.quote == "'":
            return [(body, width)] if body else []
        lines = _lines(body, width) if self.quote == _TRIPLE else [(body, width)]
        return [(m.group(), at + m.start()) for text, at in lines for m in _ESCAPE_OR_TEXT.finditer(text)]


def decode(literal: str) -> str:
    """The value of a string literal, without the detour through runs where nothing needs it."""
    if not literal.startswith(_TRIPLE) and (literal[0] == "'" or "\\" not in literal):
        return literal[1:-1]
    return Literal(literal).value


def _lines(body: str, start: int) -> list[_Run]:
    """The lines of a triple-quoted body after dedent, each line break as a run of its own."""
    runs: list[_Run] = []
    at = start
    for line in body.split("\n"):
        text = line.removesuffix("\r")
        runs += [(text, at), ("\n", at + len(text))]
        at += len(line) + 1
    runs.pop()
    # A `\r` is the first half of a line break only where a `\n` follows it.
    if body.endswith("\r"):
        runs[-1] = (runs[-1][0] + "\r", runs[-1][1])
    return _dedented(runs[2:]) if len(runs) > 1 and not runs[0][0] else runs


def _dedented(runs: list[_Run]) -> list[_Run]:
    """Lines and breaks in turn, without the last line if it is blank, nor the indentation that all lines share."""
    if not runs[-1][0].strip():
        runs = runs[:-2]
    written = [text for text, _ in runs[::2] if text.strip()]
    indent = _shared_start([text[: len(text) - len(text.lstrip())] for text in written])
    return [_cut(text, at, indent) if number % 2 == 0 else (text, at) for number, (text, at) in enumerate(runs)]


def _cut(line: str, at: int, indent: str) -> _Run:
    width = len(_shared_start([line, indent])) if indent else 0
    return line[width:], at + width


def _shared_start(texts: list[str]) -> str:
    """The longest text that all of them begin with."""
    first, last = min(texts, default=""), max(texts, default="")
    width = next((index for index, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    return first[:width] if width is not None else first
