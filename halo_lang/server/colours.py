"""Semantic tokens: the colours of `highlight`, as the protocol encodes them.

Five numbers a token: lines and columns from the token before, length, type, modifiers. A line is lexed and encoded
once, and again when its text or the state in front of it changes; a document is its lines' numbers one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

from lsprotocol.types import SemanticTokenModifiers as Modifier
from lsprotocol.types import SemanticTokens, SemanticTokensDelta, SemanticTokensEdit, SemanticTokensLegend
from lsprotocol.types import SemanticTokenTypes as Kind
from pygments.token import Comment, Keyword, Name, Number, Operator, String
from pygments.token import _TokenType as TokenType  # pyright: ignore[reportPrivateUsage] - it has no public name

from halo_lang import highlight
from halo_lang.assist.positions import Encoding, units
from halo_lang.incremental import common_end, common_start
from halo_lang.server.places import Places

Line: TypeAlias = tuple[tuple[int, ...], highlight.State]
"""The numbers of a line's tokens, the first as if the line were the document's first, and the state behind it."""

_LOOKS: dict[TokenType, tuple[Kind, tuple[Modifier, ...]]] = {
    Comment: (Kind.Comment, ()),
    Keyword: (Kind.Keyword, ()),
    Keyword.Type: (Kind.Type, (Modifier.DefaultLibrary,)),
    Name: (Kind.Variable, ()),
    Name.Builtin: (Kind.Class, (Modifier.DefaultLibrary,)),
    Number: (Kind.Number, ()),
    Operator: (Kind.Operator, ()),
    String: (Kind.String, ()),
    String.Escape: (Kind.Regexp, ()),
    highlight.BINDING: (Kind.Variable, (Modifier.Declaration,)),
    highlight.CALLEE: (Kind.Class, ()),
    highlight.DECLARED: (Kind.Class, ()),
    highlight.DIRECTIVE: (Kind.Decorator, ()),
    highlight.FUNCTION: (Kind.Function, ()),
    highlight.LABEL: (Kind.Parameter, ()),
    highlight.MODEL: (Kind.EnumMember, (Modifier.Readonly,)),
    highlight.PLACEHOLDER: (Kind.Macro, ()),
    highlight.SEGMENT: (Kind.Property, ()),
}
"""What each token of the lexer looks like; one that is not listed looks like the kind that it is a kind of."""

_KINDS = tuple(dict.fromkeys(kind for kind, _ in _LOOKS.values()))
_MODIFIERS = tuple(dict.fromkeys(modifier for _, modifiers in _LOOKS.values() for modifier in modifiers))
LEGEND = SemanticTokensLegend([kind.value for kind in _KINDS], [modifier.value for modifier in _MODIFIERS])
_NUMBERS = {
    token: (_KINDS.index(kind), sum(1 << _MODIFIERS.index(modifier) for modifier in modifiers))
    for token, (kind, modifiers) in _LOOKS.items()
}


class Colours:
    """The encoded lines of one document, kept from one version to the next."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, highlight.State], Line] = {}
        self._told = SemanticTokens([])
        self._count = 0

    def full(self, places: Places) -> SemanticTokens:
        """All tokens; their `result_id` stands for them in the next `delta`."""
        self._count += 1
        self._told = SemanticTokens(self._encode(places, 0, len(places.line_starts)), str(self._count))
        return self._told

    def delta(self, places: Places, previous: str) -> SemanticTokens | SemanticTokensDelta:
        """One edit of the numbers that were told under the id `previous`; all tokens where these are not known."""
        before = self._told
        after = self.full(places)
        if before.result_id != previous:
            return after
        old, new = before.data, after.data
        front = common_start(old, new, min(len(old), len(new)))
        back = common_end(old, new, min(len(old), len(new)) - front)
        edit = SemanticTokensEdit(front, len(old) - front - back, new[front : len(new) - back])
        return SemanticTokensDelta([edit] if edit.delete_count or edit.data else [], after.result_id)

    def lines(self, places: Places, first: int, last: int) -> SemanticTokens:
        """The tokens of the lines from `first` to `last`, both counted from 0."""
        return SemanticTokens(self._encode(places, first, last))

    def _encode(self, places: Places, first: int, last: int) -> list[int]:
        lines: dict[tuple[str, highlight.State], Line] = {}
        state, parts, gap = highlight.START, list[tuple[int, ...]](), 0
        for number in range(len(places.line_starts)):
            key = places.line(number), state
            lines[key] = self._lines.get(key) or _line(*key, places.encoding)
            numbers, state = lines[key]
            if numbers and first <= number <= last:
                parts.append((number - gap, *numbers[1:]))
                gap = number
        self._lines = lines
        return list(chain.from_iterable(parts))


def _line(text: str, state: highlight.State, encoding: Encoding) -> Line:
    spans, behind = highlight.highlight_line(text, state)
    return tuple(chain.from_iterable(_relative(text, spans, encoding))), behind


def _relative(text: str, spans: tuple[highlight.ColouredSpan, ...], encoding: Encoding) -> Iterator[tuple[int, ...]]:
    at = column = before = 0
    for start, end, token in spans:
        column += units(text[at:start], encoding)
        length = units(text[start:end], encoding)
        if (look := _look(token)) is not None:
            yield 0, column - before, length, *look
            before = column
        at, column = end, column + length


def _look(token: TokenType) -> tuple[int, int] | None:
    """The numbers of the token's look; None where it has none, such as white space and brackets."""
    kind: TokenType | None = token
    while kind is not None and kind not in _NUMBERS:
        kind = kind.parent
    return _NUMBERS[kind] if kind is not None else None
