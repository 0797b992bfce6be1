"""Where parsing stopped, and the shape of an entry in the table of mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from halo_lang.diagnostics import Diagnostic, Fix, error
from halo_lang.excerpt import visible
from halo_lang.lexicon import COMMENT, DECLARATION_KEYWORDS, KEYWORDS, NAME, STAGE_OPERATOR, STRING
from halo_lang.records import record
from halo_lang.source import Span

DECLARATIONS = frozenset(word.upper() for word in DECLARATION_KEYWORDS) | {"AT"}
VALUES = frozenset(("NAME", "STRING", "NUMBER", "DURATION", "TRUE", "FALSE", "NULL", "LSQB"))
OPERANDS = VALUES - {"LSQB"} | {"LPAR", "BANG"}

_LEXEME = re.compile(
    rf"(?P<skip>{COMMENT})|{STRING}|{NAME}|-?[0-9]++(?:\.[0-9]++)?"
    rf"|{STAGE_OPERATOR}|\|\|>?|&&|\{{\{{|=>|->|=<|[=!<>]=|\S"
)
_LONGEST_SHOWN = 40


@record
class Lexeme:
    """A piece of text judged by its look alone; empty at the beginning and the end."""

    text: str
    span: Span

    def __str__(self) -> str:
        if not self.text:
            return "the end"
        if len(self.text) == 1 and not self.text.isprintable():
            return f"the invisible character U+{ord(self.text):04X}"
        shown = self.text.partition("\n")[0][:_LONGEST_SHOWN]
        return f"`{visible(shown)}{'…' if shown != self.text else ''}`"


@record
class Situation:
    """What was read last, what was found then, and what the grammar could have gone on with."""

    rule: str
    """The part of the program that was being read: one of `grammar.STARTS`."""
    before: Lexeme
    found: Lexeme
    expected: frozenset[str]
    """Terminals."""
    is_value: bool = False
    """Whether what was read last stands behind the name of a field or argument."""
    follows: str = ""
    """The lexeme behind what was found."""

    @classmethod
    def at(cls, place: int, text: str, span: Span, rule: str, expected: frozenset[str]) -> Situation:
        """The situation at offset `place`, where `span` was being read."""
        before, values = Span(span.start, span.start), [False]
        for match in _lexemes(text, span.start, place):
            before = Span(*match.span())
            _step(values, match[0])
        match = _LEXEME.match(text, place, span.end)
        found = Span(*match.span()) if match else Span(before.end, before.end)
        behind = next(_lexemes(text, found.end, span.end), None)
        read, stopped = Lexeme(text[slice(*before)], before), Lexeme(text[slice(*found)], found)
        return cls(rule, read, stopped, expected, values[-1], behind[0] if behind else "")

    @property
    def meant(self) -> str | None:
        """The keyword, among those that fit here, that what was found looks like."""
        from difflib import get_close_matches

        words = [word for word in (terminal.strip("_").lower() for terminal in self.expected) if word in KEYWORDS]
        return next(iter(get_close_matches(self.found.text.lower(), words, 1, 0.6)), None)

    @property
    def begins(self) -> bool:
        """Whether what was found could begin a value, an item or a bracket."""
        return re.match(r"[\w\"'(\[{-]", self.found.text) is not None

    @property
    def begins_item(self) -> bool:
        """Whether what was found certainly begins another item of a list: it is neither a stray word, nor more of a
        value."""
        words = self.before.text.isidentifier() and self.found.text.isidentifier()
        return self.begins and (self.follows == ":" or not (words or self.is_value))

    @property
    def touches(self) -> bool:
        """Whether nothing lies between what was read and what was found."""
        return self.before.span.end == self.found.span.start

    @property
    def could_end(self) -> bool:
        """Whether a start value or a stage could have ended here."""
        return self.rule in ("value", "stage") and "$END" in self.expected

    def wants(self, *terminals: str) -> bool:
        """Whether one of the terminals could have stood here."""
        return not self.expected.isdisjoint(terminals)

    def only(self, *terminals: str) -> bool:
        """Whether nothing but these could have stood here."""
        return self.expected == frozenset(terminals)


def _lexemes(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    return (match for match in _LEXEME.finditer(text, start, end) if not match.lastgroup)


def _step(values: list[bool], lexeme: str) -> None:
    """Go past a lexeme, with one entry for each open bracket: whether a value is being read there."""
    match lexeme:
        case "(" | "[" | "{":
            values.append(False)
        case ")" | "]" | "}" if len(values) > 1:
            values.pop()
        case ":" | ",":
            values[-1] = lexeme == ":"
        case _:
            pass


@record
class Mistake:
    """One entry of the table. `message` and `hint` may name `{found}`, `{before}` and `{meant}`."""

    example: str
    """A text with this mistake; `¦` stands in front of the place that the diagnostic points at."""
    applies: Callable[[Situation], bool]
    message: str
    hint: str
    code: str = "HL102"
    at_before: bool = False
    """It points at what was read last, not at what was found."""
    replacement: str | None = None
    """The edit that certainly mends it: what it points at becomes this."""
    insertion: str | None = None
    """The edit that certainly mends it: this is put behind what was read last."""

    def diagnostic(self, situation: Situation) -> Diagnostic:
        """The diagnostic for a place where the entry applies."""
        words = {"found": situation.found, "before": situation.before, "meant": f"`{situation.meant}`"}
        place = situation.before.span if self.at_before else situation.found.span
        message, hint = self.message.format(**words), self.hint.format(**words)
        return error(self.code, message, place, hint=hint, fix=self._fix(situation, place))

    def _fix(self, situation: Situation, place: Span) -> Fix | None:
        if self.insertion is not None:
            end = situation.before.span.end
            return Fix(Span(end, end), self.insertion)
        return None if self.replacement is None else Fix(place, self.replacement.format(meant=situation.meant))
