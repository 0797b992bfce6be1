"""What is declared and never used (HL505)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from halo_lang import nodes
from halo_lang.checks.walk import calls, condition_paths, written_values
from halo_lang.checks.whole import Finding, Whole
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.nodes import Declaration, Pipeline
from halo_lang.placeholders import placeholders
from halo_lang.source import Span
from halo_lang.symbols import EVERY_PARAMETER, Kind, Scope, parameter_at

_HINTS: Final = {
    Kind.AGENT: "call it in a pipeline, or remove it",
    Kind.TOOL: "call it, equip an agent with it, or remove it",
    Kind.POLICY: "let an agent require it, or remove it",
    Kind.SCHEMA: "let a pipeline result in it, or remove it",
}
"""What can be unused; pipelines are what people run."""


def declarations(whole: Whole) -> Iterator[Finding]:
    """HL505 at the name of an agent, tool, store, policy or schema that nothing mentions."""
    used = set[str]().union(*(known.summary.uses for known in whole.known))
    interfaces = whole.symbols.interfaces
    unused = [name for name in interfaces.keys() - used if interfaces[name].kind in _HINTS]
    if unused:
        yield partial(_unused_declarations, unused)


def parameters(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL505 at the name of a parameter that nothing reads. Without a start value all of them flow on, and are used."""
    if not isinstance(declaration, Pipeline) or scope.broken or declaration.start is None or not declaration.params:
        return
    read = set(_read(declaration, scope))
    if EVERY_PARAMETER in read:
        return
    for parameter in declaration.params:
        if parameter.name.text not in read:
            read.add(parameter.name.text)
            yield _unused("parameter", parameter.name, "read it in a stage, or remove it")


def _read(pipeline: Pipeline, scope: Scope) -> Iterator[str]:
    """The names that a pipeline reads which may be its parameters."""
    for path in _paths(pipeline, scope):
        name = parameter_at(path)
        if name is not None:
            yield name
    for stage in pipeline.stages:
        for call in calls(stage):
            callee = scope.lookup(call.callee.text)
            if callee is not None:
                # What does not parse may be an agent whose prompt reads anything.
                yield from (EVERY_PARAMETER,) if callee.kind is Kind.UNKNOWN else callee.fills


def _paths(pipeline: Pipeline, scope: Scope) -> Iterator[tuple[str, ...]]:
    for value in written_values(pipeline):
        match value:
            case nodes.Path():
                yield value.segments
            case nodes.String(text) if "{{" in text:
                yield from (found.segments for found in placeholders(text))
            case _:
                pass
    for stage in pipeline.stages:
        yield from (path.segments for path in condition_paths(stage, scope))


def _unused_declarations(names: Iterable[str], whole: Whole) -> Iterator[Diagnostic]:
    for name in names:
        declaration = whole.program.find(name)
        if declaration is not None and not whole.may_mention(name):
            kind = whole.symbols.interfaces[name].kind
            what = declaration.kind if isinstance(declaration, nodes.Provider) else kind.value
            place = whole.program.span(declaration, declaration.name.span)
            yield _unused(what, declaration.name, _HINTS[kind], place)


def _unused(what: str, name: nodes.Name, hint: str, place: Span | None = None) -> Diagnostic:
    message = f"{what} `{name.text}` is never used"
    return Diagnostic("HL505", Severity.WARNING, message, place or name.span, hint)
