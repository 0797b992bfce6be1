"""The names in one declaration, one after the other: what declares something, and what means something declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.assist.meanings import Entity, EntityKind, Entry, Meaning, PipelineNames, built_in, declared, method_of
from halo_lang.catalog import Signature
from halo_lang.checks.catalogued import prior_tool
from halo_lang.checks.reach import left_behind
from halo_lang.checks.references import names_in
from halo_lang.checks.texts import stage_texts
from halo_lang.checks.values import stage_paths
from halo_lang.checks.walk import calls, inside, leaves, type_names
from halo_lang.nodes import Agent, Argument, Call, Declaration, Name, Path, Pipeline, Stage, String
from halo_lang.placeholders import placeholders
from halo_lang.records import record
from halo_lang.source import Span
from halo_lang.strings import Literal
from halo_lang.symbols import FIELD_TYPES, Kind, Scope


@record
class Occurrence:
    """A name where it stands (relative to its declaration) and what it may mean, the likeliest first."""

    span: Span
    meanings: tuple[Meaning, ...]
    declares: bool = False

    @property
    def entities(self) -> tuple[Entity, ...]:
        """The things that it may mean."""
        return tuple(dict.fromkeys(meaning.entity for meaning in self.meanings))


def named_in(node: Declaration, names: PipelineNames | None, scope: Scope) -> Iterator[Occurrence]:
    """All names in a declaration, in no order; `names` are a pipeline's."""
    yield Occurrence(node.name.span, (declared(node.name.text),), declares=True)
    for reference in names_in(node, scope):
        if scope.lookup(reference.name.text) is not None:
            yield Occurrence(reference.name.span, (declared(reference.name.text),))
    if isinstance(node, Pipeline) and names is not None:
        yield from _pipeline(node, names, scope)
    else:
        yield from _OTHERS[type(node)](node, scope)


def system_prompts(agent: Agent) -> Iterator[String]:
    """The texts that an agent's system prompt is made of."""
    yield from (modifier.text for modifier in agent.modifiers if isinstance(modifier, nodes.SystemModifier))
    for entry in agent.config:
        known = catalog.AGENT_SETTINGS.by_name.get(entry.name.text) if entry.name is not None else None
        if known is not None and known.name == "system" and isinstance(entry.value, String):
            yield entry.value


def texts_read(
    text: String, names: PipelineNames, stage: int, each: nodes.EachStage | None, scope: Scope
) -> Iterator[Occurrence]:
    """What the placeholders of a text mean where stage number `stage` fills it in."""
    if "{{" not in text.value:
        return
    literal = Literal(scope.source(text.span))
    for found in placeholders(text.value):
        places = [inside(literal, text.span, place) for place in found.places(text.value)]
        for reading in names.read(found.segments, stage, each):
            yield Occurrence(places[reading.segment], reading.meanings)


# --- what is not a pipeline ---------------------------------------------------------------------------------


def _policy(node: nodes.Policy, scope: Scope) -> Iterator[Occurrence]:
    waiting = list(node.rules)
    while waiting:
        rule = waiting.pop()
        spec = catalog.rule(rule.name.text)
        yield from _catalogued("policy rule", rule.name, spec)
        yield from _settings(rule.args, spec.signature if spec is not None else None)
        for argument in rule.args:
            if isinstance(argument.value, nodes.Rule):
                waiting.append(argument.value)
            elif isinstance(argument.value, Path):
                yield from _method_path(argument.value, scope)


def _method_path(path: Path, scope: Scope) -> Iterator[Occurrence]:
    """The second part of `GitHub.merge_pull`."""
    owner = scope.lookup(path.root)
    if len(path.parts) > 1 and owner is not None and owner.kind is Kind.TOOL:
        yield Occurrence(path.parts[1].span, (Meaning(method_of(path.root, path.parts[1].text, scope)),))


def _provider(node: nodes.Provider, _: Scope) -> Iterator[Occurrence]:
    spec = catalog.provider(node.provider.text)
    yield from _catalogued("provider", node.provider, spec)
    yield from _settings(node.args, spec.config if spec is not None else None)


def _schema(node: nodes.Schema, _: Scope) -> Iterator[Occurrence]:
    for field in node.fields:
        entity = Entity(EntityKind.FIELD, field.name.text, node.name.text)
        yield Occurrence(field.name.span, (Meaning(entity, node, field.name.span),), declares=True)
        yield from _built_in_types(field.type)


def _agent(node: Agent, scope: Scope) -> Iterator[Occurrence]:
    yield from _directives(node.directives, scope)
    yield from _model(node.model, scope)
    yield from _settings(node.config, catalog.AGENT_SETTINGS)


def _directives(directives: Iterable[nodes.Directive], scope: Scope) -> Iterator[Occurrence]:
    for directive in directives:
        spec = catalog.directive(directive.name.text)
        yield from _catalogued("directive", directive.name, spec)
        yield from _settings(directive.args, spec.signature if spec is not None else None)
        for value in leaves(argument.value for argument in directive.args):
            if isinstance(value, nodes.ModelRef):
                yield from _model(value, scope)


def _model(model: nodes.ModelRef, scope: Scope) -> Iterator[Occurrence]:
    route = catalog.model_route(model.text)
    # It may be written as a text.
    at = scope.source(model.span).find(model.text)
    if route is not None and at >= 0:
        start = model.span.start + at
        yield Occurrence(Span(start, start + len(model.text)), (built_in("model", model.text, route),))


def _built_in_types(type_: nodes.TypeRef) -> Iterator[Occurrence]:
    for name in type_names(type_):
        if name.text in FIELD_TYPES:
            yield Occurrence(name.span, (built_in("type", name.text),))


def _catalogued(what: str, name: Name, entry: Entry | None) -> Iterator[Occurrence]:
    if entry is not None:
        yield Occurrence(name.span, (built_in(what, name.text, entry),))


def _settings(args: Iterable[Argument], signature: Signature | None) -> Iterator[Occurrence]:
    """The names of arguments that the catalogue knows."""
    if signature is not None:
        for argument in args:
            entry = signature.by_name.get(argument.name.text) if argument.name is not None else None
            if entry is not None and argument.name is not None:
                yield Occurrence(argument.name.span, (built_in("argument", argument.name.text, entry),))


# --- pipelines ----------------------------------------------------------------------------------------------


def _pipeline(node: Pipeline, names: PipelineNames, scope: Scope) -> Iterator[Occurrence]:
    yield from _directives(node.directives, scope)
    for type_ in (node.returns, *(param.type for param in node.params)):
        yield from _built_in_types(type_)
        yield from _schema_types(type_, scope)
    for param in node.params:
        yield Occurrence(param.name.span, (names.parameters[param.name.text],), declares=True)
    if node.start is not None:
        yield from _values((node.start,), names, scope)
    for number, stage in enumerate(node.stages):
        yield from _own(stage, number, names, scope)
        yield from _bound(stage, names)
        yield from _calls(stage, names, scope)
        yield from _read(stage, number, names, scope)


def _values(values: Iterable[nodes.ArgumentValue], names: PipelineNames, scope: Scope) -> Iterator[Occurrence]:
    """A start value."""
    for value in leaves(values):
        if isinstance(value, Path):
            yield from _path(value, names, 0, None)
        elif isinstance(value, String):
            yield from texts_read(value, names, 0, None, scope)


def _read(stage: Stage, number: int, names: PipelineNames, scope: Scope) -> Iterator[Occurrence]:
    """What the values, conditions and texts of a stage mean."""
    each = stage if isinstance(stage, nodes.EachStage) else None
    for path, local in stage_paths(stage, scope):
        yield from _path(path, names, number, each if local else None)
    for text, local in stage_texts(stage):
        yield from texts_read(text, names, number, each if local else None, scope)


def _path(path: Path, names: PipelineNames, number: int, each: nodes.EachStage | None) -> Iterator[Occurrence]:
    for reading in names.read(path.segments, number, each):
        yield Occurrence(path.parts[reading.segment].span, reading.meanings)


def _schema_types(type_: nodes.TypeRef, scope: Scope) -> Iterator[Occurrence]:
    for name in type_names(type_):
        found = scope.lookup(name.text)
        if name.text not in FIELD_TYPES and found is not None and found.kind in (Kind.SCHEMA, Kind.UNKNOWN):
            yield Occurrence(name.span, (declared(name.text),))


def _bound(stage: Stage, names: PipelineNames) -> Iterator[Occurrence]:
    """The names behind `as`."""
    for left in left_behind(stage):
        if left.namespace is None and not left.alone and (left.call is None or left.name is not left.call.callee):
            yield Occurrence(left.name.span, (names.bound(left.name, stage, left.call),), declares=True)


def _calls(stage: Stage, names: PipelineNames, scope: Scope) -> Iterator[Occurrence]:
    for call in calls(stage):
        if call.callee.text == "System":
            yield Occurrence(call.callee.span, (built_in("name", "System"),))
        if call.method is not None:
            yield Occurrence(call.method.span, names.called(call, stage))
        yield from _argument_names(call, scope)


def _argument_names(call: Call, scope: Scope) -> Iterator[Occurrence]:
    callee = scope.lookup(call.callee.text)
    if callee is not None and callee.kind is Kind.PIPELINE:
        for argument in call.args:
            if argument.name is not None and argument.name.text in callee.parameters:
                entity = Entity(EntityKind.PARAMETER, argument.name.text, call.callee.text)
                yield Occurrence(argument.name.span, (Meaning(entity),))
        return
    if callee is not None and callee.kind is Kind.AGENT:
        yield from _settings(call.args, catalog.CALL_SETTINGS)
        tool = prior_tool(call)
        yield from _method_settings(tool.text, call, scope) if tool is not None else ()
        return
    yield from _method_settings(call.callee.text, call, scope)


def _method_settings(owner: str, call: Call, scope: Scope) -> Iterator[Occurrence]:
    if call.method is not None:
        entry = method_of(owner, call.method.text, scope).entry
        yield from _settings(call.args, entry.signature if isinstance(entry, catalog.Method) else None)


def _own(stage: Stage, number: int, names: PipelineNames, scope: Scope) -> Iterator[Occurrence]:
    """The names that only stages of one kind have."""
    match stage:
        case nodes.EachStage():
            yield Occurrence(stage.item.span, (names.item(stage, stage.item.text),), declares=True)
            yield from _settings(stage.args, catalog.EACH)
        case nodes.ListenStage():
            yield Occurrence(stage.source.span, (names.source(stage),), declares=True)
            yield Occurrence(stage.event.span, (names.event(stage),), declares=True)
        case nodes.LoopStage():
            yield from _settings(stage.args, catalog.LOOP)
        case nodes.YieldStage():
            yield from _settings(stage.args, catalog.YIELD)
            yield from _channel(stage, number, names, scope)
        case _:
            return


def _channel(stage: nodes.YieldStage, number: int, names: PipelineNames, scope: Scope) -> Iterator[Occurrence]:
    """The channel of a yield: a value like others, but that it may name a tool as a text too."""
    for index, argument in enumerate(stage.args):
        if argument.name.text != "channel" if argument.name is not None else index != 1:
            continue
        for value in leaves((argument.value,)):
            if isinstance(value, Path):
                yield from _path(value, names, number, None)
            elif isinstance(value, String) and scope.lookup(value.value) is not None:
                place = inside(Literal(scope.source(value.span)), value.span, Span(0, len(value.value)))
                yield Occurrence(place, (declared(value.value),))


_OTHERS: Final[dict[type, Callable[..., Iterator[Occurrence]]]] = {
    nodes.Policy: _policy,
    nodes.Provider: _provider,
    nodes.Schema: _schema,
    nodes.Agent: _agent,
}
