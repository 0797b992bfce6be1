"""Parsing a source text into a Program: every unit on its own, unchanged ones not again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from halo_lang.diagnostics import Diagnostic, error
from halo_lang.lexicon import GAP
from halo_lang.nodes import Condition, Declaration, Pipeline
from halo_lang.program import Program, Unit
from halo_lang.scanner import cut
from halo_lang.source import BOM, Source, SourceDecodeError, Span

if TYPE_CHECKING:
    pass


_GAP = re.compile(GAP)


def parse(source: Source | str, previous: Program | None = None) -> Program:
    """The program of a source text."""
    if isinstance(source, str):
        source = Source(source.removeprefix(BOM))
    text = source.text
    return Program(source, tuple(parse_unit(text[piece.start : piece.end], piece.too_deep) for piece in cut(text)))


def parse_condition(text: str) -> Condition | Diagnostic:
    """The condition that `text` is, with spans relative to it, or what is wrong with it."""
    from halo_lang.lexical import first_mistake
    from halo_lang.recovery import attempt

    return first_mistake(text) or attempt(text, Span(0, len(text)), "condition")


def not_utf8(problem: SourceDecodeError) -> Diagnostic:
    """HL101, for bytes that `decode` refused; its place is the end of `problem.prefix`."""
    end = len(problem.prefix)
    hint = "save the file in the encoding UTF-8"
    return error("HL101", f"invalid UTF-8 at byte {problem.offset}", Span(end, end), hint=hint)


def parse_unit(text: str, too_deep: bool) -> Unit:
    """What one unit's text is."""
    if _GAP.fullmatch(text):
        return Unit(text)
    from lark.exceptions import UnexpectedInput

    from halo_lang.builder import Refusal
    from halo_lang.grammar import read
    from halo_lang.recovery import empty, recover

    if too_deep:
        return recover(text)
    try:
        declaration = cast("Declaration", read(text, "declaration"))
    except (UnexpectedInput, Refusal):
        return recover(text)
    if isinstance(declaration, Pipeline) and declaration.start is None and not declaration.stages:
        return Unit(text, declaration, (empty(declaration),))
    return Unit(text, declaration)
