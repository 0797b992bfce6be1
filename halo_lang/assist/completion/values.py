"""Completion of values: arguments and their names, operands of conditions, placeholders, the texts of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from halo_lang.assist.completion import names
from halo_lang.assist.completion.items import Candidate, ItemKind
from halo_lang.assist.completion.paths import in_reach, in_system_prompt, next_segments, variables
from halo_lang.assist.completion.view import View
from halo_lang.assist.described import Described
from halo_lang.assist.frames import FrameKind
from halo_lang.assist.shapes import UNKNOWN, Shape
from halo_lang.assist.signatures import explained
from halo_lang.catalog.signature import Parameter
from halo_lang.symbols import Kind


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
        yield from next_segments(view)
        return
    parameter = view.parameter
    if parameter is not None:
        find = _NAMED.get(parameter.name) or _TYPED.get(parameter.type, _plain)
        yield from find(view, parameter)
    if not view.is_fixed:
        yield from in_reach(view)
        yield from _constants(parameter)


def operands(view: View) -> Iterator[Candidate]:
    """In a condition."""
    if view.cursor.place.path:
        yield from next_segments(view)
        return
    quote = "'" if view.cursor.place.quote == '"' else '"'
    for word in _compared(view).choices:
        yield Candidate(f"{quote}{word}{quote}", ItemKind.CHOICE, 0, "an answer that was asked for")
    yield from in_reach(view)
    yield from _constants(None)


def templates(view: View) -> Iterator[Candidate]:
    """In a `{{…}}`; `Env` is never filled in."""
    if view.cursor.place.path:
        yield from next_segments(view)
    elif view.cursor.keyword == "agent":
        yield from in_system_prompt(view)
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
        yield from (Candidate(f"Env.{one}", ItemKind.VARIABLE, 1, "environment") for one in variables(view))


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
    colon = "" if view.cursor.rest.lstrip().startswith(":") else ":"
    for parameter in described.signature.parameters:
        for name in _names(parameter):
            if name not in taken:
                rank = (0 if parameter.required else 3) + (name != parameter.name)
                detail = described.type_of(parameter)
                insert = f"{name}: " if colon else name
                yield Candidate(f"{name}{colon}", ItemKind.ARGUMENT, rank, detail, explained(parameter), insert)


def _names(parameter: Parameter) -> tuple[str, ...]:
    return (parameter.name, *parameter.aliases)


def _spellings(described: Described, given: str) -> tuple[str, ...]:
    parameter = described.signature.by_name.get(given)
    return _names(parameter) if parameter is not None else (given,)


def _plain(view: View, parameter: Parameter) -> Iterator[Candidate]:
    words = parameter.choices
    quoted = parameter.type not in ("name", "pattern")
    for word in words:
        yield Candidate(f'"{word}"' if quoted else word, ItemKind.CHOICE, 0, parameter.doc)
    if view.arguments is not None and view.arguments.kind is FrameKind.PROVIDER:
        rank = 0 if parameter.secret else 4
        yield from (Candidate(f"Env.{one}", ItemKind.VARIABLE, rank, "environment") for one in variables(view))
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


def _channel(view: View, _: Parameter) -> Iterator[Candidate]:
    yield from names.declared(view, view.named(Kind.TOOL), rank=2)


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
_NAMED: Final = {"channel": _channel}


def _constants(parameter: Parameter | None) -> Iterator[Candidate]:
    if parameter is None or parameter.type == "any":
        yield from (Candidate(word, ItemKind.CONSTANT, 5) for word in ("true", "false", "null"))
