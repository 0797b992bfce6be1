"""What an agent call will read, foretold from the program before anything has run.

A value that is not there yet is stood for by its own placeholder: `{{summary}}` stays `{{summary}}`. Stages that only
pass values on are followed; of the others a value may be given ahead, by the name under which it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import TypeAlias

from halo_lang import catalog
from halo_lang.records import record
from halo_runtime.engine.calls.agent import AgentCall
from halo_runtime.engine.calls.base import Call, Storage
from halo_runtime.engine.calls.system import SystemCall
from halo_runtime.engine.effects import NO_ORIGINS
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.interpreter import begin
from halo_runtime.engine.plan import PipelinePlan, StagePlan
from halo_runtime.engine.stages.ask import Ask, Listen
from halo_runtime.engine.stages.branch import Branch
from halo_runtime.engine.stages.each import Each
from halo_runtime.engine.stages.fanout import FanOut
from halo_runtime.engine.stages.gate import Gate
from halo_runtime.engine.stages.loop import Loop
from halo_runtime.engine.stages.pipe import Pipe
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing, is_list
from halo_runtime.values import compact

FLOWING = "current"
"""The name by which the flowing value may be given."""

_Name: TypeAlias = tuple[str | None, str]
"""Namespace (None for a name of its own) and name."""

_ValueOf: TypeAlias = Callable[[_Name], Json]


@record
class Unknown:
    """A value that is not there yet: what it may be given by (None where it cannot be), and where it will come from."""

    placeholder: str
    name: str | None
    source: str


def names_of(plan: PipelinePlan) -> Set[str]:
    """All names that values of a pipeline may be given by: parameters, results (`Bot.answer` too), items, `current`."""
    results = {_dotted(name) for stage in plan.stages for names in _stored(stage) for name in names}
    each = {stage.name for stage in plan.stages if isinstance(stage, Each)}
    return {*plan.parameters, *results, *each, FLOWING} | ({"index"} if each else set())


def placeholder(*segments: str) -> str:
    """`{{a.b}}`."""
    return "{{" + ".".join(segments) + "}}"


def mentions(value: Json, text: str) -> bool:
    """Whether a placeholder stands anywhere in a value."""
    return text in (value if isinstance(value, str) else compact(value))


class Foresight:
    """A Scope: the state of a pipeline's call `frame`, as far as the program and the values `given` tell it.

    `given` are values by the names of `names_of`. `unknown` is what was met that nobody has given.
    """

    def __init__(self, frame: Frame, given: Mapping[str, Json]) -> None:
        self.frame = frame
        self.given = given
        self.unknown: dict[str, Unknown] = {}
        for name, value in frame.input.items():
            if value == placeholder(name) and name not in given:
                self._not_there(name, f"an argument of {frame.plan.name}")
        begin(frame, self)

    # --- reading ------------------------------------------------------------------------------------------------

    @property
    def current(self) -> Json:
        return self.frame.current

    def read(self, segments: tuple[str, ...]) -> Json | Missing:
        """As a frame reads; what lies inside an unknown value is unknown too."""
        if segments[:2] == ("context", "meta"):
            return self._inside(segments, Unknown("", None, "the figures of the run"))
        if segments == ("context", "data") and self.unknown:
            return self._inside(segments, Unknown("", None, "all results so far"))
        value = self.frame.read(segments)
        if value is not MISSING:
            return value
        for length in range(len(segments) - 1, 0, -1):
            outer = self.frame.read(segments[:length])
            known = self.unknown.get(outer) if isinstance(outer, str) else None
            if known is not None:
                return self._inside(segments, known)
        return MISSING

    def is_known(self, value: Json) -> bool:
        """Whether nothing in a value stands for another that is not there yet."""
        return not any(mentions(value, found) for found in self.unknown)

    def result_of(self, tool_call: str) -> Json:
        """What a `tool:` brings (`Repo.get_issue`): what is given under that name, else a placeholder."""
        if tool_call in self.given:
            return self.given[tool_call]
        return self._not_there(tool_call, f"the result of the tool {tool_call}")

    def matches_of(self, search: str) -> Json:
        """What a store adds to the prompt (`Docs.search`): what is given under that name, else a placeholder."""
        if search in self.given:
            return self.given[search]
        return self._not_there(search, f"the matches of the store {search.partition('.')[0]}")

    def _inside(self, segments: tuple[str, ...], outer: Unknown) -> str:
        text = placeholder(*segments)
        self.unknown.setdefault(text, Unknown(text, outer.name, outer.source))
        return text

    def _not_there(self, name: str, source: str) -> str:
        text = placeholder(name)
        self.unknown.setdefault(text, Unknown(text, name, source))
        return text

    # --- following ----------------------------------------------------------------------------------------------

    def go_to(self, stage: StagePlan) -> None:
        """Follow the pipeline to the beginning of a stage; of an `each` to its first item."""
        for before in self.frame.plan.stages[: stage.info.index]:
            self._pass(before)
        if isinstance(stage, Each):
            self._enter(stage)
        if FLOWING in self.given and FLOWING not in self.frame.input:
            self.frame.flow(self.given[FLOWING], NO_ORIGINS)

    def _pass(self, stage: StagePlan) -> None:
        match stage:
            case Gate():
                pass
            case Loop():
                self._results(stage)
            case Pipe(call=SystemCall() as call, storage=storage):
                self._pass_system(call, stage, storage)
            case FanOut(items=items, binding=binding):
                self._results(stage)
                parts: Json = {item.key: self._result(item.storage.names(), stage) for item in items}
                self.frame.flow(self.given.get(binding, parts) if binding else parts, NO_ORIGINS)
            case _:
                self._results(stage)
                names = [name for group in _stored(stage) for name in group]
                self.frame.flow(self._result(names, stage), NO_ORIGINS)

    def _pass_system(self, call: SystemCall, stage: StagePlan, storage: Storage) -> None:
        """The methods that pass the value on, and `Value`, are done; what others give is not there yet."""
        name = call.label.removeprefix("System.")
        method = catalog.system_method(name)
        value: Json | Missing = MISSING
        if method is not None and method.passes:
            value = self.current
        elif name == "Value":
            value = call.arguments["x"].evaluate(self)
        if value is MISSING:
            self._results(stage)
            value = self._result(storage.names(), stage)
        else:
            self._store(storage.names(), lambda _: value)
        self.frame.flow(value, NO_ORIGINS)

    def _enter(self, stage: Each) -> None:
        """Stand at the first item of a list, of an item that is not there yet where the list is not."""
        items = stage.source.evaluate(self)
        known = is_list(items) and bool(items)
        source = f"an item of {_source(stage)}"
        local: JsonObject = {}
        for name, value in ((stage.name, items[0] if known else MISSING), ("index", 0 if known else MISSING)):
            local[name] = self.given.get(name, value)
            if local[name] is MISSING:
                local[name] = self._not_there(name, source)
        self.frame.locals = local
        self.frame.flow(local[stage.name], NO_ORIGINS)

    # --- results ------------------------------------------------------------------------------------------------

    def _results(self, stage: StagePlan) -> None:
        """Store what a stage stores: each result that is given, under all its names, else each name's placeholder."""
        for names in _stored(stage):
            ahead = self._ahead(names)
            if ahead is MISSING:
                self._store(names, lambda name: self._not_there(_dotted(name), _source(stage)))
            else:
                self._store(names, lambda _, value=ahead: value)

    def _store(self, names: list[_Name], value_of: _ValueOf) -> None:
        for name in names:
            namespace, own = name
            if namespace is None:
                self.frame.bind(own, value_of(name), NO_ORIGINS)
            else:
                self.frame.bind_in(namespace, own, value_of(name), NO_ORIGINS)

    def _result(self, names: list[_Name], stage: StagePlan) -> Json:
        """What a result lets flow on: what is given, else the placeholder of the name that says most."""
        ahead = self._ahead(names)
        if ahead is not MISSING:
            return ahead
        return self._not_there(_dotted(names[-1]) if names else FLOWING, _source(stage))

    def _ahead(self, names: list[_Name]) -> Json | Missing:
        given = [self.given[_dotted(name)] for name in reversed(names) if _dotted(name) in self.given]
        return given[0] if given else MISSING


def agent_calls(plan: PipelinePlan) -> Iterator[tuple[StagePlan, AgentCall]]:
    """The agent calls that stand in a pipeline, each with its stage, in the order of the program."""
    for stage in plan.stages:
        for call in _calls(stage):
            if isinstance(call, AgentCall):
                yield stage, call


def _calls(stage: StagePlan) -> list[Call]:
    match stage:
        case Pipe(call=call) | Each(call=call):
            return [call]
        case Branch(arms=parts) | FanOut(items=parts):
            return [part.call for part in parts]
        case _:
            return []


def _stored(stage: StagePlan) -> list[list[_Name]]:
    """The results that a stage stores: the names of each, those that say most last."""
    match stage:
        case Pipe(storage=storage) | Each(storage=storage):
            return [storage.names()]
        case Branch(arms=parts, binding=binding) | FanOut(items=parts, binding=binding):
            return [*(part.storage.names() for part in parts), _bound(binding)]
        case Listen(source=source, event=event, binding=binding):
            return [[(source, event), *_bound(binding)]]
        case Ask(binding=binding) | Loop(binding=binding):
            return [_bound(binding)]
        case _:
            return []


def _bound(binding: str | None) -> list[_Name]:
    return [] if binding is None else [(None, binding)]


def _dotted(name: _Name) -> str:
    return name[1] if name[0] is None else f"{name[0]}.{name[1]}"


def _source(stage: StagePlan) -> str:
    return f"`{stage.info.label}`, line {stage.info.place.line}"
