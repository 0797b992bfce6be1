"""What values look like inside, as far as the program says: the fields that a path can go on with.

A shape is what a schema, a catalogue entry (`{path, bytes}`), the keys of a fan-out or the JSON that an instruction
shows makes of a value. Fields are worked out only when somebody asks, since schemas may hold each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from halo_lang import nodes
from halo_lang.analysis import Analysis
from halo_lang.assist.described import provider_of, type_text
from halo_lang.checks.reach import left_behind
from halo_lang.checks.walk import calls, flowing, passes
from halo_lang.nodes import Call, FanOutItem, Path, Pipeline, Stage, TypeRef
from halo_lang.records import record
from halo_lang.symbols import ARRAYS


@record
class Shape:
    """A value from outside: a word for people, the texts it may be, and its fields and items when asked for."""

    label: str = ""
    choices: tuple[str, ...] = ()
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
    return Shape(name, fields=lambda: {field.name.text: of_type(field.type, analysis) for field in schema.fields})


_Shapes: TypeAlias = Sequence[tuple[Call, Shape]]
"""The calls of a stage, each with the shape of its result."""


class Flow:
    """The results of a pipeline's stages up to one of them, and the value that flows into it.

    `results` are under the paths that read them below `context.data`: `kind`, `Triager.classify`. Those of later
    stages, which a loop may have run, count where no earlier one has their name.
    """

    def __init__(self, pipeline: Pipeline, number: int, analysis: Analysis) -> None:
        self._pipeline = pipeline
        self._analysis = analysis
        self._parameters = {field.name.text: of_type(field.type, analysis) for field in pipeline.params}
        self.results: dict[str, Result] = {}
        self.flowing = self.of_value(pipeline.start)
        self._take(pipeline.stages[:number])
        before, flowing = dict(self.results), self.flowing
        self._take(pipeline.stages[number:])
        self.results.update(before)
        self.flowing = flowing

    def _take(self, stages: Sequence[Stage]) -> None:
        for stage in stages:
            shapes = [(call, self._call(call)) for call in calls(stage)]
            given = self._given(stage, shapes)
            self.results.update(_left(stage, shapes, given))
            self.flowing = self.flowing if given is None else given

    def of_value(self, value: nodes.ArgumentValue | None) -> Shape:
        """The shape of what is written as a value; of none, the value that flows."""
        match value:
            case None:
                return next(iter(self._parameters.values())) if len(self._parameters) == 1 else UNKNOWN
            case Path():
                return self.at(value.segments)
            case nodes.ListValue(items):
                return _list_of(self.of_value(items[0]) if items else UNKNOWN)
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

    def _given(self, stage: Stage, shapes: _Shapes) -> Shape | None:
        """What a stage lets flow on; None for the value that came in."""
        match stage:
            case nodes.FanOutStage(items):
                keys = {_key(item): shape for item, (_, shape) in zip(items, shapes, strict=True)}
                return Shape("object", fields=lambda: keys)
            case nodes.EachStage():
                return _list_of(shapes[0][1])
            case nodes.BranchStage():
                return next((shape for _, shape in shapes if shape is not UNKNOWN), UNKNOWN)
            case nodes.YieldStage() | nodes.ListenStage():
                return UNKNOWN
            case _:
                return shapes[0][1] if shapes and not passes(shapes[0][0]) else None

    def _call(self, call: Call) -> Shape:
        callee, method = call.callee.text, call.method.text if call.method is not None else ""
        if callee == "System":
            return self.of_value(call.args[0].value) if call.args and method == "Value" else UNKNOWN
        match self._analysis.program.find(callee):
            case Pipeline(returns=returns):
                return of_type(returns, self._analysis)
            case nodes.Provider():
                return documented(callee, method, self._analysis)
            case nodes.Agent():
                return self._answer(call)
            case _:
                return UNKNOWN

    def _answer(self, call: Call) -> Shape:
        """An agent's answer: the JSON that its instructions show, else the pipeline's schema where it is the output."""
        shown = _shown(call)
        is_output = shown is UNKNOWN and _is_output(call, self._pipeline)
        return of_type(self._pipeline.returns, self._analysis) if is_output else shown


def _is_output(call: Call, pipeline: Pipeline) -> bool:
    """Whether a call's result is the pipeline's; that of a fan-out or an each holds it only."""
    last = flowing(pipeline.stages, len(pipeline.stages))
    stage = pipeline.stages[last] if last is not None else None
    return isinstance(stage, nodes.PipeStage | nodes.GateStage) and stage.call is call


def _left(stage: Stage, shapes: _Shapes, given: Shape | None) -> dict[str, Result]:
    """What a stage stores, by the path that reads it."""
    by_call = {id(call): shape for call, shape in shapes}
    found: dict[str, Result] = {}
    for left in left_behind(stage):
        name = left.name.text if left.namespace is None else f"{left.namespace.text}.{left.name.text}"
        if left.call is None or isinstance(stage, nodes.EachStage):
            found[name] = Result(given or UNKNOWN, _origin(stage))
        else:
            found[name] = Result(by_call[id(left.call)], f"result of {written(left.call)}")
    return found


def documented(tool: str, method: str, analysis: Analysis) -> Shape:
    """The shape of a tool's result by the catalogue's words for it."""
    spec = provider_of(tool, analysis)
    entry = spec.method(method) if spec is not None else None
    match = _FIELDS.match(entry.result) if entry is not None else None
    if entry is None or match is None:
        return UNKNOWN
    one = Shape(entry.result, fields=lambda: dict.fromkeys(match[2].split(", "), UNKNOWN))
    return _list_of(one) if match[1] else one


def in_text(text: str) -> Shape:
    """The shape of the first JSON with keys that a text shows, such as an instruction that says how to reply."""
    outer = UNKNOWN
    stack: list[tuple[str, dict[str, Shape]]] = []
    key = ""
    for match in _JSON.finditer(text):
        if match["close"]:
            del stack[-1:]
            if not stack and _has_keys(outer):
                break
        elif match["open"]:
            keys = _keys_of(match["open"], stack)
            shape = _of_bracket(match["open"], keys)
            if stack and key:
                stack[-1][1][key] = shape
            outer = outer if stack else shape
            stack.append((match["open"], keys))
            key = ""
        elif stack:
            key = match["key"]
            choices = tuple(_TEXT.findall(match["choices"] or ""))
            stack[-1][1][key] = Shape("text", choices) if choices else UNKNOWN
    return outer if _has_keys(outer) else UNKNOWN


def _keys_of(bracket: str, stack: Sequence[tuple[str, dict[str, Shape]]]) -> dict[str, Shape]:
    """Where the keys in a bracket go; those of a list's objects are the list's, as all are taken to be alike."""
    in_list = bool(stack) and stack[-1][0] == "[" and bracket == "{"
    return stack[-1][1] if in_list else {}


def _has_keys(shape: Shape) -> bool:
    return bool((shape if shape.item is None else shape.item()).fields())


_FIELDS: Final = re.compile(r"(\[?)\{(\w+(?:, \w+)*)\}")
_TEXT: Final = re.compile(r'"([^"\n]*)"')
_JSON: Final = re.compile(
    r"""(?P<open>[\[{])|(?P<close>[\]}])|"(?P<key>[^\W\d]\w*)"\s*+:(?P<choices>\s*+"[^"\n]*"(?:\s*+\|\s*+"[^"\n]*")+)?"""
)


def _of_bracket(bracket: str, keys: Mapping[str, Shape]) -> Shape:
    shape = Shape("object", fields=lambda: keys)
    return _list_of(shape) if bracket == "[" else shape


def _shown(call: Call) -> Shape:
    """The JSON that a call's instructions ask for."""
    texts = [argument.value.value for argument in call.args if isinstance(argument.value, nodes.String)]
    asked = [text for text in texts if "{" in text]
    return Shape("answer", fields=lambda: in_text(asked[-1]).fields()) if asked else UNKNOWN


def written(call: Call) -> str:
    """A call without its arguments."""
    return call.callee.text if call.method is None else f"{call.callee.text}.{call.method.text}"


def _key(item: FanOutItem) -> str:
    name = item.binding or item.call.method or item.call.callee
    return name.text


_ORIGINS: Final[dict[type[Stage], str]] = {
    nodes.BranchStage: "what the branch gave",
    nodes.FanOutStage: "results of the fan-out",
    nodes.EachStage: "results of each item",
    nodes.YieldStage: "a person's answer",
    nodes.ListenStage: "an event's payload",
    nodes.LoopStage: "how often the loop went back",
}


def _origin(stage: Stage) -> str:
    return _ORIGINS.get(type(stage), "result")


def _list_of(item: Shape) -> Shape:
    return Shape("list", item=lambda: item)
