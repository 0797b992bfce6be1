"""Parsing a source text into a Program: every unit on its own, unchanged ones not again."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import cast

from halo_lang.collector import without_collector
from halo_lang.diagnostics import Diagnostic, error
from halo_lang.incremental import update
from halo_lang.lexicon import GAP
from halo_lang.nodes import Condition, Declaration, Pipeline
from halo_lang.program import Program, Unit
from halo_lang.scanner import Piece, cut
from halo_lang.source import BOM, Source, SourceDecodeError, Span

_GAP = re.compile(GAP)


def parse(source: Source | str, previous: Program | None = None) -> Program:
    """The program of a source text: any text gives one, mistakes are in its `diagnostics`.

    With the `previous` version of the same file, only what changed is parsed; all else keeps its very objects.
    """
    if isinstance(source, str):
        source = Source(source.removeprefix(BOM))
    with without_collector():
        if previous is not None:
            return update(source, previous, _unit)
        text = source.text
        return Program(source, tuple(_unit(text[piece.start : piece.end], piece) for piece in cut(text)))


def parse_condition(text: str) -> Condition | Diagnostic:
    """The condition that `text` is, with spans relative to it, or what is wrong with it."""
    from halo_lang.recovery import attempt

    return attempt(text, Span(0, len(text)), "condition")


def not_utf8(problem: SourceDecodeError) -> Diagnostic:
    """HL101, for bytes that `decode` refused; its place is the end of `problem.prefix`."""
    end = len(problem.prefix)
    hint = "save the file in the encoding UTF-8"
    return error("HL101", f"invalid UTF-8 at byte {problem.offset}", Span(end, end), hint=hint)


def _unit(text: str, piece: Piece) -> Unit:
    """What the text of one unit is."""
    unit = Unit(text) if _GAP.fullmatch(text) else _declaration(text, piece.too_deep)
    return replace(unit, unsettled=True) if piece.unsettled else unit


def _declaration(text: str, too_deep: bool) -> Unit:
    # The automaton is most of what a small file costs, so it waits until there is something to parse.
    from halo_lang.automaton import Stopped
    from halo_lang.builder import Refusal, empty
    from halo_lang.grammar import read

    if too_deep:
        return _broken(text)
    try:
        declaration = cast("Declaration", read(text, "declaration"))
    except (Stopped, Refusal):
        return _broken(text)
    if isinstance(declaration, Pipeline) and declaration.start is None and not declaration.stages:
        return Unit(text, declaration, (empty(declaration),))
    return Unit(text, declaration)


def _broken(text: str) -> Unit:
    # Most files are whole, and the texts of all mistakes take time to load.
    from halo_lang.recovery import recover

    return recover(text)
