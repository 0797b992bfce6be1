"""The words of the language, and the patterns that the scanner, recovery and the error texts share.

The grammar has patterns of its own for the same tokens, as Lark takes them from its file; a test holds both side
by side.
"""

from __future__ import annotations

DECLARATION_KEYWORDS = ("policy", "tool", "store", "schema", "agent", "pipeline")

KEYWORDS = frozenset(DECLARATION_KEYWORDS).union(
    ("equips", "requires", "system", "context", "yield", "listen", "loop", "each", "in", "else", "as"),
    ("true", "false", "null"),
)
"""Words that cannot be declared, be parameters, or stand where a value's or callee's name does (spec 1.1)."""

MAX_NESTING = 200
"""Levels of brackets, types and conditions; what goes deeper is HL106."""

NAME = r"[^\W\d]\w*+"
COMMENT = r"(?://[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/)"
GAP = rf"(?:\s++|{COMMENT})*+"
TRIPLE = r'"""[^"\\]*+(?:(?:\\[\s\S]|"(?!""))[^"\\]*+)*+"""'
STRING = rf"""(?:{TRIPLE}|"(?!"")[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|'[^'\n]*+')"""
UNCLOSED = r"""(?:\"{3}(?s:.*+)|["'][^\n]*+|/\*(?s:.*+))"""
"""A string or comment without an end. Patterns that step over strings need it: none may look for an end twice."""

MODEL = r"(?!/\*)[A-Za-z0-9_.:@/-]*[A-Za-z0-9_.@/-](?!\w)"
"""None begins with an open comment: taken for one, its `/` would have the comment looked for again behind it."""
STAGE_OPERATOR = r"(?:\|(?:>|\?|\*|!|<>)|~>)"
