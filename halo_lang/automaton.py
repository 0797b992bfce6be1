"""The parser: an LALR(1) automaton whose lexer looks only for what fits in the state it is in.

Its tables are those that Lark works out of grammar.lark (see tables.py). In each state a terminal or a symbol leads to
a number: that of the state to go on in, or below zero the complement of the rule to reduce by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from halo_lang.builder import MADE, Builder, Refusal, Token, too_deep
from halo_lang.lexicon import GAP, MAX_NESTING
from halo_lang.source import Span

END: Final = "$END"
"""The terminal behind the last one."""

_DEEPEST: Final = 10 * MAX_NESTING
"""States that may be open. No nesting that is allowed needs as many; `!!!…` and `A<A<…` would go on."""

_Row: TypeAlias = Mapping[str, int]
_Match: TypeAlias = Callable[[str, int, int], "re.Match[str] | None"]
_Build: TypeAlias = Callable[[list[Any]], Any]


class _Rule(NamedTuple):
    """One way to write a symbol. What is read so far ends with `size` values: the new one is built from them."""

    origin: str
    size: int
    build: _Build | None
    """None where the one value stays as it is."""


class Automaton:
    """The tables, as tables.py describes them, ready to parse by any of the rules in `starts`."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._starts: dict[str, list[int]] = tables["starts"]
        self._rows: list[_Row] = tables["states"]
        self._terminals: dict[str, list[str]] = {name: written for name, *written in tables["terminals"]}
        builder = Builder()
        self._rules = [_rule(builder, *described) for described in tables["rules"]]
        self._patterns: list[_Match | None] = [None] * len(self._rows)
        # As the grammar has it, but an open comment is looked through once only.
        self._gap = re.compile(GAP).match

    def spelling(self, terminal: str) -> str | None:
        """How a terminal is written, if there is only one way."""
        return self._terminals[terminal][1]

    def parse(self, text: str, span: Span, start: str) -> Any:
        """What a part of `text` is by the rule `start`; spans are offsets into the whole text.

        Raises Stopped, and Refusal where the builder does or the text is nested too deep.
        """
        rows, rules, patterns = self._rows, self._rules, self._patterns
        position, end = span
        state, last = self._starts[start]
        states, values = [state], list[Any]()
        while True:
            match = (patterns[state] or self._pattern(state))(text, position, end)
            if match is None:
                position = self._gap(text, position, end).end()  # pyright: ignore[reportOptionalMemberAccess]
                if position < end:
                    raise Stopped(position, self, states, last)
                terminal, token = END, None
            else:
                position, terminal, written = match.end(), match.lastgroup or "", match[match.lastindex or 0]
                token = MADE(Token, (terminal, written, MADE(Span, (position - len(written), position))))
                if len(states) > _DEEPEST:
                    raise Refusal(too_deep(token.span))
            while (action := rows[state].get(terminal)) is not None and action < 0:
                origin, size, build = rules[~action]
                if build is None:
                    states.pop()
                else:
                    children = values[-size:]
                    del values[-size:], states[-size:]
                    values.append(build(children))
                state = rows[states[-1]][origin]
                states.append(state)
            if action is None:
                if token is None and state == last:
                    return values[0]
                raise Stopped(end if token is None else token.span.start, self, states, last)
            state = action
            states.append(state)
            values.append(token)

    def accepted(self, states: Sequence[int], last: int) -> frozenset[str]:
        """The terminals that the automaton could go on with when these states are open."""
        found = (name for name in self._rows[states[-1]] if name in self._terminals or name == END)
        return frozenset(name for name in found if self._accepts(list(states), name, last))

    def _accepts(self, states: list[int], terminal: str, last: int) -> bool:
        while (action := self._rows[states[-1]].get(terminal)) is not None and action < 0:
            origin, size, _ = self._rules[~action]
            del states[-size:]
            states.append(self._rows[states[-1]][origin])
        return action is not None or (terminal == END and states[-1] == last)

    def _pattern(self, state: int) -> _Match:
        """What finds the next terminal that fits in a state, behind a gap.

        Made when the state is first reached: a small program reaches few, and the start of a command waits for it.
        """
        row = self._rows[state]
        fitting = [f"(?P<{name}>{pattern})" for name, (pattern, _) in self._terminals.items() if name in row]
        match = self._patterns[state] = re.compile(f"{GAP}(?:{'|'.join(fitting)})" if fitting else "(?!)").match
        return match


class Stopped(Exception):
    """The text does not go on as the grammar wants it. `place` is the offset of what does not fit, or the end."""

    def __init__(self, place: int, automaton: Automaton, states: Sequence[int], last: int) -> None:
        super().__init__(f"nothing that fits at offset {place}")
        self.place = place
        self._accepted = lambda: automaton.accepted(states, last)

    @cached_property
    def expected(self) -> frozenset[str]:
        """The terminals that could have stood there; most who catch this do not ask."""
        return self._accepted()


def _rule(builder: Builder, origin: str, size: int, method: str | None, kept: list[tuple[int, bool]]) -> _Rule:
    """A rule with what makes its value: a list for those that only gather, else one of the builder's methods."""
    if method is not None:
        made: _Build = getattr(builder, method)
        return _Rule(origin, size, _after(_chosen(size, kept), made))
    if origin.startswith("_"):
        return _Rule(origin, size, _chosen(size, kept) or _all)
    ((index, _),) = kept
    return _Rule(origin, size, None if size == 1 else itemgetter(index))


def _after(choose: _Build | None, made: _Build) -> _Build:
    return made if choose is None else lambda values: made(choose(values))


def _chosen(size: int, kept: list[tuple[int, bool]]) -> _Build | None:
    """What takes the values that a rule keeps, in order, those of a gathered list one by one; None if it keeps all."""
    if len(kept) == size and not any(spread for _, spread in kept):
        return None

    def choose(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for index, spread in kept:
            if not spread:
                found.append(values[index])
            elif found:
                found += values[index]
            else:
                found = values[index]  # nobody else has it, and a list that grows is not copied with each item
        return found

    return choose


def _all(values: list[Any]) -> list[Any]:
    return values
