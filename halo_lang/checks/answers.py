"""Conditions that look into the answer of an agent which was not told to answer JSON (HL510)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from halo_lang import catalog, nodes
from halo_lang.checks.catalogued import prior_tool
from halo_lang.checks.walk import bindings, calls, condition_paths, flowing, passes, type_names
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.nodes import Call, Declaration, Name, Path, Pipeline, Stage
from halo_lang.symbols import Interface, Kind, Scope, asks_for_json


def looked_into_texts(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL510: a field of a result that, for all the program says, is a text; a text has none."""
    if not isinstance(declaration, Pipeline) or scope.broken:
        return
    answers = _Answers(declaration, scope)
    for number, stage in enumerate(declaration.stages):
        for path in condition_paths(stage, scope):
            call = answers.read(path)
            if call is not None:
                yield _told_nothing(path, call.callee.text)
        answers.add(stage, number)


_EACH: Final = "*"


class _Written(NamedTuple):
    """A call and the name that its result is bound to."""

    call: Call
    binding: Name | None


class _Answers:
    """The results of the stages so far: under each name the agent call whose plain text stands there.

    None stands for whatever else a name may lead to. Of two results of one name the later one counts.
    """

    def __init__(self, pipeline: Pipeline, scope: Scope) -> None:
        self._scope = scope
        self._parameters = {parameter.name.text for parameter in pipeline.params}
        self._output = flowing(pipeline.stages, len(pipeline.stages)) if _returns_schema(pipeline, scope) else None
        self._texts: dict[str, Call | None] = {}
        self._parts: dict[str, dict[str, Call]] = {}
        """Results that hold several answers: under their name each key, `_EACH` for any number, with its call."""
        self._flowing: Call | None = None

    def read(self, path: Path) -> Call | None:
        """The agent call whose text a path looks into."""
        root, *inner = path.segments
        if root == "context":
            return self._in_context(inner)
        if root in self._parameters:
            return None
        if root == "current" and root not in self._texts:
            return self._flowing if inner else None
        return self._in_data(path.segments)

    def add(self, stage: Stage, number: int) -> None:
        """Take in what a stage leaves behind."""
        unsure = dict.fromkeys(_unsure_names(stage), None)
        self._texts.update(unsure)
        for name in unsure:
            self._parts.pop(name, None)
        for call, binding in _certain(stage):
            if self._is_text(call, number):
                self._texts.update(dict.fromkeys(_names(call), call))
                if binding is not None:
                    self._texts[binding.text] = call
        parts = {key: call for key, call in _parts(stage) if self._is_text(call, number)}
        for name in _names_of_all(stage) if parts else ():
            self._parts[name] = parts
        self._flowing = self._flows_on(stage, number)

    def _in_context(self, path: Sequence[str]) -> Call | None:
        match path:
            case ["data", *inner]:
                return self._in_data(inner)
            case ["current", _, *_]:
                return self._flowing
            case _:
                return None

    def _in_data(self, path: Sequence[str]) -> Call | None:
        if len(path) > 2 and path[0] in self._parts:
            return self._parts[path[0]].get(_EACH if path[1].isdigit() else path[1])
        if len(path) > 1 and path[0] in self._texts:
            return self._texts[path[0]]
        return self._texts.get(".".join(path[:2])) if len(path) > 2 else None

    def _flows_on(self, stage: Stage, number: int) -> Call | None:
        match stage:
            case nodes.PipeStage(call=call) | nodes.GateStage(call=Call() as call):
                if passes(call):
                    return self._flowing
                return call if self._is_text(call, number) else None
            case nodes.GateStage() | nodes.LoopStage():
                return self._flowing
            case _:
                return None

    def _is_text(self, call: Call, stage: int) -> bool:
        agent = self._scope.lookup(call.callee.text)
        if agent is None or agent.kind is not Kind.AGENT or call.method is None:
            return False
        return not (stage == self._output or _asked_in_call(call) or self._asked_of(agent, call))

    def _asked_of(self, agent: Interface, call: Call) -> bool:
        """Whether the agent's system prompt or one of its policies asks for JSON; unknown policies may."""
        if agent.asks_json and not _has_own_prompt(call):
            return True
        policies = (self._scope.lookup(name) for name in agent.requires)
        return any(found is None or found.kind is not Kind.POLICY or found.asks_json for found in policies)


def _parts(stage: Stage) -> Iterator[tuple[str, Call]]:
    """The parts of a stage's result, each with the call that gives it."""
    match stage:
        case nodes.FanOutStage(items):
            yield from ((item.binding.text, item.call) for item in items if item.binding is not None)
            methods = [item.call.method.text for item in items if item.binding is None and item.call.method is not None]
            for item in items:
                # Of two with one method each has its callee in its key.
                if item.binding is None and item.call.method and methods.count(item.call.method.text) == 1:
                    yield item.call.method.text, item.call
        case nodes.EachStage():
            yield _EACH, stage.call
        case _:
            return


def _names_of_all(stage: Stage) -> Iterator[str]:
    """The names under which a result of several parts stands."""
    if stage.binding is not None:
        yield stage.binding.text
    if isinstance(stage, nodes.EachStage) and stage.call.method is not None:
        yield stage.call.method.text


def _certain(stage: Stage) -> Iterator[_Written]:
    """The calls of a stage whose results certainly stand under their names once the stage is past."""
    match stage:
        case nodes.PipeStage(call, binding):
            yield _Written(call, binding)
        case nodes.GateStage(call=Call() as call, binding=binding):
            yield _Written(call, binding)
        case nodes.FanOutStage(items):
            yield from (_Written(item.call, item.binding) for item in items)
        case _:
            return


def _names(call: Call) -> Iterator[str]:
    """The names under which a call's result stands in `context.data`, but for the one it is bound to."""
    if call.method is None:
        yield call.callee.text
    else:
        yield call.method.text
        yield f"{call.callee.text}.{call.method.text}"


def _unsure_names(stage: Stage) -> Iterator[str]:
    """The names under which a stage may leave anything."""
    yield from (name.text for name in bindings(stage))
    for call in calls(stage):
        yield from _names(call)
        tool = prior_tool(call)
        if tool is not None and call.method is not None:
            yield f"{tool.text}.{call.method.text}"


def _returns_schema(pipeline: Pipeline, scope: Scope) -> bool:
    found = [scope.lookup(name.text) for name in type_names(pipeline.returns)]
    return any(type_ is not None and type_.kind in (Kind.SCHEMA, Kind.UNKNOWN) for type_ in found)


def _asked_in_call(call: Call) -> bool:
    texts = (argument.value.value for argument in call.args if isinstance(argument.value, nodes.String))
    return any(asks_for_json(text) for text in texts)


def _has_own_prompt(call: Call) -> bool:
    known = catalog.CALL_SETTINGS.by_name
    names = (argument.name.text for argument in call.args if argument.name is not None)
    return any(name in known and known[name].name == "system" for name in names)


def _told_nothing(path: Path, agent: str) -> Diagnostic:
    message = f"`{agent}` was not told to answer JSON; a text has no `{'.'.join(path.segments)}`"
    hint = 'ask for it in the call, as in "Reply with JSON: {…}", or let the agent require RequireJSON'
    return Diagnostic("HL510", Severity.INFO, message, path.span, hint)
