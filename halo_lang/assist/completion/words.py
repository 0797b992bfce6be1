"""Completion of keywords and stage operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halo_lang.assist.completion.items import Candidate, ItemKind
from halo_lang.assist.completion.view import View
from halo_lang.assist.frames import OPERATORS
from halo_lang.lexicon import DECLARATION_KEYWORDS

_EXPLAINED: Final = {
    "policy": (
        "policy Name : Rule(…) & Rule(…)",
        "Rules that are held to at every call of the agents that require it.",
    ),
    "tool": ("tool Name : Provider(…)", "A service that pipelines and agents can call."),
    "store": ("store Name : Provider(…)", "A tool that holds data."),
    "schema": ("schema Name { field: Type }", "The shape of a result."),
    "agent": ("agent Name [model]", "A model with its settings, tools and policies."),
    "pipeline": ("pipeline Name(x: Type) -> Type:", "A sequence of stages."),
    "@": ("@directive", "What applies to the agent or pipeline below."),
    "system": ('system "…"', "The agent's system prompt."),
    "equips": ("equips Tool, Store", "The tools that the agent may use."),
    "requires": ("requires Policy", "The policies that are checked at each call."),
    "|>": ("|> Callee.method(…)", "Pipe: the result of the call flows on."),
    "|?": (
        "|? (condition)  or  |? { arms }",
        "Gate: the run halts unless the condition holds. Branch: the first arm runs.",
    ),
    "|*": ("|* { calls }  or  |* each(x in list) => call", "Fan-out: calls side by side, or one for each item."),
    "|!": ('|! yield("question")', "Ask a person; the answer flows on."),
    "~>": ("~> listen(Source.Event)", "Wait for an event from outside."),
    "|<>": ('|<> loop(Agent, "condition")', "Go back to an agent's earlier stage while the condition holds."),
    "as": ("as name", "Give the result a name."),
    "each": ("each(x in list) => call", "One call for each item of a list."),
    "yield": ('yield("question")', "Ask a person."),
    "listen": ("listen(Source.Event)", "Wait for an event."),
    "loop": ('loop(Agent, "condition")', "Go back to an earlier stage."),
    "in": ("x in list", "The list whose items are taken."),
    "else": ("else => call", "The arm that runs when no other does; the last one."),
    "=>": ("=> call", "What is called."),
    "->": ("-> Type", "What the pipeline gives."),
    "&": ("& Rule", "A further rule."),
}
_RANKS: Final = {**dict.fromkeys(DECLARATION_KEYWORDS, 4), "@": 4, "as": 1}
_SIGNS: Final = frozenset({*OPERATORS, "=>", "->", "&", "@"})


def words(view: View) -> Iterator[Candidate]:
    """The keywords and operators that can stand at the cursor."""
    for word in view.cursor.place.words:
        detail, documentation = _EXPLAINED[word]
        kind = ItemKind.OPERATOR if word in _SIGNS else ItemKind.KEYWORD
        yield Candidate(word, kind, _RANKS.get(word, 0), detail, documentation)
