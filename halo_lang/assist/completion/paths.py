"""Completion of paths: the names in reach of a stage, and what can follow a dot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.assist.completion import names
from halo_lang.assist.completion.items import Candidate, ItemKind
from halo_lang.assist.completion.view import View
from halo_lang.assist.described import type_text
from halo_lang.assist.frames import FrameKind
from halo_lang.assist.shapes import UNKNOWN
from halo_lang.assist.spots import Spot
from halo_lang.checks.walk import calls, leaves
from halo_lang.nodes import Path
from halo_lang.symbols import ARRAYS


def in_reach(view: View) -> Iterator[Candidate]:
    """What a value, an operand or a placeholder can begin with."""
    for name, shape in view.local.items():
        yield Candidate(name, ItemKind.PARAMETER, 1, shape.label or "the item")
    yield from _parameters(view, rank=1)
    yield from _results(view, rank=1)
    yield from _ALWAYS


def _parameters(view: View, rank: int) -> Iterator[Candidate]:
    for field in view.pipeline.params if view.pipeline is not None else ():
        is_list = field.type.name.text in ARRAYS
        detail = f"parameter: {type_text(field.type)}"
        yield Candidate(field.name.text, ItemKind.PARAMETER, rank + (view.wants_list and not is_list), detail)


def _results(view: View, rank: int) -> Iterator[Candidate]:
    """The results in reach, the latest first, and the names below which several stand."""
    readable = view.readable()
    for name, found in readable.items():
        if "." not in name:
            is_list = found.shape.item is not None
            unfit = view.wants_list and not is_list
            yield Candidate(name, ItemKind.RESULT, rank + unfit, found.origin, found.shape.label)
    for name in dict.fromkeys(name.partition(".")[0] for name in readable if "." in name):
        yield Candidate(name, ItemKind.NAMESPACE, rank + 1, "results by method or event")


def next_segments(view: View) -> Iterator[Candidate]:
    """Behind a dot."""
    path = view.cursor.place.path
    if path[0] == "Env":
        yield from _environment(view)
    elif view.is_fixed:
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
        yield from (Candidate(name, ItemKind.VARIABLE, 0, "environment") for name in variables(view))


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


_ALWAYS: Final = (
    Candidate("context", ItemKind.NAMESPACE, 2, "what the run knows", "The flowing value, results and more."),
    Candidate("current", ItemKind.NAMESPACE, 2, "the flowing value"),
)
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


def in_system_prompt(view: View) -> Iterator[Candidate]:
    """A system prompt is filled where its agent is called: the callers' parameters first."""
    for pipeline in view.analysis.program.pipelines:
        callers = any(call.callee.text == view.cursor.name for stage in pipeline.stages for call in calls(stage))
        for field in pipeline.params:
            detail = f"parameter of {pipeline.name.text}"
            yield Candidate(field.name.text, ItemKind.PARAMETER, 0 if callers else 3, detail)
    yield from _ALWAYS


def variables(view: View) -> list[str]:
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
