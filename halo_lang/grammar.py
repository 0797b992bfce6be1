"""The grammar, built once when it is first needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

from lark import Lark, TextSlice
from lark.lexer import PatternStr

from halo_lang.builder import Builder
from halo_lang.source import Span

STARTS = ("declaration", "head", "value", "stage", "condition")
"""The rules that a text can be parsed as; all but the first and the last are for parts of broken pipelines."""


@cache
def grammar() -> Lark:
    """The parser that grammar.lark describes; it gives nodes, as builder.py makes them."""
    return Lark(
        Path(__file__).with_name("grammar.lark").read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        start=list(STARTS),
        maybe_placeholders=False,
        transformer=Builder(),  # pyright: ignore[reportArgumentType] - Lark only looks for methods by name
    )


def read(text: str, rule: str, span: Span | None = None) -> Any:
    """The node that `text`, or a part of it, is by one of `STARTS`; spans are offsets into the whole text.

    Raises lark's UnexpectedInput, and Refusal.
    """
    parser = cast(Any, grammar())
    return parser.parse(text if span is None else TextSlice(text, *span), start=rule)


def spelling(terminal: str) -> str | None:
    """How a terminal is written, if there is only one way."""
    pattern = grammar().get_terminal(terminal).pattern
    word = pattern.value.removesuffix(r"(?!\w)")
    return word if isinstance(pattern, PatternStr) or word.isalpha() else None
