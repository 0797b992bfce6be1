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
    | (?P<open>[(\[{{]++)
    | (?P<close>[)\]}}]++)
    | (?P<colon>:)
    | ^[^\S\n]*+(?P<first>{STAGE_OPERATOR})
    | (?P<operator>{STAGE_OPERATOR})
    | (?P<string>"{{3}}(?s:.*+)|["'][^\n]*+)
    | (?P<comment>/\*(?s:.*+))
    """,
    re.VERBOSE | re.MULTILINE,
)
_COMMENT = re.compile(rf"""{STRING}|{COMMENT}|"{{3}}(?s:.*+)|["'][^\n]*+|(?P<comment>/\*)""")
_STRINGS = re.compile(rf"{COMMENT}|{STRING}")
_STAGE = re.compile(rf"{STAGE_OPERATOR}\s*+[\w({{]")
_TRIPLE = '"""'
_KINDS = {"model": "open", "first": "operator"}


class Mark(NamedTuple):
    """Brackets side by side, a stage operator, a colon, or a string or comment that has no end."""

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


def open_comment(text: str) -> int | None:
    """Where a comment begins that has no end."""
    return next((match.start() for match in _COMMENT.finditer(text) if match.lastgroup), None)


def first_mistake(text: str, start: int = 0, end: int | None = None) -> Diagnostic | None:
    """The first string, comment or bracket that has no partner, or the bracket that goes too deep."""
    stack: list[_Bracket] = []
    for mark in marks(text, start, end):
        if mark.kind == "string" and mark.text.startswith(_TRIPLE):
            return _open_triple(_likely_open(text, start, mark.start))
        if mark.kind in _UNCLOSED:
            return _UNCLOSED[mark.kind](mark)
        if mark.kind in ("open", "close"):
            for offset, bracket in enumerate(mark.text, mark.start):
                if mistake := _take(_Bracket(bracket, Span(offset, offset + 1)), stack):
                    return mistake
    return _never_closed(stack[-1]) if stack else None


class _Bracket(NamedTuple):
    text: str
    span: Span


def _take(bracket: _Bracket, stack: list[_Bracket]) -> Diagnostic | None:
    """Put an opening bracket on the stack, or take the partner of a closing one from it."""
    if bracket.text in _CLOSING:
        stack.append(bracket)
        return too_deep(bracket.span) if len(stack) > MAX_NESTING else None
    if not stack or stack[-1].text != _OPENING[bracket.text]:
        return _mismatch(bracket, stack)
    stack.pop()
    return None


def _mismatch(close: _Bracket, stack: list[_Bracket]) -> Diagnostic:
    """A closing bracket that does not fit: either an inner bracket was left open, or it is the wrong one."""
    if not stack:
        hint = "take it away, or open a bracket for it"
        return error("HL102", f"this `{close.text}` closes nothing", close.span, hint=hint)
    inner = stack[-1]
    if any(bracket.text == _OPENING[close.text] for bracket in stack):
        return _never_closed(inner)
    message = f"found `{close.text}` where `{_CLOSING[inner.text]}` must close the `{inner.text}`"
    return error("HL102", message, close.span, related=(Related(f"this `{inner.text}` is open", inner.span),))


def _never_closed(bracket: _Bracket) -> Diagnostic:
    hint = f"add the `{_CLOSING[bracket.text]}` it needs"
    return error("HL105", f"this `{bracket.text}` is never closed", bracket.span, hint=hint)


def _likely_open(text: str, start: int, last: int) -> int:
    """Where the triple-quoted string begins whose end was probably forgotten: `last` is the one that has none.

    Behind a forgotten end all quotes are read the wrong way round, so the first string with stages in it is meant.
    """
    strings = (match for match in _STRINGS.finditer(text, start, last) if match[0].startswith(_TRIPLE))
    return next((match.start() for match in strings if _STAGE.search(match[0])), last)


def _open_triple(start: int) -> Diagnostic:
    span = Span(start, start + len(_TRIPLE))
    return error("HL103", 'this """ string is never closed', span, hint='end it with another """')


def _string(mark: Mark) -> Diagnostic:
    quote = mark.text[0]
    span = Span(mark.start, mark.start + len(mark.text.rstrip()))
    hint = f'add the closing {quote}, or use """ for a text of several lines'
    return error("HL103", "this string does not end on its line", span, hint=hint)


def _comment(mark: Mark) -> Diagnostic:
    span = Span(mark.start, mark.start + 2)
    return error("HL104", "this comment is never closed", span, hint="end it with `*/`; comments do not nest")


_UNCLOSED = {"string": _string, "comment": _comment}
