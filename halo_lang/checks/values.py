"""Paths as values: results that nobody has produced (HL503), bare names that mean nothing (HL504)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from halo_lang import nodes
from halo_lang.checks.reach import NAMESPACES, Reach, reach_of
from halo_lang.checks.walk import calls, condition_paths, leaves
from halo_lang.diagnostics import Diagnostic, Fix, Severity
from halo_lang.nodes import Argument, Call, Declaration, Path, Pipeline, Stage
from halo_lang.spelling import Guess, nearest
from halo_lang.symbols import Kind, Scope

_WORDS: Final = frozenset({"auto", "none", "current", "Env", "context"})
_NOWHERE: Final = frozenset[str]()


def unknown_values(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL503 at a path below `context.data` that no earlier stage can have filled; HL504 at a name that is no
    parameter, result or declaration in reach. A run would find null there."""
    if not isinstance(declaration, Pipeline) or scope.broken:
        return
    reach = reach_of(declaration, scope)
    start = (declaration.start,) if declaration.start is not None else ()
    for path in _paths(start):
        yield from _unknown(path, reach, 0, _NOWHERE, scope)
    for number, stage in enumerate(declaration.stages):
        for path, local in stage_paths(stage, scope):
            yield from _unknown(path, reach, number, local, scope)


def stage_paths(stage: Stage, scope: Scope) -> Iterator[tuple[Path, frozenset[str]]]:
    """The paths of a stage, each with the names that only exist there."""
    local = frozenset((stage.item.text, "index")) if isinstance(stage, nodes.EachStage) else _NOWHERE
    for call in calls(stage):
        yield from ((path, local) for path in _paths(argument.value for argument in _values(call, scope)))
    yield from ((path, _NOWHERE) for path in condition_paths(stage, scope))
    yield from ((path, _NOWHERE) for path in _own_paths(stage))


def _own_paths(stage: Stage) -> Iterator[Path]:
    match stage:
        case nodes.EachStage():
            yield from _paths((stage.source, *(argument.value for argument in stage.args)))
        case nodes.YieldStage():
            yield from _paths(argument.value for argument in _without_channel(stage.args))
        case nodes.LoopStage():
            yield from _paths(argument.value for argument in stage.args)
        case _:
            return


def _values(call: Call, scope: Scope) -> Iterable[Argument]:
    """A call's arguments without those that name the tools of an agent, or of what may be one."""
    callee = scope.lookup(call.callee.text)
    if callee is not None and callee.kind in (Kind.TOOL, Kind.PIPELINE):
        return call.args
    return (arg for arg in call.args if arg.name is None or arg.name.text not in ("tool", "tools"))


def _without_channel(args: Iterable[Argument]) -> Iterator[Argument]:
    """A yield's arguments without the channel, which may be any name; by position it is the second."""
    for index, argument in enumerate(args):
        if argument.name.text != "channel" if argument.name is not None else index != 1:
            yield argument


def _paths(values: Iterable[nodes.ArgumentValue]) -> Iterator[Path]:
    return (leaf for leaf in leaves(values) if isinstance(leaf, Path))


def _unknown(path: Path, reach: Reach, stage: int, local: frozenset[str], scope: Scope) -> Iterator[Diagnostic]:
    root = path.root
    if root == "context":
        yield from _unknown_in_context(path, reach, stage)
    elif root in _WORDS or root in local or reach.resolves(path.segments, stage):
        return
    elif len(path.parts) > 1 and reach.has(root, stage):
        meant = reach.nearest_path(path.segments, stage)
        message = f"`{root}` has no `{path.segments[1]}`; a run finds null here"
        yield _warning("HL504", message, path, "name what an earlier stage leaves behind", meant)
    elif scope.lookup(root) is None:
        declared = scope.suggest(root)
        meant = reach.nearest_path(path.segments, stage) or (declared and declared.within(path.segments, 0))
        message = f"`{root}` is no parameter, result or declaration in reach; a run finds null here"
        yield _warning("HL504", message, path, 'write a text as "…"', meant)


def _unknown_in_context(path: Path, reach: Reach, stage: int) -> Iterator[Diagnostic]:
    inner = path.segments[1:]
    if inner and inner[0] not in NAMESPACES:
        hint = f"there are {', '.join(sorted(NAMESPACES))}"
        guess = nearest(inner[0], NAMESPACES)
        yield _warning("HL504", f"`context` has no `{inner[0]}`", path, hint, guess and guess.within(path.segments, 1))
    elif len(inner) > 1 and inner[0] == "input" and inner[1] not in reach.parameters:
        guess = nearest(inner[1], reach.parameters)
        message = f"`context.input` has no `{inner[1]}`; a run finds null here"
        meant = guess and guess.within(path.segments, 2)
        yield _warning("HL504", message, path, "it has the pipeline's parameters", meant)
    elif inner and inner[0] == "data" and not reach.is_produced(inner[1:], stage):
        guess = reach.nearest_result(inner[1:], stage)
        meant = guess and guess.within(path.segments[:3], 2)
        message = f"no earlier stage can have produced `{'.'.join(path.segments)}`; a run finds null here"
        yield _warning("HL503", message, path, "name the result of an earlier stage", meant)


def _warning(code: str, message: str, path: Path, hint: str, meant: Guess | None) -> Diagnostic:
    hint = f"did you mean `{meant.name}`?" if meant is not None else hint
    return Diagnostic(code, Severity.WARNING, message, path.span, hint, fix=Fix.of(meant, path.span))
