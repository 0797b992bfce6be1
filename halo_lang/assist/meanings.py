"""What a name can stand for, and what the names that a pipeline reads stand for at each of its stages (spec 1.5)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from halo_lang import catalog, nodes
from halo_lang.catalog import DirectiveSpec, Method, ModelRoute, Parameter, ProviderSpec, RuleSpec
from halo_lang.checks.catalogued import prior_tool
from halo_lang.checks.reach import Left, earliest_readers, left_behind
from halo_lang.checks.walk import flowing, item_keys
from halo_lang.nodes import Call, Declaration, Name, Pipeline, Stage
from halo_lang.records import record
from halo_lang.source import Span
from halo_lang.symbols import Kind, Scope

Entry: TypeAlias = Method | RuleSpec | DirectiveSpec | ProviderSpec | Parameter | ModelRoute
"""What the catalogue knows under a name."""


class EntityKind(StrEnum):
    """The sorts of things that names stand for."""

    DECLARATION = "declaration"
    PARAMETER = "parameter"
    ITEM = "each name"
    INDEX = "index"
    RESULT = "result"
    METHOD = "method"
    SOURCE = "source of events"
    EVENT = "event"
    FIELD = "field"
    BUILT_IN = "built in"


@record
class Entity:
    """One thing that names stand for.

    `owner` is the declaration it belongs to: the pipeline of a parameter, item, result, source or event, the callee of
    a method, the schema of a field; for what is built in, it says what that is. `at` tells two items of one pipeline
    apart. `entry` is what the catalogue knows of it.
    """

    kind: EntityKind
    name: str
    owner: str = ""
    at: int = 0
    entry: Entry | None = field(default=None, compare=False)


@record
class Meaning:
    """What a name means where it stands, and where that comes from.

    `site` is the name of what is meant where it is introduced, relative to the declaration `home`; None where it is in
    another declaration or nowhere. Of a result, `stage` and `call` made it (no call where it is the stage's own).
    """

    entity: Entity
    home: Declaration | None = field(default=None, compare=False)
    site: Span | None = None
    stage: Stage | None = field(default=None, compare=False)
    call: Call | None = field(default=None, compare=False)


class Reading(NamedTuple):
    """What one segment of a path means, by its number in the path."""

    segment: int
    meanings: tuple[Meaning, ...]


class _Producer(NamedTuple):
    """A stage that leaves something under a name: certainly, or only where a branch takes one of its arms."""

    number: int
    reader: int
    certain: bool
    meaning: Meaning


MOST_MEANINGS: Final = 64
"""Of one name. Without a limit, branches and loops of a long pipeline would give each of its reads all its stages."""


def _first_from(producers: Sequence[_Producer], number: int) -> int:
    """The index of the first of these producers, which are in order, in stage `number` or behind it."""
    return bisect_left(producers, number, key=lambda producer: producer.number)


def declared(name: str) -> Meaning:
    """The meaning of a declaration's name."""
    return Meaning(Entity(EntityKind.DECLARATION, name))


def built_in(what: str, name: str, entry: Entry | None = None) -> Meaning:
    """The meaning of a name that no program declares; `what` says what it is."""
    return Meaning(Entity(EntityKind.BUILT_IN, name, what, entry=entry))


def method_of(owner: str, name: str, scope: Scope) -> Entity:
    """The method `name` of a callee, with what the catalogue knows about it."""
    spec = None if owner == "System" else scope.provider(owner)
    known = catalog.system_method(name) if owner == "System" else spec.method(name) if spec is not None else None
    return Entity(EntityKind.METHOD, name, owner, entry=known)


class PipelineNames:
    """The names in a pipeline: what each stage brings in, and what a path means where a stage reads it."""

    def __init__(self, pipeline: Pipeline, scope: Scope) -> None:
        self.pipeline = pipeline
        self._scope = scope
        owner = pipeline.name.text
        self.parameters = {
            param.name.text: Meaning(Entity(EntityKind.PARAMETER, param.name.text, owner), pipeline, param.name.span)
            for param in reversed(pipeline.params)
        }
        self._producers: dict[str, list[_Producer]] = {}
        self._looped: dict[str, list[_Producer]] = {}
        """Of those, the ones that a loop takes to earlier stages."""
        self._namespaces: dict[str, list[_Producer]] = {}
        """What stands in each namespace, whatever its name there."""
        earliest = earliest_readers(pipeline.stages)
        for number, stage in enumerate(pipeline.stages):
            for left in left_behind(stage):
                self._add(left, stage, number, min(number + 1, earliest[number]))

    def read(self, path: Sequence[str], number: int, each: nodes.EachStage | None = None) -> Iterator[Reading]:
        """What the segments of a path mean in stage `number`; inside the call of an each its names count too.

        Segments that are keys of a value, and what means nothing, are left out.
        """
        root = path[0]
        if root == "context":
            yield from self._in_context(path, number, each)
        elif each is not None and root in (each.item.text, "index"):
            yield Reading(0, (self.item(each, root),))
        elif root in self.parameters:
            yield Reading(0, (self.parameters[root],))
        elif self.producers(root, number) or self._is_namespace(root, number):
            yield from self._in_data(path, 0, number)
        elif root == "current":
            yield from self._in_current(path, 0, number, each)
        elif root == "Env":
            yield Reading(0, (built_in("name", root),))
        elif self._scope.lookup(root) is not None:
            yield Reading(0, (declared(root),))

    def item(self, each: nodes.EachStage, name: str) -> Meaning:
        """The meaning of an each's name, or of the `index` that every each brings along."""
        kind = EntityKind.ITEM if name == each.item.text else EntityKind.INDEX
        entity = Entity(kind, name, self.pipeline.name.text, each.item.span.start)
        return Meaning(entity, self.pipeline, each.item.span, each)

    def bound(self, name: Name, stage: Stage, call: Call | None) -> Meaning:
        """The meaning of an `as` name."""
        entity = Entity(EntityKind.RESULT, name.text, self.pipeline.name.text)
        return Meaning(entity, self.pipeline, name.span, stage, call)

    def producers(self, key: str, number: int) -> tuple[Meaning, ...]:
        """What may stand under `name` or `Callee.method` for stage `number`, the latest first; MOST_MEANINGS of it."""
        made, looped = self._producers.get(key, []), self._looped.get(key, [])
        found: list[Meaning] = []
        for at in reversed(range(_first_from(made, number))):
            found.append(made[at].meaning)
            if made[at].certain or len(found) == MOST_MEANINGS:
                break
        later = (looped[at] for at in range(_first_from(looped, number), len(looped)))
        found += islice((one.meaning for one in later if one.reader <= number), MOST_MEANINGS - len(found))
        return tuple(found)

    def _add(self, left: Left, stage: Stage, number: int, reader: int) -> None:
        meaning = self._meaning(left, stage)
        if meaning is None:
            return
        certain = left.call is None or not isinstance(stage, nodes.BranchStage)
        producer = _Producer(number, reader, certain, meaning)
        key = left.name.text
        if left.namespace is not None:
            self._namespaces.setdefault(left.namespace.text, []).append(producer)
            key = f"{left.namespace.text}.{key}"
        self._producers.setdefault(key, []).append(producer)
        if reader <= number:
            self._looped.setdefault(key, []).append(producer)

    def _meaning(self, left: Left, stage: Stage) -> Meaning | None:
        """What a name that a stage leaves behind means; None for a method's name that something else hides."""
        name, call = left.name, left.call
        if call is not None and call.callee is name:
            return self._nested(call, stage)
        if isinstance(stage, nodes.ListenStage) and left.namespace is not None:
            return self.event(stage)
        if call is None or call.method is not name:
            return self.bound(name, stage, call)
        if left.alone and self._is_hidden(name.text):
            return None
        return self._method((left.namespace or call.callee).text, name, stage, call)

    def _nested(self, call: Call, stage: Stage) -> Meaning:
        """The result of a nested pipeline, which stands under the pipeline's name."""
        entity = declared(call.callee.text).entity
        return Meaning(entity, self.pipeline, call.callee.span, stage, call)

    def event(self, stage: nodes.ListenStage) -> Meaning:
        """The meaning of the event that a stage listens to."""
        owner = f"{self.pipeline.name.text}.{stage.source.text}"
        return Meaning(Entity(EntityKind.EVENT, stage.event.text, owner), self.pipeline, stage.event.span, stage)

    def source(self, stage: nodes.ListenStage) -> Meaning:
        """The meaning of the source of events that a stage listens to."""
        entity = Entity(EntityKind.SOURCE, stage.source.text, self.pipeline.name.text)
        return Meaning(entity, self.pipeline, stage.source.span, stage)

    def item_of(self, item: nodes.FanOutItem, stage: Stage) -> Meaning:
        """The meaning of the key of an item of a fan-out: what gives it its name."""
        call = item.call
        if item.binding is not None:
            return self.bound(item.binding, stage, call)
        if call.method is not None:
            return self._method(call.callee.text, call.method, stage, call)
        return self._nested(call, stage)

    def called(self, call: Call, stage: Stage) -> tuple[Meaning, ...]:
        """The meanings of a call's method: the callee's, and that of the tool which an agent's call runs first."""
        if call.method is None:
            return ()
        owners = [call.callee, *(tool for tool in (prior_tool(call),) if tool is not None)]
        return tuple(self._method(owner.text, call.method, stage, call) for owner in owners)

    def _method(self, owner: str, name: Name, stage: Stage, call: Call) -> Meaning:
        return Meaning(method_of(owner, name.text, self._scope), self.pipeline, name.span, stage, call)

    def _in_context(self, path: Sequence[str], number: int, each: nodes.EachStage | None) -> Iterator[Reading]:
        yield Reading(0, (built_in("context", "context"),))
        if len(path) > 1 and path[1] == "current":
            yield from self._in_current(path, 1, number, each)
        elif len(path) > 1:
            yield Reading(1, (built_in("context", path[1]),))
        if len(path) > 2 and path[1] == "data":
            yield from self._in_data(path, 2, number)
        elif len(path) > 2 and path[1] == "input" and path[2] in self.parameters:
            yield Reading(2, (self.parameters[path[2]],))

    def _in_data(self, path: Sequence[str], at: int, number: int) -> Iterator[Reading]:
        """What a path below `context.data` means, from segment `at` on; a namespace comes before a result."""
        name = path[at]
        if not self._is_namespace(name, number):
            found = self.producers(name, number)
            yield from (Reading(at, found),) if found else ()
            yield from self._keys(path, at + 1, (one.stage for one in found if one.call is None))
            return
        members = self.producers(f"{name}.{path[at + 1]}", number) if len(path) > at + 1 else ()
        yield Reading(at, tuple(self._owners(name, members)))
        if members:
            yield Reading(at + 1, members)

    def _in_current(self, path: Sequence[str], at: int, number: int, each: nodes.EachStage | None) -> Iterator[Reading]:
        yield Reading(at, (built_in("context", "current"),))
        source = flowing(self.pipeline.stages, number) if each is None else None
        if source is not None:
            yield from self._keys(path, at + 1, (self.pipeline.stages[source],))

    def _keys(self, path: Sequence[str], at: int, stages: Iterable[Stage | None]) -> Iterator[Reading]:
        """What segment `at` means as a key of what fan-outs give."""
        if len(path) > at:
            fan_outs = (stage for stage in stages if isinstance(stage, nodes.FanOutStage))
            found = tuple(self._items(stage).get(path[at]) for stage in fan_outs)
            meanings = tuple(meaning for meaning in found if meaning is not None)
            if meanings:
                yield Reading(at, meanings)

    def _items(self, stage: nodes.FanOutStage) -> dict[str, Meaning]:
        """The items of a fan-out by their keys."""
        return dict(zip(item_keys(stage), (self.item_of(item, stage) for item in stage.items), strict=True))

    def _owners(self, name: str, members: Iterable[Meaning]) -> Iterator[Meaning]:
        """What the name of a namespace means, for what is read in it: a callee, a source of events, or both."""
        found = tuple(members) or tuple(producer.meaning for producer in self._namespaces[name])
        sources = [one.stage for one in found if isinstance(one.stage, nodes.ListenStage)]
        if len(sources) < len(found):
            yield declared(name) if name != "System" else built_in("name", name)
        yield from (self.source(stage) for stage in sources)

    def _is_namespace(self, name: str, number: int) -> bool:
        return any(producer.reader <= number for producer in self._namespaces.get(name, ()))

    def _is_hidden(self, name: str) -> bool:
        """Whether a parameter or declaration keeps a method's name from standing for its result."""
        if name in self.parameters:
            return True
        found = self._scope.lookup(name)
        return found is not None and found.kind is not Kind.UNKNOWN
