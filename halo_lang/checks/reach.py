"""Which names mean something at each stage of a pipeline (spec 1.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from halo_lang import nodes
from halo_lang.checks.catalogued import prior_tool
from halo_lang.checks.walk import calls, passes
from halo_lang.nodes import Call, Name, Pipeline, Stage
from halo_lang.spelling import Guess, NameIndex, first_of
from halo_lang.symbols import Kind, Scope

NAMESPACES = frozenset({"current", "input", "data", "meta", "trace"})
"""What stands behind `context.`."""


class Reach:
    """The names in reach of a pipeline's stages: parameters, and results of earlier stages.

    A loop may bring the run back, so what the looped stages leave behind is in reach from the loop's first stage on.
    """

    def __init__(self, pipeline: Pipeline, scope: Scope) -> None:
        self._scope = scope
        self.parameters = dict.fromkeys(parameter.name.text for parameter in pipeline.params)
        """The names of the pipeline's parameters, in order."""
        self._first: dict[str, int] = {}
        """For each result, and each `Callee.method` and `Source.Event`, the first stage that can read it."""
        self._bound: set[str] = set()
        """Results with a name of their own: `as` names and nested pipelines."""
        self._methods: set[str] = set()
        """Results by the name of their method."""
        self._namespaces: set[str] = set()
        for stage, reader in readers(pipeline.stages):
            self._add(stage, reader)

    def has(self, name: str, stage: int) -> bool:
        """Whether `name` is a parameter, or a result that stage number `stage` can read."""
        return name in self.parameters or self._readable(name, stage)

    def resolves(self, path: Sequence[str], stage: int) -> bool:
        """Whether stage number `stage` may find something at a path that begins with a name in reach."""
        return path[0] in self.parameters or self.is_produced(path, stage)

    def is_produced(self, path: Sequence[str], stage: int) -> bool:
        """Whether stage number `stage` may find something at a path below `context.data`."""
        if not path:
            return True
        name = path[0]
        if not self._readable(name, stage):
            return False
        if name in self._bound or (name in self._methods and not self._is_hidden(name)):
            return True
        if len(path) == 1:
            return name in self._namespaces
        return self._readable(f"{name}.{path[1]}", stage)

    def nearest_path(self, path: Sequence[str], stage: int) -> Guess | None:
        """The path that one which leads nowhere may be a misspelling of."""
        if self.has(path[0], stage):
            return self.nearest_result(path, stage)
        word = path[0]
        guess = first_of(word, (name for name in self._index.near(word) if self.has(name, stage)))
        return guess and guess.within(path, 0)

    def nearest_result(self, path: Sequence[str], stage: int) -> Guess | None:
        """The path below `context.data` that one which nothing produces may be a misspelling of."""
        spelt = 2 if self._readable(path[0], stage) else 1
        word = ".".join(path[:spelt])
        near = (name for name in self._index.near(word) if self._readable(name, stage))
        found = first_of(word, (name for name in near if self.is_produced(name.split("."), stage)))
        return found and Guess(".".join((found.name, *path[spelt:])), found.certain)

    def _add(self, stage: Stage, reader: int) -> None:
        for left in left_behind(stage):
            name = left.name.text
            if left.namespace is not None:
                self._namespaces.add(left.namespace.text)
                self._note(left.namespace.text, reader)
                name = f"{left.namespace.text}.{name}"
            elif left.alone:
                self._methods.add(name)
            else:
                self._bound.add(name)
            self._note(name, reader)

    def _note(self, name: str, reader: int) -> None:
        self._first[name] = min(reader, self._first.get(name, reader))

    def _readable(self, name: str, stage: int) -> bool:
        return self._first.get(name, stage + 1) <= stage

    def _is_hidden(self, name: str) -> bool:
        """Whether a method's name is kept from standing for its result by a parameter or a declaration."""
        if name in self.parameters:
            return True
        found = self._scope.lookup(name)
        return found is not None and found.kind is not Kind.UNKNOWN

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex((*self.parameters, *self._first))


def reach_of(pipeline: Pipeline, scope: Scope) -> Reach:
    """The reach of the pipeline that `scope` is made for, worked out once for all its checks."""
    found = scope.shared.get(Reach)
    if not isinstance(found, Reach):
        found = scope.shared[Reach] = Reach(pipeline, scope)
    return found


def readers(stages: Sequence[Stage]) -> Iterator[tuple[Stage, int]]:
    """Each stage with the number of the first stage that can read what it leaves behind."""
    earliest = earliest_readers(stages)
    yield from ((stage, min(number + 1, earliest[number])) for number, stage in enumerate(stages))


def earliest_readers(stages: Sequence[Stage]) -> list[int]:
    """For each stage the first stage of the outermost loop around it; past the end where there is none."""
    earliest = [len(stages)] * len(stages)
    latest: dict[str, int] = {}
    loops: list[tuple[int, int]] = []
    for number, stage in enumerate(stages):
        if isinstance(stage, nodes.LoopStage) and stage.agent.text in latest:
            loops.append((latest[stage.agent.text], number))
        latest.update((call.callee.text, number) for call in calls(stage))
    done = 0
    # By their first stages: whatever an earlier loop has marked needs no second look, so the work is linear.
    for first, last in sorted(loops):
        for number in range(max(first, done), last + 1):
            earliest[number] = first
        done = max(done, last + 1)
    return earliest


class Left(NamedTuple):
    """One name under which a stage leaves something behind.

    That is a name of its own (`as`, or a nested pipeline's), a method's name `alone`, or one in a `namespace`:
    `Callee.method`, `Source.Event`. `call` is the call whose result it is, None where it is what the stage gives.
    """

    name: Name
    call: Call | None
    alone: bool = False
    namespace: Name | None = None


def left_behind(stage: Stage) -> Iterator[Left]:
    """What a stage leaves behind, in the order in which it is stored (spec 2.1, 12.2)."""
    if isinstance(stage, nodes.ListenStage):
        yield Left(stage.event, None, namespace=stage.source)
    for call, binding in _made(stage):
        if call is not None:
            yield from _stored(call)
        if binding is not None:
            yield Left(binding, call)


def _made(stage: Stage) -> Iterator[tuple[Call | None, Name | None]]:
    """The calls of a stage with the names that their results are bound to, and the name that it gives to all of it."""
    match stage:
        case nodes.FanOutStage():
            yield from ((item.call, item.binding) for item in stage.items)
            yield None, stage.binding
        case nodes.BranchStage():
            yield from ((arm.call, None) for arm in stage.arms)
            yield None, stage.binding
        case nodes.PipeStage() | nodes.GateStage() | nodes.EachStage():
            yield stage.call, stage.binding
        case _:
            yield None, stage.binding


def _stored(call: Call) -> Iterator[Left]:
    if call.method is None:
        yield Left(call.callee, call)
    elif not passes(call):
        tool = prior_tool(call)
        if tool is not None:
            yield Left(call.method, call, namespace=tool)
        yield Left(call.method, call, namespace=call.callee)
        yield Left(call.method, call, alone=True)
