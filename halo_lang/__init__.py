"""The Halo language: parser, names, checks, formatter and colours, as pure functions over source text.

    source = halo_lang.decode(data, "program.halo")
    analysis = halo_lang.check(halo_lang.parse(source))

Names are loaded when they are first used: a command that only needs the node types does not build a parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halo_lang.lazy import lazy_names

if TYPE_CHECKING:
    from halo_lang.analysis import Analysis as Analysis
    from halo_lang.analysis import check as check
    from halo_lang.diagnostics import Diagnostic as Diagnostic
    from halo_lang.diagnostics import Severity as Severity
    from halo_lang.parser import not_utf8 as not_utf8
    from halo_lang.parser import parse as parse
    from halo_lang.parser import parse_condition as parse_condition
    from halo_lang.program import Program as Program
    from halo_lang.program import Unit as Unit
    from halo_lang.source import Position as Position
    from halo_lang.source import Source as Source
    from halo_lang.source import SourceDecodeError as SourceDecodeError
    from halo_lang.source import Span as Span
    from halo_lang.source import decode as decode

_HOMES = {
    "Analysis": "analysis",
    "Diagnostic": "diagnostics",
    "Position": "source",
    "Program": "program",
    "Severity": "diagnostics",
    "Source": "source",
    "SourceDecodeError": "source",
    "Span": "source",
    "Unit": "program",
    "check": "analysis",
    "decode": "source",
    "not_utf8": "parser",
    "parse": "parser",
    "parse_condition": "parser",
}

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll] - each is imported above
__getattr__ = lazy_names(__name__, _HOMES)
