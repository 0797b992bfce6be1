"""The syntax tree for other programs, as JSON values, and for people, as indented lines.

The JSON follows nodes.py: `node` is the name of the class, its fields stand under their names, and all places are
absolute: lines and columns from 1, columns in code points.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias, cast

from halo_lang.diagnostics import range_to_json
from halo_lang.excerpt import visible
from halo_lang.program import Program
from halo_lang.source import Source, Span

Tree: TypeAlias = dict[str, Any]
_Place: TypeAlias = Callable[[Span], dict[str, object]]

_KNOWN = frozenset(("node", "line", "column", "endLine", "endColumn", "complete"))


def trees(program: Program) -> list[Tree]:
    """One tree a declaration, in order; `complete` is false where a part of it did not parse and is left out."""
    found: list[Tree] = []
    for unit, start in zip(program.units, program.starts, strict=True):
        if unit.declaration is not None:
            place = partial(_placed, program.source, start)
            found.append({**_json(unit.declaration, place), "complete": not unit.diagnostics})
    return found


def text(declarations: list[Tree]) -> str:
    """The trees as indented lines: the node, its place, what is written in it, and below it its parts."""
    return "".join(f"{line}\n" for tree in declarations for line in _lines(tree, "", ""))


def _placed(source: Source, offset: int, span: Span) -> dict[str, object]:
    return range_to_json(span.shifted(offset), source)


def _json(value: Any, place: _Place) -> Any:
    """A node as an object, a place as its four numbers, many as a list; texts, numbers and nothing as they are."""
    if isinstance(value, Span):
        return place(value)
    if isinstance(value, tuple):
        return [_json(item, place) for item in cast("tuple[object, ...]", value)]
    if not hasattr(value, "__match_args__"):
        return value
    fields = {name: _json(getattr(value, name), place) for name in value.__match_args__ if name != "span"}
    return {"node": type(value).__name__, **place(value.span), **fields}


def _lines(tree: Tree, label: str, indent: str) -> Iterator[str]:
    place = "{line}:{column}-{endLine}:{endColumn}".format_map(tree)
    parts = {name: value for name, value in tree.items() if name not in _KNOWN}
    words = [f"{name}={_word(value)}" for name, value in parts.items() if isinstance(value, str | int | float)]
    if tree.get("complete") is False:
        words.append("incomplete")
    yield visible(" ".join((f"{indent}{label}{tree['node']}", place, *words)))
    for name, value in parts.items():
        for inner in _trees_in(value):
            yield from _lines(inner, f"{name}: ", indent + "  ")


def _word(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _trees_in(value: Any) -> list[Tree]:
    """The nodes that a field holds: one, many or none; places are no nodes."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict) and "node" in item]
