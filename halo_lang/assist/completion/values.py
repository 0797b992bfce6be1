"""Completion of values: arguments and their names, operands of conditions, paths, placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.assist.completion import names
from halo_lang.assist.completion.items import Candidate, ItemKind
from halo_lang.assist.completion.view import View
from halo_lang.assist.described import Described
from halo_lang.assist.frames import FrameKind
from halo_lang.assist.shapes import UNKNOWN, Shape
from halo_lang.assist.signatures import explained
from halo_lang.assist.spots import Spot
from halo_lang.catalog.signature import Parameter
from halo_lang.checks.walk import calls, leaves
from halo_lang.nodes import Path
from halo_lang.symbols import Kind

_FIXED: Final = frozenset({FrameKind.PROVIDER, FrameKind.SETTINGS, FrameKind.RULE, FrameKind.DIRECTIVE})
"""Argument lists outside of pipelines: nothing flows there, so every value is written out."""


def arguments(view: View) -> Iterator[Candidate]:
    """At the beginning of an argument: its name, or its value by position."""
    yield from _argument_names(view)
    around = view.arguments
    takes_values = view.described is None or view.parameter is not None
    if around is not None and around.index <= around.positional and takes_values:
        yield from values(view)


def values(view: View) -> Iterator[Candidate]:
    """A value, or behind a dot the next segment of a path."""
    if view.cursor.place.path:
        yield from _segments(view)
        return
    parameter = view.parameter
    if parameter is not None:
        yield from _TYPED.get(parameter.type, _plain)(view, parameter)
    if parameter is not None and parameter.name == "channel":
        yield from names.declared(view, view.named(Kind.TOOL), rank=2)
    if not _is_fixed(view):
        yield from in_reach(view)
        yield from _constants(parameter)


def operands(view: View) -> Iterator[Candidate]:
    """In a condition."""
    if view.cursor.place.path:
        yield from _segments(view)
        return
    quote = "'" if view.cursor.place.quote == '"' else '"'
    for word in _compared(view).choices:
        yield Candidate(f"{quote}{word}{quote}", ItemKind.CHOICE, 0, "an answer that was asked for")
    yield from in_reach(view)
    yield from _constants(None)


def templates(view: View) -> Iterator[Candidate]:
    """In a `{{…}}`; `Env` is never filled in."""
    if view.cursor.place.path:
        yield from _segments(view)
    elif view.cursor.keyword == "agent":
        yield from _in_system_prompt(view)
    else:
        yield from in_reach(view)


def choices(view: View) -> Iterator[Candidate]:
    """The text of a string: where a parameter takes one of a few words, or a model."""
    parameter, around = view.parameter, view.arguments
    yield from (Candidate(word, ItemKind.CHOICE, 0, "an answer that was asked for") for word in _compared(view).choices)
    if around is not None and around.kind is FrameKind.DIRECTIVE and around.name == "shadow":
        yield from names.models(view)
    if parameter is None:
        return
    if parameter.type == "string":
        yield from (Candidate(word, ItemKind.CHOICE, 0, parameter.doc) for word in parameter.choices)
    if parameter.name in ("model", "models"):
        yield from names.models(view)
    if parameter.name == "channel":
        yield from names.declared(view, view.named(Kind.TOOL))
    if parameter.secret:
        yield from (Candidate(f"Env.{one}", ItemKind.VARIABLE, 1, "environment") for one in _variables(view))


def _compared(view: View) -> Shape:
    """What the operand in front of a comparison is."""
    compared = view.cursor.place.compared
    return view.flow.at(compared, view.local) if compared and view.flow is not None else UNKNOWN


# --- names and values of arguments


def _argument_names(view: View) -> Iterator[Candidate]:
    described, around = view.described, view.arguments
    if described is None or around is None:
        return
    by_position = [one for one in described.signature.parameters if not one.named_only][: around.positional]
    taken = {name for one in by_position for name in _names(one)}
    taken |= {name for given in around.given for name in _spellings(described, given)}
    insert_colon = not view.cursor.rest.lstrip().startswith(":")
    for parameter in described.signature.parameters:
        for name in _names(parameter):
            if name not in taken:
                rank = (0 if parameter.required else 3) + (name != parameter.name)
                detail = described.type_of(parameter)
                insert = f"{name}: " if insert_colon else name
                yield Candidate(name, ItemKind.ARGUMENT, rank, detail, explained(parameter), insert)


def _names(parameter: Parameter) -> tuple[str, ...]:
    return (parameter.name, *parameter.aliases)


def _spellings(described: Described, given: str) -> tuple[str, ...]:
    parameter = described.signature.by_name.get(given)
    return _names(parameter) if parameter is not None else (given,)


def _is_fixed(view: View) -> bool:
    return view.arguments is not None and view.arguments.kind in _FIXED


def _plain(view: View, parameter: Parameter) -> Iterator[Candidate]:
    words = parameter.choices
    quoted = parameter.type not in ("name", "pattern")
    for word in words:
        yield Candidate(f'"{word}"' if quoted else word, ItemKind.CHOICE, 0, parameter.doc)
    if view.arguments is not None and view.arguments.kind is FrameKind.PROVIDER:
        rank = 0 if parameter.secret else 4
        yield from (Candidate(f"Env.{one}", ItemKind.VARIABLE, rank, "environment") for one in _variables(view))
        yield Candidate("Env", ItemKind.NAMESPACE, rank, "environment", "A variable of the environment.", "Env.")


def _boolean(_: View, parameter: Parameter) -> Iterator[Candidate]:
    yield from (Candidate(word, ItemKind.CONSTANT, 0, parameter.doc) for word in ("true", "false"))


def _tool(view: View, _: Parameter) -> Iterator[Candidate]:
    equipped = _equipped(view)
    yield from names.declared(view, (name for name in view.named(Kind.TOOL) if name in equipped))
    yield from names.declared(view, (name for name in view.named(Kind.TOOL) if name not in equipped), rank=3)


def _tools(view: View, parameter: Parameter) -> Iterator[Candidate]:
    yield from _tool(view, parameter)
    if view.cursor.in_list:
        return
    yield Candidate("auto", ItemKind.CONSTANT, 1, "every tool that the agent equips")
    yield Candidate("none", ItemKind.CONSTANT, 1, "no tool")


def _equipped(view: View) -> frozenset[str]:
    """The tools of the agent that the argument list is about."""
    around = view.arguments
    interface = view.interface(around.name) if around is not None else None
    return interface.equips if interface is not None else frozenset()


def _method(view: View, _: Parameter) -> Iterator[Candidate]:
    yield from names.declared(view, view.named(Kind.TOOL))


def _schema(view: View, _: Parameter) -> Iterator[Candidate]:
    yield from names.declared(view, view.named(Kind.SCHEMA))


def _rule(view: View, _: Parameter) -> Iterator[Candidate]:
    yield from names.rules(view)


_TYPED: Final[dict[str, Callable[[View, Parameter], Iterator[Candidate]]]] = {
    "boolean": _boolean,
    "tool": _tool,
    "tools": _tools,
    "method": _method,
    "schema": _schema,
    "rule": _rule,
}


def _constants(parameter: Parameter | None) -> Iterator[Candidate]:
    if parameter is None or parameter.type == "any":
        yield from (Candidate(word, ItemKind.CONSTANT, 5) for word in ("true", "false", "null"))


def _variables(view: View) -> list[str]:
    """Variables of the environment: those that the program reads, and that of the provider's example."""
    tools = (one for one in view.analysis.program.declarations if isinstance(one, nodes.Provider))
    read = [value for tool in tools for value in leaves(argument.value for argument in tool.args)]
    found = [
        value.segments[1]
        for value in read
        if isinstance(value, Path) and value.segments[:1] == ("Env",) and len(value.parts) > 1
    ]
    spec = catalog.provider(view.arguments.name) if view.arguments is not None else None
    return list(dict.fromkeys((*(_VARIABLE.findall(spec.example) if spec is not None else ()), *found)))


_VARIABLE: Final = re.compile(r"Env\.(\w+)")


# --- names in reach and paths


def in_reach(view: View) -> Iterator[Candidate]:
    """What a value, an operand or a placeholder can begin with."""
    for name, shape in view.local.items():
        yield Candidate(name, ItemKind.PARAMETER, 1, shape.label or "the item")
    yield from _parameters(view, rank=1)
    yield from _results(view, rank=1)
    yield Candidate("context", ItemKind.NAMESPACE, 2, "what the run knows", "The flowing value, results and more.")
    yield Candidate("current", ItemKind.NAMESPACE, 2, "the flowing value")


def _parameters(view: View, rank: int) -> Iterator[Candidate]:
    for field in view.pipeline.params if view.pipeline is not None else ():
        yield Candidate(field.name.text, ItemKind.PARAMETER, rank, f"parameter: {names.type_text(field.type)}")


def _results(view: View, rank: int) -> Iterator[Candidate]:
    """The results in reach, the latest first, and the names below which several stand."""
    readable = view.readable()
    for name, found in readable.items():
        if "." not in name:
            yield Candidate(name, ItemKind.RESULT, rank, found.origin, found.shape.label)
    for name in dict.fromkeys(name.partition(".")[0] for name in readable if "." in name):
        yield Candidate(name, ItemKind.NAMESPACE, rank + 1, "results by method or event")


def _segments(view: View) -> Iterator[Candidate]:
    """Behind a dot."""
    path = view.cursor.place.path
    if path[0] == "Env":
        yield from _environment(view)
    elif _is_fixed(view):
        yield from names.tool_methods(view, path[0]) if len(path) == 1 else ()
    elif path[0] == "context" and len(path) < 2:
        yield from (Candidate(name, ItemKind.NAMESPACE, rank, doc) for rank, (name, doc) in enumerate(_CONTEXT))
    elif path[0] == "context":
        yield from _in_context(view, path[1:])
    else:
        yield from _members(view, path)
        yield from _below(view, path)


def _environment(view: View) -> Iterator[Candidate]:
    around = view.arguments
    if view.cursor.place.spot is Spot.VALUE and around is not None and around.kind is FrameKind.PROVIDER:
        yield from (Candidate(name, ItemKind.VARIABLE, 0, "environment") for name in _variables(view))


def _in_context(view: View, path: Sequence[str]) -> Iterator[Candidate]:
    match path:
        case ["data"]:
            yield from _results(view, rank=0)
        case ["input"]:
            yield from _parameters(view, rank=0)
        case ["meta", *rest]:
            yield from (Candidate(name, ItemKind.FIELD, 0, doc) for name, doc in _META.get(".".join(rest), ()))
        case ["data", *rest]:
            yield from _members(view, rest)
            yield from _below(view, ("context", *path))
        case _:
            yield from _below(view, ("context", *path))


def _members(view: View, path: Sequence[str]) -> Iterator[Candidate]:
    """The methods or events below a name that several results share."""
    prefix = f"{path[0]}."
    for name, found in view.readable().items() if len(path) == 1 else ():
        if name.startswith(prefix):
            yield Candidate(name.removeprefix(prefix), ItemKind.RESULT, 0, found.origin, found.shape.label)


def _below(view: View, path: Sequence[str]) -> Iterator[Candidate]:
    """The fields of what a path reads; where nobody can tell, those that the declaration reads elsewhere."""
    shape = view.flow.at(path, view.local) if view.flow is not None else UNKNOWN
    for name, field in shape.fields().items():
        yield Candidate(name, ItemKind.FIELD, 0, field.label or "field")
    if shape.item is not None:
        yield Candidate("0", ItemKind.FIELD, 1, shape.item().label or "the first item")
    yield from (Candidate(name, ItemKind.FIELD, 2, "read in this declaration") for name in view.read_below(path))


_CONTEXT: Final = (
    ("data", "results of earlier stages"),
    ("current", "the flowing value"),
    ("input", "the arguments, by parameter"),
    ("meta", "cost, tokens, calls, violations"),
    ("trace", "the hash chain of the stages"),
)
_META: Final = {
    "": (
        ("cost", "US dollars so far"),
        ("tokens", "tokens so far"),
        ("calls", "every call of an agent"),
        ("violations", "what policies found"),
        ("shadow", "what shadows answered"),
        ("warnings", "warnings of the run"),
        ("events", "events told to the host"),
        ("budget", "what the policies' budgets have left"),
    ),
    "tokens": (("input", "sent"), ("output", "received"), ("total", "both")),
}


def _in_system_prompt(view: View) -> Iterator[Candidate]:
    """A system prompt is filled where its agent is called: the callers' parameters first."""
    for pipeline in view.analysis.program.pipelines:
        callers = any(call.callee.text == view.cursor.name for stage in pipeline.stages for call in calls(stage))
        for field in pipeline.params:
            detail = f"parameter of {pipeline.name.text}"
            yield Candidate(field.name.text, ItemKind.PARAMETER, 0 if callers else 3, detail)
    yield Candidate("context", ItemKind.NAMESPACE, 2, "what the run knows")
    yield Candidate("current", ItemKind.NAMESPACE, 2, "the flowing value")
