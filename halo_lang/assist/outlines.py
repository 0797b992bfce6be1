"""The outline of a program: its declarations, the fields of schemas, the stages of pipelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from halo_lang import nodes
from halo_lang.analysis import Analysis
from halo_lang.assist.described import type_text
from halo_lang.assist.shapes import written
from halo_lang.checks.walk import calls
from halo_lang.nodes import Call, Declaration, Stage
from halo_lang.records import record
from halo_lang.source import Span

SymbolKind: TypeAlias = Literal["policy", "tool", "store", "schema", "agent", "pipeline", "field", "stage"]


@record
class Symbol:
    """One entry. `detail` says more in a few words; `span` covers all of it and `name_span` what to jump to."""

    name: str
    kind: SymbolKind
    detail: str
    span: Span
    name_span: Span
    children: tuple[Symbol, ...] = ()

    def shifted(self, offset: int) -> Symbol:
        """The same entry with all its places `offset` further right."""
        children = tuple(child.shifted(offset) for child in self.children)
        span, name_span = self.span.shifted(offset), self.name_span.shifted(offset)
        return Symbol(self.name, self.kind, self.detail, span, name_span, children)


def outline(analysis: Analysis) -> tuple[Symbol, ...]:
    """The declarations in order; those that do not parse are left out."""
    program = analysis.program
    return tuple(_symbol(one).shifted(program.offset_of(one)) for one in program.declarations)


def shown_parameters(params: tuple[nodes.Field, ...]) -> str:
    """A pipeline's parameters as one writes them: `(text: String)`."""
    return f"({', '.join(f'{field.name.text}: {type_text(field.type)}' for field in params)})"


def stage_name(stage: Stage) -> str:
    """What a stage does, in the words of the program: `Writer.summarize`, `each issue`, `loop Coder`."""
    match stage:
        case nodes.PipeStage(call=call) | nodes.GateStage(call=Call() as call):
            return written(call)
        case nodes.EachStage(item=item):
            return f"each {item.text}"
        case nodes.LoopStage(agent=agent):
            return f"loop {agent.text}"
        case nodes.ListenStage(source=source, event=event):
            return f"listen {source.text}.{event.text}"
        case _:
            return _STAGE_WORDS[type(stage)]


def _symbol(node: Declaration) -> Symbol:
    return _SYMBOLS[type(node)](node)


def _policy(node: nodes.Policy) -> Symbol:
    rules = " & ".join(rule.name.text for rule in node.rules)
    return Symbol(node.name.text, "policy", rules, node.span, node.name.span)


def _provider(node: nodes.Provider) -> Symbol:
    return Symbol(node.name.text, node.kind, node.provider.text, node.span, node.name.span)


def _schema(node: nodes.Schema) -> Symbol:
    fields = tuple(
        Symbol(field.name.text, "field", type_text(field.type), field.span, field.name.span) for field in node.fields
    )
    detail = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
    return Symbol(node.name.text, "schema", detail, node.span, node.name.span, fields)


def _agent(node: nodes.Agent) -> Symbol:
    return Symbol(node.name.text, "agent", node.model.text, node.span, node.name.span)


def _pipeline(node: nodes.Pipeline) -> Symbol:
    detail = f"{shown_parameters(node.params)} -> {type_text(node.returns)}"
    return Symbol(node.name.text, "pipeline", detail, node.span, node.name.span, tuple(map(_stage, node.stages)))


def _stage(stage: Stage) -> Symbol:
    name, calls_made = stage_name(stage), ", ".join(_shown_calls(stage))
    bound = f"as {stage.binding.text}" if stage.binding is not None else ""
    detail = " ".join(part for part in ("" if calls_made == name else calls_made, bound) if part)
    return Symbol(name, "stage", detail, stage.span, _stage_place(stage))


def _shown_calls(stage: Stage) -> list[str]:
    if not isinstance(stage, nodes.FanOutStage):
        return [written(call) for call in calls(stage)]
    named = ((written(item.call), item.binding) for item in stage.items)
    return [call if name is None else f"{call} as {name.text}" for call, name in named]


def _stage_place(stage: Stage) -> Span:
    """Where a reader looks for a stage: its first call, else what it names, else its operator."""
    made = calls(stage)
    if made and not isinstance(stage, nodes.EachStage):
        return Span(made[0].callee.span.start, (made[0].method or made[0].callee).span.end)
    match stage:
        case nodes.EachStage(item=name) | nodes.LoopStage(agent=name) | nodes.ListenStage(source=name):
            return name.span
        case _:
            return stage.operator


_STAGE_WORDS: Final[dict[type, str]] = {
    nodes.GateStage: "gate",
    nodes.BranchStage: "branch",
    nodes.FanOutStage: "fan-out",
    nodes.YieldStage: "yield",
}
_SYMBOLS: Final[dict[type, Callable[..., Symbol]]] = {
    nodes.Policy: _policy,
    nodes.Provider: _provider,
    nodes.Schema: _schema,
    nodes.Agent: _agent,
    nodes.Pipeline: _pipeline,
}
