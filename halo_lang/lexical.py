"""Strings, comments and brackets: the mistakes that make a text unreadable before its grammar counts.

One pattern finds every mark that matters here and steps over all else, so a text of any size and content is read
once, with a stack that stays under `MAX_NESTING`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from halo_lang.builder import too_deep
from halo_lang.diagnostics import Diagnostic, Related, error
from halo_lang.lexicon import COMMENT, GAP, MAX_NESTING, MODEL, NAME, STAGE_OPERATOR, STRING
from halo_lang.source import Span

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPENING = {close: open_ for open_, close in _CLOSING.items()}

# A model may hold `//`: where one can stand it is taken together with the bracket in front of it.
_MARK = re.compile(
    rf"""
      (?:{STRING}|{COMMENT}|\|\|)
    | (?<!\w)(?:agent(?!\w){GAP}{NAME}{GAP}|@{GAP}shadow{GAP})(?P<model>[(\[])(?:{GAP}{MODEL})?
    | (?P<open>[(\[{{])
    | (?P<close>[)\]}}])
    | (?P<colon>:)
    | ^[^\S\n]*+(?P<first>{STAGE_OPERATOR})
    | (?P<operator>{STAGE_OPERATOR})
    | (?P<string>"{{3}}[\s\S]*+|["'][^\n]*+)
    | (?P<comment>/\*[\s\S]*+)
    """,
    re.VERBOSE | re.MULTILINE,
)
_KINDS = {"model": "open", "first": "operator"}


class Mark(NamedTuple):
    """A bracket, a stage operator, a colon, or the beginning of a string or comment that has no end."""

    kind: str
    """`open`, `close`, `operator`, `colon`, `string` or `comment`; the last two reach to where they must end."""
    start: int
    text: str
    leads: bool
    """Whether it is the first thing on its line; told of operators only."""


def marks(text: str, start: int = 0, end: int | None = None) -> Iterator[Mark]:
    """The marks of a part of `text`, those in complete strings and comments left out."""
    for match in _MARK.finditer(text, start, len(text) if end is None else end):
        if kind := match.lastgroup:
            yield Mark(_KINDS.get(kind, kind), match.start(kind), match[kind], kind == "first")


def first_mistake(text: str, start: int = 0, end: int | None = None) -> Diagnostic | None:
    """The first string, comment or bracket that has no partner, or the bracket that goes too deep."""
    stack: list[Mark] = []
    for mark in marks(text, start, end):
        if mark.kind == "open":
            stack.append(mark)
            if len(stack) > MAX_NESTING:
                return too_deep(Span(mark.start, mark.start + 1))
        elif mark.kind == "close":
            if not stack or stack[-1].text != _OPENING[mark.text]:
                return _mismatch(mark, stack)
            stack.pop()
        elif mark.kind in _UNCLOSED:
            return _UNCLOSED[mark.kind](mark)
    return _never_closed(stack[-1]) if stack else None


def is_stray(diagnostic: Diagnostic) -> bool:
    """Whether it is about a closing bracket that nothing opened."""
    return diagnostic.message.endswith(_STRAY)


_STRAY = "closes nothing"


def _mismatch(close: Mark, stack: list[Mark]) -> Diagnostic:
    """A closing bracket that does not fit: either an inner bracket was left open, or it is the wrong one."""
    span = Span(close.start, close.start + 1)
    wanted = _OPENING[close.text]
    if not stack:
        return error("HL102", f"this `{close.text}` {_STRAY}", span, hint="take it away, or open a bracket for it")
    inner = stack[-1]
    if any(mark.text == wanted for mark in stack):
        return _never_closed(inner)
    related = Related(f"this `{inner.text}` is open", Span(inner.start, inner.start + 1))
    message = f"found `{close.text}` where `{_CLOSING[inner.text]}` must close the `{inner.text}`"
    return error("HL102", message, span, related=(related,))


def _never_closed(mark: Mark) -> Diagnostic:
    span = Span(mark.start, mark.start + 1)
    return error("HL105", f"this `{mark.text}` is never closed", span, hint=f"add the `{_CLOSING[mark.text]}` it needs")


def _string(mark: Mark) -> Diagnostic:
    if mark.text.startswith('"""'):
        span = Span(mark.start, mark.start + 3)
        return error("HL103", 'this """ string is never closed', span, hint='end it with another """')
    quote = mark.text[0]
    span = Span(mark.start, mark.start + len(mark.text.rstrip()))
    hint = f'add the closing {quote}, or use """ for a text of several lines'
    return error("HL103", "this string does not end on its line", span, hint=hint)


def _comment(mark: Mark) -> Diagnostic:
    span = Span(mark.start, mark.start + 2)
    return error("HL104", "this comment is never closed", span, hint="end it with `*/`; comments do not nest")


_UNCLOSED = {"string": _string, "comment": _comment}
