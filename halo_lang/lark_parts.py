"""The parts of Lark that the parser is built from; the one place that imports it.

Lark also imports `regex` where that is installed, for grammars with patterns that Halo's does not have. That is a
fifth of Lark's own start, which every command that reads a program would pay, so it is kept from finding it.
"""

from __future__ import annotations

import sys

_absent = "regex" not in sys.modules
if _absent:
    sys.modules["regex"] = None  # pyright: ignore[reportArgumentType] - how Python marks a module as not to be found
try:
    from lark import Lark
    from lark import __version__ as lark_version
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput
    from lark.grammar import Rule
    from lark.lexer import Lexer, PatternStr, TerminalDef
finally:
    if _absent:
        del sys.modules["regex"]

__all__ = [
    "Lark",
    "Lexer",
    "PatternStr",
    "Rule",
    "TerminalDef",
    "UnexpectedCharacters",
    "UnexpectedInput",
    "lark_version",
]
