"""Names that are declared: once in the program (HL201), not reserved (HL202), no schema inside itself (HL207)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halo_lang import nodes
from halo_lang.checks.walk import bindings
from halo_lang.checks.whole import Finding, Whole
from halo_lang.diagnostics import Diagnostic, Related, error
from halo_lang.lexicon import KEYWORDS
from halo_lang.nodes import Declaration, Name, Schema, TypeRef
from halo_lang.program import Program
from halo_lang.symbols import Scope, held_types

RESERVED: Final = KEYWORDS | {"System", "Env"}


def repeated_names(whole: Whole) -> Iterator[Diagnostic]:
    """HL201: all declarations share one namespace."""
    program = whole.program
    for second in whole.symbols.repeated:
        name = second.name
        first = program.find(name.text) or second
        related = Related("first declared here", program.span(first, first.name.span))
        yield error(
            "HL201",
            f"`{name.text}` is declared twice",
            program.span(second, name.span),
            hint="give one of the two another name; all declarations share one namespace",
            related=(related,),
        )


def reserved_names(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL202: keywords, `System` and `Env` keep their meaning everywhere."""
    for name in _introduced(declaration):
        if name.text in RESERVED:
            what = "a keyword" if name.text in KEYWORDS else "built in"
            hint = f"choose another name, for example `my_{name.text.lower()}`"
            yield error("HL202", f"`{name.text}` is {what} and cannot be a name here", name.span, hint=hint)


def endless_schemas(whole: Whole) -> Iterator[Finding]:
    """HL207: a schema that contains itself has no finite value, unless an Array stands between."""
    if any(interface.contains for interface in whole.symbols.interfaces.values()):
        yield _endless_schemas


def _endless_schemas(whole: Whole) -> Iterator[Diagnostic]:
    program = whole.program
    finished: set[str] = set()
    for root, interface in whole.symbols.interfaces.items():
        if interface.contains and root not in finished:
            for schema, held in _closing_types(root, program, finished):
                yield error(
                    "HL207",
                    f"`{held.name.text}` contains itself here, so no value can fit it",
                    program.span(schema, held.span),
                    hint=f"put an Array between: Array<{held.name.text}>",
                )


def _closing_types(root: str, program: Program, finished: set[str]) -> Iterator[tuple[Schema, TypeRef]]:
    """The fields by which a walk from `root` comes back to a schema it is inside of."""
    start = _schema(root, program)
    if start is None:
        return
    inside = {root}
    # A chain of schemas may be as long as the file, so the walk keeps its own stack.
    stack = [(start, iter(held_types(start)))]
    while stack:
        schema, types = stack[-1]
        held = next(types, None)
        if held is None:
            stack.pop()
            inside.discard(schema.name.text)
            finished.add(schema.name.text)
        elif held.name.text in inside:
            yield schema, held
        elif held.name.text not in finished and (next_one := _schema(held.name.text, program)) is not None:
            inside.add(held.name.text)
            stack.append((next_one, iter(held_types(next_one))))


def _schema(name: str, program: Program) -> Schema | None:
    declaration = program.find(name)
    return declaration if isinstance(declaration, Schema) and name not in program.ghosts else None


def _introduced(declaration: Declaration) -> Iterator[Name]:
    yield declaration.name
    if isinstance(declaration, nodes.Pipeline):
        yield from (parameter.name for parameter in declaration.params)
        for stage in declaration.stages:
            if isinstance(stage, nodes.EachStage):
                yield stage.item
            yield from bindings(stage)
