"""Programs with one slip in them: a token of an example left out, put in, or written for another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

EXAMPLES = {
    path.stem: path.read_text("utf-8")
    for path in sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.halo"))
}
"""The example programs by name."""

STRAY = (",", "(", ")", "[", "]", "{", "}", ":", ".", "|>", "as", "->", "=>", "&", "agent")
"""Tokens that a slip puts in or writes for another."""

_OPERATORS = (":", "==", "!=", "->", "=>", ">", "<")

_TOKEN = re.compile(
    r'"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|(?P<skip>//[^\n]*|/\*[\s\S]*?\*/|\s+)|-?\d+(?:\.\d+)?\w*'
    r"|[^\W\d]\w*|\|<>|\|[>?*!]|~>|=>|->|&&|\|\||[=!<>]=|."
)


def slips(text: str) -> Iterator[tuple[int, str]]:
    """Each text that one slip makes of `text`, with the offset of the token that it is about."""
    for token in _TOKEN.finditer(text):
        if token.lastgroup:
            continue
        front, back = text[: token.start()], text[token.end() :]
        yield token.start(), front + back
        # Nobody can tell a stray name from an argument behind a forgotten comma, so none is put in.
        instead = (*STRAY, "x", *(("=",) if token[0] in _OPERATORS else ()))
        yield from ((token.start(), f"{front} {stray} {token[0]}{back}") for stray in STRAY)
        yield from ((token.start(), f"{front} {stray} {back}") for stray in instead)
