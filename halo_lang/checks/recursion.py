"""Pipelines that no run comes out of (HL507)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias

from halo_lang.checks.whole import Finding, Summary, Whole
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.nodes import Pipeline

_HINT: Final = "call it in an arm of a branch, or behind a gate that closes in the end"

_SHOWN: Final = 4

_Graph: TypeAlias = Mapping[str, Iterable[str]]


def endless_pipelines(whole: Whole) -> Iterator[Finding]:
    """HL507 at the name of a pipeline that calls itself in every run, be it through others."""
    summaries = {known.declaration.name.text: known.summary for known in whole.known if known.summary.may_call}
    if not summaries:
        return
    ending = _ending(summaries, whole)
    for ring in _rings({name: list(_certain(summary, ending)) for name, summary in summaries.items()}):
        yield partial(_endless, ring)


def _endless(ring: list[str], whole: Whole) -> Iterator[Diagnostic]:
    for name in ring:
        pipeline = whole.program.find(name)
        if isinstance(pipeline, Pipeline):
            message = f"`{name}` always calls itself"
            if len(ring) > 1:
                message += f", through {_others(ring, name)}"
            place = whole.program.span(pipeline, pipeline.name.span)
            yield Diagnostic("HL507", Severity.WARNING, message, place, _HINT)


def _others(ring: list[str], name: str) -> str:
    """The first of the ring without `name`, and how many more: a ring may be as long as the file, and has such each."""
    shown = [f"`{other}`" for other in ring[: _SHOWN + 1] if other != name][:_SHOWN]
    more = len(ring) - 1 - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _ending(summaries: Mapping[str, Summary], whole: Whole) -> set[str]:
    """The pipelines in which a run may halt; those that are not known as a whole are among them."""
    callers: defaultdict[str, list[str]] = defaultdict(list)
    for name, summary in summaries.items():
        for callee in summary.may_call:
            callers[callee].append(name)
    pending = {known.declaration.name.text for known in whole.known if known.summary.has_gate}
    pending.update(name for name in callers if whole.symbols.is_ghost(name))
    found: set[str] = set()
    while pending:
        name = pending.pop()
        found.add(name)
        pending.update(caller for caller in callers[name] if caller not in found)
    return found


def _certain(summary: Summary, ending: set[str]) -> Iterator[str]:
    """The pipelines that every run calls: nothing is certain any more behind one that may end the run."""
    for name in summary.always_calls:
        yield name
        if name in ending:
            return


def _rings(graph: _Graph) -> Iterator[list[str]]:
    """The sets of names of which each leads to all others and itself (Kosaraju's way to find them)."""
    seen: set[str] = set()
    order = [name for start in graph for name in _walk(start, graph, seen)]
    backwards: defaultdict[str, list[str]] = defaultdict(list)
    for name in graph:
        for target in graph[name]:
            backwards[target].append(name)
    seen.clear()
    for start in reversed(order):
        ring = list(_walk(start, backwards, seen))
        if len(ring) > 1 or (ring and start in graph.get(start, ())):
            yield ring


def _walk(start: str, graph: _Graph, seen: set[str]) -> Iterator[str]:
    """All names that can be reached and are not in `seen`, each behind those that it leads to."""
    if start in seen:
        return
    seen.add(start)
    # A chain of calls may be as long as the file, so the walk keeps its own stack.
    stack = [(start, iter(graph.get(start, ())))]
    while stack:
        name, targets = stack[-1]
        target = next((target for target in targets if target not in seen), None)
        if target is None:
            stack.pop()
            yield name
        else:
            seen.add(target)
            stack.append((target, iter(graph.get(target, ()))))
