"""What values look like inside, as far as the program says: the fields that a path can go on with.

A shape is what a schema, a catalogue entry (`{path, bytes}`), the keys of a fan-out or the JSON that an instruction
shows makes of a value. Fields are worked out only when somebody asks, since schemas may hold each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from halo_lang import nodes
from halo_lang.analysis import Analysis
from halo_lang.assist.described import provider_of, type_text
from halo_lang.checks.catalogued import prior_tool
from halo_lang.checks.walk import calls, passes
from halo_lang.nodes import Call, FanOutItem, Path, Pipeline, Stage, TypeRef
from halo_lang.records import record
from halo_lang.symbols import ARRAYS


@record
class Shape:
    """A value from outside: a word for people, and its fields and items when asked for."""

    label: str = ""
    fields: Callable[[], Mapping[str, Shape]] = dict[str, "Shape"]
    item: Callable[[], Shape] | None = None

    def at(self, path: Iterable[str]) -> Shape:
        """What stands at a path below; `UNKNOWN` where nobody can tell."""
        shape = self
        for segment in path:
            is_index = shape.item is not None and segment.isdigit()
            shape = shape.item() if shape.item is not None and is_index else shape.fields().get(segment, UNKNOWN)
        return shape


UNKNOWN: Final = Shape()


@record
class Result:
    """What a stage left behind: its shape, and where it comes from in a few words."""

    shape: Shape
    origin: str


def of_type(type_: TypeRef | None, analysis: Analysis) -> Shape:
    """The shape of a value of a declared type."""
    if type_ is None:
        return UNKNOWN
    name, item = type_.name.text, type_.item
    if name in ARRAYS:
        return Shape(type_text(type_), item=lambda: of_type(item, analysis))
    schema = analysis.program.find(name)
    if not isinstance(schema, nodes.Schema):
        return Shape(name)
    return Shape(name, lambda: {field.name.text: of_type(field.type, analysis) for field in schema.fields})


class Flow:
    """The results of a pipeline's stages up to one of them, and the value that flows into it.

    `results` are under the paths that read them below `context.data`: `kind`, `Triager`, `Triager.classify`. Those of
    later stages, which a loop may have run, count where no earlier one has their name.
    """

    def __init__(self, pipeline: Pipeline, number: int, analysis: Analysis) -> None:
        self._pipeline = pipeline
        self._analysis = analysis
        self._parameters = {field.name.text: of_type(field.type, analysis) for field in pipeline.params}
        self.results: dict[str, Result] = {}
        self.flowing = self.of_value(pipeline.start)
        for stage in pipeline.stages[:number]:
            left, flowing = self._stage(stage)
            self.results.update(left)
            self.flowing = flowing or self.flowing
        before, flowing_here = dict(self.results), self.flowing
        for stage in pipeline.stages[number:]:
            left, flowing = self._stage(stage)
            self.results.update(left)
            self.flowing = flowing or self.flowing
        self.results.update(before)
        self.flowing = flowing_here

    def of_value(self, value: nodes.ArgumentValue | None) -> Shape:
        """The shape of what is written as a value; of none, the value that flows."""
        match value:
            case None:
                return next(iter(self._parameters.values())) if len(self._parameters) == 1 else UNKNOWN
            case Path():
                return self.at(value.segments)
            case nodes.ListValue(items):
                return Shape("list", item=lambda: self.of_value(items[0]) if items else UNKNOWN)
            case _:
                return UNKNOWN

    def at(self, path: Sequence[str], local: Mapping[str, Shape] | None = None) -> Shape:
        """The shape of what a path reads: a parameter, a result or something in `context`."""
        root, rest = path[0], path[1:]
        if root == "context":
            return self._in_context(rest)
        if local and root in local:
            return local[root].at(rest)
        if root in self._parameters:
            return self._parameters[root].at(rest)
        return self.flowing.at(rest) if root == "current" and root not in self.results else self._in_data(path)

    def _in_context(self, path: Sequence[str]) -> Shape:
        match path:
            case [] | ["current"]:
                return self.flowing
            case ["current", *rest]:
                return self.flowing.at(rest)
            case ["input", name, *rest]:
                return self._parameters.get(name, UNKNOWN).at(rest)
            case ["data", *rest] if rest:
                return self._in_data(rest)
            case _:
                return UNKNOWN

    def _in_data(self, path: Sequence[str]) -> Shape:
        # A name that holds results of several methods is no value itself (spec 12.2).
        member = self.results.get(".".join(path[:2])) if len(path) > 1 else None
        if member is not None:
            return member.shape.at(path[2:])
        found = self.results.get(path[0])
        return found.shape.at(path[1:]) if found is not None else UNKNOWN

    def _stage(self, stage: Stage) -> tuple[dict[str, Result], Shape | None]:
        """What a stage stores, and what flows on; None for the value that came in."""
        made = [(call, self._call(call, stage)) for call in calls(stage)]
        flowing = self._flowing(stage, made)
        is_each = isinstance(stage, nodes.EachStage)
        left = {
            name: Result(flowing if is_each and flowing else shape, f"result of {written(call)}")
            for call, shape in made
            for name in _names(call)
        }
        if isinstance(stage, nodes.FanOutStage):
            for item, (call, shape) in zip(stage.items, made, strict=True):
                if item.binding is not None:
                    left[item.binding.text] = Result(shape, f"result of {written(call)}")
        if isinstance(stage, nodes.ListenStage):
            left[f"{stage.source.text}.{stage.event.text}"] = Result(UNKNOWN, "an event's payload")
        if stage.binding is not None:
            left[stage.binding.text] = Result(flowing or self.flowing, _origin(stage, made))
        return left, flowing

    def _flowing(self, stage: Stage, made: Sequence[tuple[Call, Shape]]) -> Shape | None:
        match stage:
            case nodes.FanOutStage(items):
                keys = {_key(item): shape for item, (_, shape) in zip(items, made, strict=True)}
                return Shape("object", lambda: keys)
            case nodes.EachStage():
                shape = made[0][1]
                return Shape("list", item=lambda: shape)
            case nodes.BranchStage():
                return next((shape for _, shape in made if shape is not UNKNOWN), UNKNOWN)
            case nodes.YieldStage() | nodes.ListenStage():
                return UNKNOWN
            case _:
                return made[0][1] if made and not passes(made[0][0]) else None

    def _call(self, call: Call, stage: Stage) -> Shape:
        callee, method = call.callee.text, call.method
        if callee == "System":
            return self.of_value(call.args[0].value) if call.args and method and method.text == "Value" else UNKNOWN
        found = self._analysis.program.find(callee)
        match found:
            case Pipeline():
                return of_type(found.returns, self._analysis)
            case nodes.Provider() if method is not None:
                return documented(callee, method.text, self._analysis)
            case nodes.Agent():
                is_output = stage is self._pipeline.stages[-1]
                answer = of_type(self._pipeline.returns, self._analysis) if is_output else UNKNOWN
                return answer if answer.fields() else _shown(call)
            case _:
                return UNKNOWN


def documented(tool: str, method: str, analysis: Analysis) -> Shape:
    """The shape of a tool's result by the catalogue's words for it."""
    spec = provider_of(tool, analysis)
    entry = spec.method(method) if spec is not None else None
    match = _FIELDS.match(entry.result) if entry is not None else None
    if entry is None or match is None:
        return UNKNOWN
    one = Shape(entry.result, lambda: dict.fromkeys(match[2].split(", "), UNKNOWN))
    return Shape(entry.result, item=lambda: one) if match[1] else one


def in_text(text: str) -> Shape:
    """The shape of the first JSON that a text shows, such as an instruction that says how to reply."""
    keys: list[dict[str, Shape]] = []
    key = ""
    for match in _JSON.finditer(text):
        if match["key"] and keys:
            key = match["key"]
            keys[-1][key] = UNKNOWN
        elif match["open"]:
            inner: dict[str, Shape] = {}
            if keys and key:
                keys[-1][key] = _of_bracket(match["open"], inner)
            keys.append(inner)
            key = ""
        elif match["close"] and keys:
            done = keys.pop()
            if not keys and done:
                return _of_bracket("{", done)
    return _of_bracket("{", keys[0]) if keys and keys[0] else UNKNOWN


_FIELDS: Final = re.compile(r"(\[?)\{(\w+(?:, \w+)*)\}")
_JSON: Final = re.compile(r"""(?P<open>[\[{])|(?P<close>[\]}])|"(?P<key>[^\W\d]\w*)"\s*:""")


def _of_bracket(bracket: str, keys: Mapping[str, Shape]) -> Shape:
    shape = Shape("object", lambda: keys)
    return Shape("list", item=lambda: shape) if bracket == "[" else shape


def _shown(call: Call) -> Shape:
    """The JSON that a call's instructions ask for."""
    texts = [argument.value.value for argument in call.args if isinstance(argument.value, nodes.String)]
    asked = [text for text in texts if "{" in text]
    return Shape("answer", lambda: in_text(asked[-1]).fields()) if asked else UNKNOWN


def written(call: Call) -> str:
    """A call without its arguments."""
    return call.callee.text if call.method is None else f"{call.callee.text}.{call.method.text}"


def _names(call: Call) -> Iterator[str]:
    if call.method is None:
        yield call.callee.text
    elif not passes(call):
        yield call.method.text
        yield f"{call.callee.text}.{call.method.text}"
        if (tool := prior_tool(call)) is not None:
            yield f"{tool.text}.{call.method.text}"


def _key(item: FanOutItem) -> str:
    name = item.binding or item.call.method or item.call.callee
    return name.text


_ORIGINS: Final[dict[type[Stage], str]] = {
    nodes.BranchStage: "what the branch gave",
    nodes.FanOutStage: "results of the fan-out",
    nodes.YieldStage: "a person's answer",
    nodes.ListenStage: "an event's payload",
    nodes.LoopStage: "how often the loop went back",
}


def _origin(stage: Stage, made: Sequence[tuple[Call, Shape]]) -> str:
    if isinstance(stage, nodes.EachStage):
        return f"results of {written(stage.call)}, one an item"
    return _ORIGINS.get(type(stage)) or (f"result of {written(made[0][0])}" if made else "")
