"""Parsing a source text into a Program: every unit on its own, unchanged ones not again."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from halo_lang.diagnostics import Diagnostic, error
from halo_lang.lexicon import DECLARATION_KEYWORDS, GAP, NAME
from halo_lang.nodes import Condition, Declaration
from halo_lang.program import Program, Unit
from halo_lang.scanner import cut
from halo_lang.source import BOM, Source, SourceDecodeError, Span

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput


@cache
def grammar() -> Lark:
    from lark import Lark

    from halo_lang.builder import Builder

    return Lark(
        Path(__file__).with_name("grammar.lark").read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        start=["declaration", "head", "value", "stage", "condition"],
        maybe_placeholders=False,
        transformer=Builder(),
    )


def parse(source: Source | str, previous: Program | None = None) -> Program:
    """The program of a source text."""
    if isinstance(source, str):
        source = Source(source.removeprefix(BOM))
    text = source.text
    return Program(source, tuple(parse_unit(text[piece.start : piece.end]) for piece in cut(text)))


def parse_condition(text: str) -> Condition | Diagnostic:
    """The condition that `text` is, with spans relative to it, or what is wrong with it."""
    from lark.exceptions import UnexpectedInput

    from halo_lang.builder import Refusal

    try:
        return cast("Condition", grammar().parse(text, start="condition"))
    except UnexpectedInput as problem:
        return _unexpected(problem, text)
    except Refusal as refusal:
        return refusal.diagnostic


def not_utf8(problem: SourceDecodeError) -> Diagnostic:
    """HL101, for a text that could not be decoded; its place is in `problem.prefix`."""
    end = len(problem.prefix)
    return error("HL101", f"invalid UTF-8 at byte {problem.offset}", Span(end, end), hint="save the file as UTF-8")


_NAMED = re.compile(rf"(?:{'|'.join(DECLARATION_KEYWORDS)})(?!\w){GAP}({NAME})")


def parse_unit(text: str) -> Unit:
    from lark.exceptions import UnexpectedInput

    from halo_lang.builder import Refusal

    if re.fullmatch(GAP, text):
        return Unit(text)
    named = _NAMED.search(text)
    ghosts = frozenset((named[1],) if named else ())
    try:
        declaration = cast("Declaration", grammar().parse(text, start="declaration"))
    except UnexpectedInput as problem:
        return Unit(text, None, (_unexpected(problem, text),), ghosts)
    except Refusal as refusal:
        return Unit(text, None, (refusal.diagnostic,), ghosts)
    return Unit(text, declaration)


def _unexpected(problem: UnexpectedInput, text: str) -> Diagnostic:
    at = min(max(0, problem.pos_in_stream or 0), len(text))
    return error("HL102", "unexpected text", Span(at, min(at + 1, len(text))))
