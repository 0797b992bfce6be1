"""Completion of names: of declarations, their methods and events, and of what the catalogue has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.assist.completion.items import Candidate, ItemKind
from halo_lang.assist.completion.view import View
from halo_lang.assist.described import provider_of, type_text
from halo_lang.catalog.signature import Method
from halo_lang.checks.walk import calls
from halo_lang.lexicon import NAME
from halo_lang.symbols import FIELD_TYPES, Kind

_KINDS: Final = {
    Kind.POLICY: ItemKind.POLICY,
    Kind.TOOL: ItemKind.TOOL,
    Kind.SCHEMA: ItemKind.SCHEMA,
    Kind.AGENT: ItemKind.AGENT,
    Kind.PIPELINE: ItemKind.PIPELINE,
    Kind.UNKNOWN: ItemKind.UNKNOWN,
}
_GHOST_RANK: Final = 5


def declared(view: View, names: Iterable[str], rank: int = 0) -> Iterator[Candidate]:
    """Declared names."""
    for name in names:
        interface = view.interface(name)
        if interface is None:
            continue
        kind = interface.kind
        if kind is Kind.UNKNOWN:
            yield Candidate(name, ItemKind.UNKNOWN, _GHOST_RANK, "its declaration does not parse")
        else:
            yield Candidate(name, _KINDS[kind], rank, *_told(view, name))


def _told(view: View, name: str) -> tuple[str, str]:
    """Detail and documentation of a declaration."""
    match view.analysis.program.find(name):
        case nodes.Provider(kind, _, provider):
            spec = catalog.provider(provider.text)
            return f"{kind} : {provider.text}", spec.doc if spec is not None else ""
        case nodes.Agent() as agent:
            return f"agent [{agent.model.text}]", agent.system.value.strip() if agent.system is not None else ""
        case nodes.Policy(_, rules):
            return f"policy : {' & '.join(rule.name.text for rule in rules)}", ""
        case nodes.Schema(_, fields):
            return f"schema {{ {_fields(fields)} }}", ""
        case nodes.Pipeline() as pipeline:
            return f"pipeline ({_fields(pipeline.params)}) -> {type_text(pipeline.returns)}", ""
        case _:
            return "", ""


def _fields(fields: Iterable[nodes.Field]) -> str:
    return ", ".join(f"{field.name.text}: {type_text(field.type)}" for field in fields)


def tools(view: View) -> Iterator[Candidate]:
    """Behind `equips`."""
    return declared(view, (name for name in view.named(Kind.TOOL) if name not in view.cursor.place.listed))


def policies(view: View) -> Iterator[Candidate]:
    """Behind `requires`."""
    return declared(view, (name for name in view.named(Kind.POLICY) if name not in view.cursor.place.listed))


def callees(view: View) -> Iterator[Candidate]:
    """In front of a call's bracket or dot."""
    yield from declared(view, view.named(Kind.AGENT))
    yield from declared(view, view.symbols.of_kind(Kind.TOOL, Kind.PIPELINE), rank=1)
    yield Candidate("System", ItemKind.NAMESPACE, 2, "built in", "Print, Log, Sleep, Fail, Value, Pick and the events.")


def loop_targets(view: View) -> Iterator[Candidate]:
    """The agents that a loop can go back to: those of earlier stages."""
    stages = view.pipeline.stages[: view.stage] if view.pipeline is not None else ()
    called = {call.callee.text for stage in stages for call in calls(stage)}
    agents = view.named(Kind.AGENT)
    yield from declared(view, (name for name in agents if name in called))
    yield from declared(view, (name for name in agents if name not in called), rank=3)


def types(view: View) -> Iterator[Candidate]:
    """Of a field or parameter."""
    yield from (Candidate(name, ItemKind.TYPE, 0, "type") for name in FIELD_TYPES)
    yield from declared(view, view.named(Kind.SCHEMA))


def return_types(view: View) -> Iterator[Candidate]:
    """Behind `->`: schemas are checked, any other name is a label."""
    yield from declared(view, view.named(Kind.SCHEMA))
    yield Candidate("Result", ItemKind.TYPE, 1, "type", "A common placeholder: the result is not checked.")
    yield from (Candidate(name, ItemKind.TYPE, 2, "type") for name in FIELD_TYPES)


# --- methods and events


def methods(view: View) -> Iterator[Candidate]:
    """Behind `Name.`, where a call is being written."""
    if not view.cursor.place.path:
        return
    name = view.cursor.place.path[0]
    if name == "System":
        yield from map(_method, catalog.SYSTEM_METHODS)
        return
    interface = view.interface(name)
    if interface is None or interface.kind in (Kind.TOOL, Kind.AGENT, Kind.UNKNOWN):
        yield from tool_methods(view, name)
        yield from _used_methods(view, name)
    for equipped in sorted(interface.equips) if interface is not None else ():
        yield from tool_methods(view, equipped, rank=2)


def tool_methods(view: View, tool: str, rank: int = 0) -> Iterator[Candidate]:
    """The methods that the catalogue lists for a tool's provider."""
    spec = provider_of(tool, view.analysis)
    yield from (_method(method, rank, f" of {tool}" if rank else "") for method in (spec.methods if spec else ()))


def _method(method: Method, rank: int = 0, owner: str = "") -> Candidate:
    example = f"\n\n{method.example}" if method.example else ""
    result = f" Gives {method.result}." if method.result else ""
    detail = f"{method.signature}{owner}"
    return Candidate(method.name, ItemKind.METHOD, rank, detail, f"{method.doc}{result}{example}")


def _used_methods(view: View, name: str) -> Iterator[Candidate]:
    """What the program asks of an agent, and then of other agents; or of a service that does not name its methods."""
    used = dict.fromkeys(view.used_methods())
    yield from (
        Candidate(method, ItemKind.METHOD, 1, "used in this program") for owner, method in used if owner == name
    )
    agents = frozenset(view.symbols.of_kind(Kind.AGENT))
    if name in agents:
        others = ((owner, method) for owner, method in used if owner != name and owner in agents)
        yield from (Candidate(method, ItemKind.METHOD, 3, f"used with {owner}") for owner, method in others)


def sources(view: View) -> Iterator[Candidate]:
    """Where events come from: names that other stages listen to, and tools."""
    listened = (stage.source.text for stage in view.stages() if isinstance(stage, nodes.ListenStage))
    yield from (Candidate(name, ItemKind.EVENT, 0, "source of events") for name in dict.fromkeys(listened))
    yield from declared(view, view.named(Kind.TOOL), rank=1)


def events(view: View) -> Iterator[Candidate]:
    """The events of a source that other stages listen to."""
    listened = (stage for stage in view.stages() if isinstance(stage, nodes.ListenStage))
    names = (stage.event.text for stage in listened if (stage.source.text,) == view.cursor.place.path)
    yield from (Candidate(name, ItemKind.EVENT, 0, "event") for name in dict.fromkeys(names))


# --- the catalogue


def providers(_: View) -> Iterator[Candidate]:
    """Behind `tool Name :`."""
    for spec in catalog.providers():
        for name in (spec.name, *spec.aliases):
            detail = f"provider {spec.config}" + (f", needs halo[{spec.extra}]" if spec.extra else "")
            yield Candidate(name, ItemKind.PROVIDER, int(name != spec.name), detail, f"{spec.doc}\n\n{spec.example}")


def rules(_: View) -> Iterator[Candidate]:
    """Behind `policy Name :` and `&`."""
    for spec in catalog.rules():
        detail = f"rule {spec.signature}" if spec.signature.parameters or spec.signature.rest else "rule"
        yield Candidate(spec.name, ItemKind.RULE, 0, detail, f"{spec.doc}\n\n{spec.example}")


_BEHIND: Final = re.compile(
    rf"@\s*+({NAME})|(?<![\w.])(agent|pipeline)(?!\w)|(?<![\w.])(?:policy|tool|store|schema)(?!\w)"
)
_FAR: Final = 2000


def directives(view: View) -> Iterator[Candidate]:
    """Behind `@`: those that apply to what follows and are not given yet."""
    target, given = _directed(view)
    for spec in catalog.directives():
        if spec.name not in given and (target is None or target in spec.applies_to):
            detail = f"directive {spec.signature}" if spec.signature.parameters else "directive"
            yield Candidate(spec.name, ItemKind.DIRECTIVE, 0, detail, f"{spec.doc}\n\n{spec.example}")


def _directed(view: View) -> tuple[str | None, set[str]]:
    """What the directives around the cursor stand on, if that is to be seen, and their names."""
    text, behind = view.analysis.program.source.text, view.cursor.span.end
    given = set(view.cursor.place.listed)
    for match in _BEHIND.finditer(text, behind, behind + _FAR):
        if match[1] in ("agent", "pipeline"):
            return match[1], given
        if match[1] is None:
            return match[2], given
        given.add(match[1])
    return None, given


def models(view: View) -> Iterator[Candidate]:
    """In an agent's brackets: what the program uses, what is known, and how the ids of each service begin."""
    others = (known for known in view.analysis.whole.known if known.declaration.name.text != view.cursor.name)
    used = (known.summary.model for known in others)
    yield from (Candidate(name, ItemKind.MODEL, 0, "used in this program") for name in dict.fromkeys(used) if name)
    for name in view.models():
        route = catalog.model_route(name)
        yield Candidate(name, ItemKind.MODEL, 2, route.entry.doc if route is not None else "model")
    for entry in catalog.model_prefixes():
        for prefix in (entry.name, *entry.aliases):
            yield Candidate(f"{prefix}/", ItemKind.MODEL, 1, "model service", entry.doc)


def shadow_targets(view: View) -> Iterator[Candidate]:
    """In the brackets of `@shadow`: another agent or a model."""
    yield from declared(view, view.named(Kind.AGENT))
    yield from models(view)
