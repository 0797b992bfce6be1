"""The contextual lexer: the terminals that are looked for are those that the parser accepts next.

It does what Lark's own does, but knows offsets only, since lines and columns are reckoned from them when somebody
asks, and it prepares the pattern of a parser state when that state is first reached: a small program reaches few
of them, and the start of a command waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

from halo_lang.builder import Refusal, Token, too_deep
from halo_lang.lark_parts import Lexer, TerminalDef, UnexpectedCharacters
from halo_lang.lexicon import GAP, MAX_NESTING
from halo_lang.source import Span

_Match = Callable[[str, int, int], "re.Match[str] | None"]


_DEEPEST = 10 * MAX_NESTING
"""States that the parser may have open. No nesting that is allowed needs as many; `!!!…` and `A<A<…` would go on."""


class Part(NamedTuple):
    """What is parsed: a part of a text. Tokens count their offsets from the beginning of the whole text."""

    text: str
    start: int
    end: int


class ContextualLexer(Lexer):
    """Made by Lark from the terminals of the grammar, and asked by it for the tokens of one part after another."""

    __future_interface__: ClassVar = 2  # Lark then passes the state of the parser to `lex`

    def __init__(self, conf: Any) -> None:
        self._terminals: dict[str, TerminalDef] = conf.terminals_by_name
        self._patterns: dict[int, _Match] = {}
        self._gap = re.compile(GAP).match  # as the grammar has it, but an open comment is looked through once only

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:  # our Token serves Lark as its own
        """The tokens; raises UnexpectedCharacters where none that fits is found, Refusal where it goes too deep."""
        text, position, end = lexer_state.text
        gap, patterns, states = self._gap, self._patterns, parser_state.state_stack
        while (position := gap(text, position, end).end()) < end:  # pyright: ignore[reportOptionalMemberAccess]
            match = (patterns.get(states[-1]) or self._pattern(parser_state))(text, position, end)
            if match is None:
                raise UnexpectedCharacters(text, position, -1, -1, state=parser_state)
            token = Token(match.lastgroup or "", match.group(), position, match.end())
            position = token.end_pos
            if len(states) > _DEEPEST:
                raise Refusal(too_deep(Span(match.start(), position)))
            yield token

    def _pattern(self, parser_state: Any) -> _Match:
        """The terminals that fit, in Lark's order: by priority, then the longer ones first."""
        state = parser_state.state_stack[-1]
        accepted = parser_state.parse_conf.parse_table.states[state]
        terminals = sorted(
            (self._terminals[name] for name in accepted if name in self._terminals),
            key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
        )
        alternatives = "|".join(f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})" for terminal in terminals)
        match = self._patterns[state] = re.compile(alternatives).match
        return match
