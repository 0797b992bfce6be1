"""Comments and where they belong: what stands between the tokens of a text, and the tokens with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from halo_lang.lexicon import COMMENT, NAME, STAGE_OPERATOR, STRING
from halo_lang.records import record

_GAP = re.compile(rf"(?:\s++|{COMMENT})*+")
_PIECE = re.compile(rf"(?P<comment>{COMMENT})|\s++")
_TOKEN = re.compile(
    rf"{STRING}|-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?\w*+|{NAME}|{STAGE_OPERATOR}|=>|->|&&|\|\||[=!<>]=|[\s\S]"
)
# What a broken text is made of: a string or comment that is not closed has no gap behind it on its line or at all.
_ROUGH = re.compile(
    rf"""(?P<gap>(?:\s++|{COMMENT})++)|{STRING}|"{{3}}(?s:.*+)|["'][^\n]*+|/\*(?s:.*+)|[^\s"'/]++|[\s\S]"""
)


@record
class Remark:
    """Comments that share a line, `text`, with the number of line breaks in front of them."""

    text: str
    lines_before: int
    indent: int
    """Characters in front of it on its line, where it is the first thing there."""
    end: int
    """Offset in the gap behind it."""
    takes_line: bool
    """Whether nothing can follow it on its line: it ends with a `//` comment."""


@dataclass(frozen=True)
class Gap:
    """What stands between two tokens."""

    remarks: tuple[Remark, ...] = ()
    lines_after: int = 0
    """Line breaks behind the last remark."""

    @cached_property
    def after(self) -> tuple[Remark, ...]:
        """The remark at the end of the line of the token in front, if there is one."""
        first = self.remarks[:1]
        at_end = first and first[0].lines_before == 0 and (self.lines_after > 0 or len(self.remarks) > 1)
        return first if at_end else ()

    @cached_property
    def own(self) -> tuple[Remark, ...]:
        """The remarks on lines of their own."""
        return self.remarks[len(self.after) : len(self.remarks) - len(self.before)]

    @cached_property
    def before(self) -> tuple[Remark, ...]:
        """The remark in front of the next token on its line, if there is one."""
        return self.remarks[-1:] if self.lines_after == 0 else ()

    def split(self, count: int) -> tuple[Gap, Gap]:
        """The first remarks, which a line break ends, and the others."""
        return Gap(self.remarks[:count], 1), Gap(self.remarks[count:], self.lines_after)


class Token(NamedTuple):
    """A token with what stands in front of it."""

    text: str
    start: int
    gap: Gap

    @property
    def is_word(self) -> bool:
        """Whether it is a name, a keyword or a number."""
        return self.text[0].isalnum() or self.text[0] == "_"


_NOTHING = Gap()


def read_gap(text: str, start: int = 0) -> tuple[Gap, int]:
    """The white space and comments at `start`, and where they end."""
    found = _GAP.match(text, start)
    end = found.end() if found else start
    return (_gap(text[start:end]) if end > start else _NOTHING), end


def tokens(text: str, spans: Mapping[int, int]) -> tuple[list[Token], Gap]:
    """The tokens of a declaration that parses, and what follows the last.

    `spans` gives start and end of the tokens that only the grammar tells from others: model references.
    """
    result: list[Token] = []
    gap, position = read_gap(text)
    while position < len(text):
        found = _TOKEN.match(text, position)
        end = spans.get(position) or (found.end() if found else len(text))
        result.append(Token(text[position:end], position, gap))
        gap, position = read_gap(text, end)
    return result, gap


def code_end(text: str) -> int:
    """Where the white space and comments begin that end a text which need not parse."""
    return max((found.end() for found in _ROUGH.finditer(text) if found.lastgroup is None), default=0)


def _gap(text: str) -> Gap:
    remarks: list[Remark] = []
    lines = 0
    for comment, breaks, indent, end in _comments(text):
        lines += breaks
        if comment is None:
            continue
        takes_line = comment.startswith("//")
        if remarks and lines == 0:
            last = remarks.pop()
            comment, lines, indent = f"{last.text} {comment}", last.lines_before, last.indent
        remarks.append(Remark(comment, lines, indent, end, takes_line))
        lines = 0
    return Gap(tuple(remarks), lines)


def _comments(text: str) -> Iterator[tuple[str | None, int, int, int]]:
    """Comment or None, line breaks, characters since the last line break, and end, of each piece of a gap."""
    for found in _PIECE.finditer(text):
        comment = found["comment"]
        if comment is None:
            yield None, found[0].count("\n"), 0, found.end()
        else:
            yield comment.rstrip(), 0, found.start() - text.rfind("\n", 0, found.start()) - 1, found.end()
