"""The texts of syntax errors."""

from __future__ import annotations

from halo_lang.diagnostics import Diagnostic, error
from halo_lang.lexicon import MAX_NESTING
from halo_lang.source import Span


def reserved(word: str, span: Span) -> Diagnostic:
    """A keyword where a name must stand."""
    return error("HL102", f"`{word}` is a keyword and cannot stand for a value or a callee", span)


def too_deep(span: Span) -> Diagnostic:
    """HL106."""
    return error("HL106", f"nesting deeper than {MAX_NESTING} levels", span, hint="split it up")
