"""The parser that grammar.lark describes, made once when it is first needed.

Its tables lie beside the grammar in grammar.json and count for that very text; with any other they are worked out anew.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from halo_lang.automaton import Automaton
from halo_lang.source import Span

STARTS = ("declaration", "head", "value", "stage", "condition")
"""The rules that a text can be parsed as; all but the first and the last are for parts of broken pipelines."""

GRAMMAR = Path(__file__).with_name("grammar.lark")
TABLES = Path(__file__).with_name("grammar.json")


@cache
def automaton() -> Automaton:
    """The parser; it gives nodes, as builder.py makes them."""
    text = GRAMMAR.read_text("utf-8")
    if TABLES.exists():
        content = json.loads(TABLES.read_bytes())
        if content["grammar"] == text:
            return Automaton(content)
    from halo_lang.tables import tables  # who works on the grammar has Lark, and time for it

    return Automaton(tables(text))


def read(text: str, rule: str, span: Span | None = None) -> Any:
    """The node that `text`, or a part of it, is by one of `STARTS`; spans are offsets into the whole text.

    Raises Stopped, and Refusal.
    """
    return automaton().parse(text, span or Span(0, len(text)), rule)


def spelling(terminal: str) -> str | None:
    """How a terminal is written, if there is only one way."""
    return automaton().spelling(terminal)
