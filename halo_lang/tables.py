"""From grammar.lark to the tables of the automaton; the one place that needs Lark.

Lark takes longer to work them out than a command has for its start, so they lie beside the grammar in grammar.json:
`python -m halo_lang.tables` writes it, and a test holds it to the grammar.

- `grammar`: the text that they are made of.
- `terminals`: name, pattern, and how it is written if there is only one way; in the order in which they are tried.
- `rules`: the symbol, the number of its parts, the builder's method or null, and which of its parts are kept; beside
  each of those whether it is a list that is taken apart.
- `states`: what follows on a terminal or symbol, as automaton.py has it.
- `starts`: for each rule that a text can be parsed as the first state, and the one behind its end.
"""

from __future__ import annotations

import json
from typing import Any, cast

from lark import Lark
from lark.grammar import NonTerminal, Rule, Symbol
from lark.lexer import PatternStr, TerminalDef

from halo_lang.grammar import GRAMMAR, STARTS, TABLES

_IGNORED = "GAP"


def tables(text: str) -> dict[str, Any]:
    """The tables of a grammar."""
    lark = Lark(text, parser="lalr", start=list(STARTS), maybe_placeholders=False)
    table = cast(Any, lark.parser).parser._parse_table
    rules = {rule: number for number, rule in enumerate(lark.rules)}
    order = _order(table)
    states = [{name: _action(step, rules, order) for name, step in sorted(table.states[old].items())} for old in order]
    starts = {start: [order[table.start_states[start]], order[table.end_states[start]]] for start in STARTS}
    return {
        "grammar": text,
        "terminals": [_terminal(terminal) for terminal in sorted(lark.terminals, key=_priority) if _is_read(terminal)],
        "rules": [_rule(rule) for rule in rules],
        "states": states,
        "starts": starts,
    }


def _order(table: Any) -> dict[int, int]:
    """A number for each state that does not depend on the order in which Lark came to it."""
    pending = [table.start_states[start] for start in STARTS]
    order: dict[int, int] = {}
    for state in pending:
        if state not in order:
            order[state] = len(order)
            pending += [
                target for _, (_, target) in sorted(table.states[state].items()) if not isinstance(target, Rule)
            ]
    return order


def _action(step: tuple[Any, Any], rules: dict[Rule, int], order: dict[int, int]) -> int:
    _, target = step
    return ~rules[target] if isinstance(target, Rule) else order[target]


def _terminal(terminal: TerminalDef) -> list[str | None]:
    pattern = terminal.pattern
    word = pattern.value.removesuffix(r"(?!\w)")
    return [terminal.name, pattern.to_regexp(), word if isinstance(pattern, PatternStr) or word.isalpha() else None]


def _is_read(terminal: TerminalDef) -> bool:
    return terminal.name != _IGNORED


def _priority(terminal: TerminalDef) -> tuple[Any, ...]:
    """Lark's order: by priority, then the longer ones first."""
    return -terminal.priority, -terminal.pattern.max_width, -len(terminal.pattern.value), terminal.name


def _rule(rule: Rule) -> list[Any]:
    origin, parts = rule.origin.name, rule.expansion
    kept = [[index, _gathers(part)] for index, part in enumerate(parts) if not getattr(part, "filter_out", False)]
    name = rule.alias or origin
    as_it_is = rule.options.expand1 and rule.alias is None and len(kept) == 1 and not kept[0][1]
    return [origin, len(parts), None if as_it_is or _gathers(rule.origin) else name, kept]


def _gathers(symbol: Symbol) -> bool:
    """Whether a symbol only stands for a list of others; Lark marks it by its name."""
    return isinstance(symbol, NonTerminal) and symbol.name.startswith("_")


if __name__ == "__main__":
    TABLES.write_text(json.dumps(tables(GRAMMAR.read_text("utf-8")), separators=(",", ":")) + "\n", "utf-8")
