"""Colours for Halo: a Pygments lexer, and the same lexer a line at a time for editors.

No rule looks across a line break, and the stack of states stays under five deep whatever the text. So the state
behind a line is a short tuple, and an editor that keeps one a line lexes only the lines that changed
(`highlight_line`). The rules tell what a name is from where it stands: a keyword behind a `.` or in front of a `:`
is a name (spec 1.1). All token types are standard ones, since Rich and most themes colour no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import ClassVar, TypeAlias

from pygments.filter import apply_filters
from pygments.lexer import Lexer
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Whitespace
from pygments.token import _TokenType as TokenType  # pyright: ignore[reportPrivateUsage] - it has no public name
from pygments.util import get_bool_opt, get_int_opt

State: TypeAlias = tuple[str, ...]
ColouredSpan: TypeAlias = tuple[int, int, TokenType]

START: State = ("code",)
"""The state in front of the first line."""

MODEL = Name.Constant
"""A model reference: `openai/gpt-4o-mini`."""
DIRECTIVE = Name.Decorator
"""A directive's name with its `@`."""
STAGE = Operator.Word
"""A stage operator: `|>`, `|?`, `|*`, `|!`, `~>`, `|<>`."""
PLACEHOLDER = String.Interpol
"""`{{name.field}}` inside a string."""
DURATION = Number.Integer.Long
"""`30s`: as with the long integers of other languages, a number with a letter behind it."""
DECLARED = Name.Class
"""The name that a declaration other than a pipeline declares, and a type that is not built in."""
FUNCTION = Name.Function
"""The name of a pipeline where it is declared, a method, and any other name in front of `(`."""
CALLEE = Name.Namespace
"""The agent or tool in front of `.method(`."""
BINDING = Name.Variable
"""The name behind `as`, and the one in front of `in`."""
LABEL = Name.Attribute
"""The name of an argument, config entry, field or parameter, in front of its `:`."""
SEGMENT = Name.Property
"""A path segment behind a `.`."""

_NAME = r"[^\W\d]\w*+"
_GAP = r"[^\S\n]*+"
_PATH = rf"{_NAME}(?:{_GAP}\.{_GAP}\w++)*+"
_DECLARATION = r"(?:policy|tool|store|schema|agent|pipeline)\b"

_Rule: TypeAlias = tuple[str, TokenType, *tuple[str, ...]]
_POP = "pop"

_SPACE: tuple[_Rule, ...] = (
    (r"\s++", Whitespace),
    (r"//[^\n]*+", Comment.Single),
    (r"/\*", Comment.Multiline, "comment"),
)
_STRINGS: tuple[_Rule, ...] = (
    (r'"""', String.Double, "triple"),
    (r'"[^"\\{\n]*+"', String.Double),
    (r'"', String.Double, "double"),
    (r"'[^'{\n]*+'", String.Single),
    (r"'", String.Single, "single"),
)
_PLACEHOLDER: _Rule = (rf"\{{\{{{_GAP}{_PATH}{_GAP}\}}\}}", PLACEHOLDER)
_ESCAPE: _Rule = (r'\\["\\nt]', String.Escape)
_LABEL: _Rule = (rf"{_NAME}(?={_GAP}:)", LABEL)
_LEAVE: _Rule = ("", Whitespace, _POP)
_TYPES: tuple[_Rule, ...] = (
    # A bracket that is still open while one types must not colour the next declaration as types.
    (rf"(?={_DECLARATION})", Whitespace, _POP),
    (r"(?:String|Number|Integer|Boolean|Array|List|Object|JSON|Any)\b", Keyword.Type),
    (_NAME, DECLARED),
    (r"[<>]", Punctuation),
)


def _one(name: str, kind: TokenType, *moves: str) -> tuple[_Rule, ...]:
    """The rules of a state that waits for one thing, and is left when something else comes."""
    return (*_SPACE, (name, kind, _POP, *moves), _LEAVE)


# Each state is a list of rules (pattern, token type, moves): the first pattern that matches is taken, then the
# moves are made: `pop` leaves the state, any other word enters that one. Patterns have no capturing groups.
_STATES: dict[str, tuple[_Rule, ...]] = {
    "code": (
        *_SPACE,
        _LABEL,
        (r"\.", Punctuation, "member"),
        (r"\|(?:<>|[>?*!])|~>", STAGE),
        *_STRINGS,
        (r"agent\b", Keyword.Declaration, "config", "declared"),
        (r"pipeline\b", Keyword.Declaration, "signature", "pipeline"),
        (r"schema\b", Keyword.Declaration, "body", "declared"),
        (_DECLARATION, Keyword.Declaration, "declared"),
        (r"as\b", Keyword, "binding"),
        (r"(?:system|equips|requires|yield|listen|loop|each|in|else)\b", Keyword),
        (r"(?:true|false|null)\b", Keyword.Constant),
        (r"context\b", Keyword.Pseudo),
        (r"(?:System|Env)\b", Name.Builtin),
        (rf"{_NAME}(?={_GAP}\.{_GAP}{_NAME}{_GAP}\()", CALLEE),
        (rf"{_NAME}(?={_GAP}\()", FUNCTION),
        (rf"{_NAME}(?={_GAP}in\b)", BINDING),
        (_NAME, Name),
        (r"-?[0-9]++(?:\.[0-9]++)?(?:ms|[smhd])\b", DURATION),
        (r"-?[0-9]++(?:\.[0-9]++(?:[eE][+-]?[0-9]++)?|[eE][+-]?[0-9]++)", Number.Float),
        (r"-?[0-9]++", Number.Integer),
        (r"[\[\](){},:]++", Punctuation),
        (r"[=!<>]=|[=-]>|&&|\|\||[<>!&]", Operator),
        (rf"@{_GAP}shadow\b", DIRECTIVE, "target"),
        (rf"@{_GAP}{_NAME}", DIRECTIVE),
        (r"@", DIRECTIVE, "directive"),
        (r".", Error),
    ),
    "comment": (
        (r"\*/", Comment.Multiline, _POP),
        (r"(?:[^*]++|\*(?!/))++", Comment.Multiline),
    ),
    "triple": (
        (r'"""', String.Double, _POP),
        _PLACEHOLDER,
        _ESCAPE,
        (r'[^"\\{]++|["\\{]', String.Double),
    ),
    "double": (
        (r'"', String.Double, _POP),
        (r"\n", Whitespace, _POP),
        _PLACEHOLDER,
        _ESCAPE,
        (r'[^"\\{\n]++|[\\{]', String.Double),
    ),
    "single": (
        (r"'", String.Single, _POP),
        (r"\n", Whitespace, _POP),
        _PLACEHOLDER,
        (r"[^'{\n]++|\{", String.Single),
    ),
    "member": (
        *_SPACE,
        (rf"{_NAME}(?={_GAP}\()", FUNCTION, _POP),
        (r"\w++", SEGMENT, _POP),
        _LEAVE,
    ),
    "directive": (
        *_SPACE,
        (r"shadow\b", DIRECTIVE, _POP, "target"),
        (_NAME, DIRECTIVE, _POP),
        _LEAVE,
    ),
    "declared": _one(_NAME, DECLARED),
    "pipeline": _one(_NAME, FUNCTION),
    "binding": _one(_NAME, BINDING),
    "config": _one(r"\[", Punctuation, "model"),
    "target": _one(r"\(", Punctuation, "model"),
    "model": _one(r"(?=[A-Za-z0-9_.:@]*+[/-])[A-Za-z0-9_.:@/-]++", MODEL),
    "body": _one(r"\{", Punctuation, "fields"),
    "signature": _one(r"\(", Punctuation, "returns", "fields"),
    "fields": (
        *_SPACE,
        (r"[)}]", Punctuation, _POP),
        (r"[:,]", Punctuation),
        _LABEL,
        *_TYPES,
        _LEAVE,
    ),
    "returns": (
        *_SPACE,
        (r"->", Operator),
        (r":", Punctuation, _POP),
        *_TYPES,
        _LEAVE,
    ),
}


@cache
def _machine(state: str) -> tuple[Callable[[str, int], re.Match[str] | None], list[tuple[TokenType, tuple[str, ...]]]]:
    """A state's rules as one pattern with a group a rule: over twice as fast as trying one rule after the other."""
    rules = _STATES[state]
    pattern = re.compile("|".join(f"({pattern})" for pattern, *_ in rules))
    return pattern.match, [(Error, ()), *((kind, tuple(moves)) for _, kind, *moves in rules)]


def _scan(text: str, stack: list[str]) -> Iterator[tuple[int, int, TokenType]]:
    """The tokens of `text` without gaps; `stack` is the state in front of it, and becomes the one behind it."""
    position, end = 0, len(text)
    match, rules = _machine(stack[-1])
    while position < end:
        found = match(text, position)
        assert found  # the rules of each state take any text
        kind, moves = rules[found.lastindex or 0]
        start, position = position, found.end()
        if position > start:
            yield start, position, kind
        if moves:
            for move in moves:
                if move == _POP:
                    stack.pop()
                else:
                    stack.append(move)
            match, rules = _machine(stack[-1])


def highlight_line(line: str, state: State) -> tuple[tuple[ColouredSpan, ...], State]:
    """The coloured spans of one line, given without its line break, and the state in front of the next line.

    Lexing all lines one after the other from `START` colours every character as lexing the whole text does. When the
    state behind a changed line is what it was before, the lines below it keep their colours.
    """
    stack = list(state)
    size = len(line)
    spans = tuple((start, min(end, size), kind) for start, end, kind in _scan(line + "\n", stack) if start < size)
    return spans, tuple(stack)


class HaloLexer(Lexer):
    """Halo for Pygments, Rich and Sphinx; takes any text, broken programs too, and its tokens rejoin to it."""

    name: ClassVar[str] = "Halo"
    aliases: ClassVar[Sequence[str]] = ["halo"]
    filenames: ClassVar[Sequence[str]] = ["*.halo"]
    mimetypes: ClassVar[Sequence[str]] = ["text/x-halo"]

    def get_tokens(self, text: str, unfiltered: bool = False) -> Iterator[tuple[TokenType, str]]:
        """The tokens of `text`, which rejoin to it exactly.

        Other lexers drop blank lines at the ends and turn CRLF into LF first. This one does so only for bytes, and
        where an option asks for a change of the text: `stripnl`, `stripall` or `ensurenl` that is on, or a `tabsize`.
        """
        if not isinstance(text, str) or self._reshapes():
            return super().get_tokens(text, unfiltered)
        tokens: Iterable[tuple[TokenType, str]] = ((kind, part) for _, kind, part in self.get_tokens_unprocessed(text))
        return iter(tokens if unfiltered else apply_filters(tokens, self.filters, self))

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, TokenType, str]]:
        """Offset, type and text of each token."""
        return ((start, kind, text[start:end]) for start, end, kind in _scan(text, list(START)))

    def _reshapes(self) -> bool:
        switches = any(get_bool_opt(self.options, name, False) for name in ("stripnl", "stripall", "ensurenl"))
        return switches or get_int_opt(self.options, "tabsize", 0) > 0
