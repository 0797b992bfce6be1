"""The parser that grammar.lark describes, made once when it is first needed.

To work out its tables takes Lark longer than a command has for its start, so they lie beside the grammar in
grammar.json. They count for the very text and the series of Lark that they were made from; with any other they are
worked out anew. `python -m halo_lang.grammar` writes the file, and a test holds it to the grammar.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

from halo_lang.builder import Builder
from halo_lang.lark_parts import Lark, PatternStr, Rule, TerminalDef, lark_version
from halo_lang.lexer import ContextualLexer, Part
from halo_lang.source import Span

STARTS = ("declaration", "head", "value", "stage", "condition")
"""The rules that a text can be parsed as; all but the first and the last are for parts of broken pipelines."""

GRAMMAR = Path(__file__).with_name("grammar.lark")
TABLES = Path(__file__).with_name("grammar.json")

_SERIES = lark_version.rpartition(".")[0]


@cache
def grammar() -> Lark:
    """The parser; it gives nodes, as builder.py makes them."""
    text = GRAMMAR.read_text("utf-8")
    return _from_tables(text) or _from_grammar(text)


def read(text: str, rule: str, span: Span | None = None) -> Any:
    """The node that `text`, or a part of it, is by one of `STARTS`; spans are offsets into the whole text.

    Raises lark's UnexpectedInput, and Refusal.
    """
    parser = cast(Any, grammar())
    return parser.parse(Part(text, *(span or (0, len(text)))), start=rule)


def spelling(terminal: str) -> str | None:
    """How a terminal is written, if there is only one way."""
    pattern = grammar().get_terminal(terminal).pattern
    word = pattern.value.removesuffix(r"(?!\w)")
    return word if isinstance(pattern, PatternStr) or word.isalpha() else None


def tables(text: str) -> str:
    """The content of grammar.json for a grammar; equal in effect, not letter by letter, each time."""
    data, memo = cast(Any, _from_grammar(text)).memo_serialize([TerminalDef, Rule])
    data["options"] |= {"transformer": None, "lexer": None}
    data["parser"]["lexer_conf"]["lexer_type"] = None
    content = {"lark": _SERIES, "grammar": text, "data": data, "memo": memo}
    return json.dumps(content, separators=(",", ":"), default=sorted) + "\n"


def _from_grammar(text: str) -> Lark:
    return Lark(
        text,
        parser="lalr",
        lexer=ContextualLexer,
        start=list(STARTS),
        maybe_placeholders=False,
        transformer=Builder(),  # pyright: ignore[reportArgumentType] - Lark only looks for methods by name
    )


def _from_tables(text: str) -> Lark | None:
    if not TABLES.exists():
        return None
    content = json.loads(TABLES.read_bytes(), object_pairs_hook=_numbered)
    if content["lark"] != _SERIES or content["grammar"] != text:
        return None
    data = content["data"]
    data["options"]["lexer"] = data["parser"]["lexer_conf"]["lexer_type"] = ContextualLexer
    load = cast(Any, Lark)._load_from_dict  # what the stand-alone parsers that Lark generates are loaded with
    return cast(Lark, load(data, content["memo"], transformer=Builder()))


def _numbered(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    """An object of JSON; the numbers that are keys in Lark's tables are numbers again."""
    return {int(key) if key.isdecimal() else key: value for key, value in pairs}


if __name__ == "__main__":
    TABLES.write_text(tables(GRAMMAR.read_text("utf-8")), "utf-8")
