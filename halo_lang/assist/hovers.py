"""What a person wants to know of the name under the pointer: signature, documentation, and what a result looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.analysis import Analysis
from halo_lang.assist.described import provider_of, type_text
from halo_lang.assist.entries import WORDS, code, entry_text, method_text, methods_text
from halo_lang.assist.meanings import EntityKind, Meaning
from halo_lang.assist.occurrences import occurrence_at
from halo_lang.assist.outlines import shown_parameters
from halo_lang.assist.shapes import UNKNOWN, Flow, Shape, of_type, written
from halo_lang.catalog.signature import Method, snake_case
from halo_lang.checks.walk import item_keys
from halo_lang.nodes import Call, Declaration, Pipeline
from halo_lang.records import record
from halo_lang.source import Span
from halo_lang.symbols import asks_for_json

_MOST_MEANINGS = 4
_MOST_LINES = 12
_MOST_COLUMNS = 200
_MOST_FIELDS = (0, 4, 10, 30)
"""Fields of an object that are shown, by how much deeper it goes on."""
_DEPTH = len(_MOST_FIELDS) - 1


@record
class Hover:
    """What there is to say about the name at `span`."""

    span: Span
    markdown: str


def hover(analysis: Analysis, offset: int) -> Hover | None:
    """The documentation of the name at an offset; None where nothing is known."""
    found = occurrence_at(analysis, offset)
    if found is None:
        return None
    known = (_text(analysis, meaning) for meaning in found.occurrence.meanings)
    texts = dict.fromkeys(text for text in known if text)
    return Hover(found.span, "\n\n---\n\n".join(islice(texts, _MOST_MEANINGS))) if texts else None


def _text(analysis: Analysis, meaning: Meaning) -> str | None:
    return _TEXTS[meaning.entity.kind](analysis, meaning)


def _lines(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


# --- declarations -------------------------------------------------------------------------------------------


def _declaration(analysis: Analysis, meaning: Meaning) -> str | None:
    node = analysis.program.find(meaning.entity.name)
    if node is None:
        return f"`{meaning.entity.name}` is declared, but its declaration does not parse."
    notes = _NOTES.get(type(node), _no_notes)(analysis, node)
    result = _result(analysis, meaning) if meaning.stage is not None else ""
    return _lines(code(_header(analysis, node)), result, _comment_above(analysis, node), *notes)


def _header(analysis: Analysis, node: Declaration) -> str:
    """A declaration as it is written; of a pipeline its first line."""
    if isinstance(node, Pipeline):
        return f"pipeline {node.name.text}{shown_parameters(node.params)} -> {type_text(node.returns)}"
    span = analysis.program.span(node, node.span)
    lines = analysis.program.source.text[span.start : span.end].splitlines()
    return _cut(lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "…"])


def _cut(lines: Iterable[str]) -> str:
    return "\n".join(line if len(line) <= _MOST_COLUMNS else f"{line[: _MOST_COLUMNS - 1]}…" for line in lines)


def _comment_above(analysis: Analysis, node: Declaration) -> str:
    """The lines of comment that stand right above a declaration."""
    source = analysis.program.source
    number = analysis.program.position(node, node.span).line - 1
    lines: list[str] = []
    while number > 0 and len(lines) < _MOST_LINES and (line := source.line(number).strip()).startswith("//"):
        lines.append(line.lstrip("/").strip())
        number -= 1
    return _cut(reversed(lines))


def _provider(_: Analysis, node: nodes.Provider) -> Iterator[str]:
    spec = catalog.provider(node.provider.text)
    if spec is not None:
        yield spec.doc
        yield methods_text(spec)


def _pipeline(analysis: Analysis, node: Pipeline) -> Iterator[str]:
    shape = of_type(node.returns, analysis)
    if shape.fields():
        yield f"Gives `{_inline(shape, _DEPTH)}`."


def _no_notes(_: Analysis, __: Declaration) -> Iterator[str]:
    return iter(())


_NOTES: Final[dict[type, Callable[..., Iterator[str]]]] = {nodes.Provider: _provider, Pipeline: _pipeline}


# --- names in pipelines -------------------------------------------------------------------------------------


def _parameter(analysis: Analysis, meaning: Meaning) -> str | None:
    entity = meaning.entity
    pipeline = analysis.program.find(entity.owner)
    fields = pipeline.params if isinstance(pipeline, Pipeline) else ()
    for field in fields:
        if field.name.text == entity.name:
            title = code(f"{entity.name}: {type_text(field.type)}")
            return _lines(title, f"Parameter of `{entity.owner}`.", *_fields_of(of_type(field.type, analysis)))
    return None


def _item(analysis: Analysis, meaning: Meaning) -> str | None:
    stage, home = meaning.stage, meaning.home
    if not isinstance(stage, nodes.EachStage) or not isinstance(home, Pipeline):
        return None
    flow = Flow(home, _number(home, stage), analysis)
    source = flow.of_value(stage.source)
    title = code(f"each({stage.item.text} in {_written_value(stage.source)})")
    return _lines(title, "One item of the list.", *_fields_of(source.item() if source.item is not None else UNKNOWN))


def _index(_: Analysis, __: Meaning) -> str:
    return _lines(code("index"), "The number of the item in its list, from 0.")


def _written_value(value: nodes.Value) -> str:
    return ".".join(value.segments) if isinstance(value, nodes.Path) else "…"


def _bound(analysis: Analysis, meaning: Meaning) -> str:
    return _lines(code(f"context.data.{meaning.entity.name}"), _result(analysis, meaning))


def _method(analysis: Analysis, meaning: Meaning) -> str:
    entity = meaning.entity
    title = f"{entity.owner}.{entity.name}"
    if isinstance(entity.entry, Method):
        return method_text(title, entity.entry)
    if isinstance(analysis.program.find(entity.owner), nodes.Agent):
        task = f"Asks the agent `{entity.owner}`. The method's name is its task: *{snake_case(entity.name)}*."
        return _lines(code(title), task.replace("_", " "), _result(analysis, meaning))
    return code(title)


def _event(_: Analysis, meaning: Meaning) -> str:
    stage = meaning.stage
    name = f"{stage.source.text}.{stage.event.text}" if isinstance(stage, nodes.ListenStage) else meaning.entity.name
    return _lines(code(f"~> listen({name})"), f"An event from outside; its payload is at `context.data.{name}`.")


def _field(analysis: Analysis, meaning: Meaning) -> str | None:
    schema = meaning.home
    fields = schema.fields if isinstance(schema, nodes.Schema) else ()
    for field in fields:
        if field.name.text == meaning.entity.name:
            title = code(f"{field.name.text}: {type_text(field.type)}")
            shape = of_type(field.type, analysis)
            return _lines(title, f"Field of the schema `{meaning.entity.owner}`.", *_fields_of(shape))
    return None


def _built_in(_: Analysis, meaning: Meaning) -> str | None:
    entity = meaning.entity
    if entity.entry is not None:
        return entry_text(entity)
    text = WORDS[entity.owner](entity.name) if entity.owner in WORDS else None
    return _lines(code(entity.name), text) if text is not None else None


_TEXTS: Final[dict[EntityKind, Callable[[Analysis, Meaning], str | None]]] = {
    EntityKind.DECLARATION: _declaration,
    EntityKind.PARAMETER: _parameter,
    EntityKind.ITEM: _item,
    EntityKind.INDEX: _index,
    EntityKind.RESULT: _bound,
    EntityKind.METHOD: _method,
    EntityKind.SOURCE: _event,
    EntityKind.EVENT: _event,
    EntityKind.FIELD: _field,
    EntityKind.BUILT_IN: _built_in,
}


# --- results ------------------------------------------------------------------------------------------------


def _result(analysis: Analysis, meaning: Meaning) -> str:
    """What a result is and looks like, in a sentence or two."""
    stage, home = meaning.stage, meaning.home
    if stage is None or not isinstance(home, Pipeline):
        return ""
    flow = Flow(home, _number(home, stage) + 1, analysis)
    if isinstance(stage, nodes.FanOutStage) and meaning.call is None:
        given = (_given(analysis, item.call, stage, flow) for item in stage.items)
        lines = (f"- `{key}`: {words}" for key, words in zip(item_keys(stage), given, strict=True))
        return "\n".join(("What the fan-out gives, an object:", "", *lines))
    if isinstance(stage, nodes.EachStage):
        each = _given(analysis, stage.call, stage, flow)
        return f"Result of `{written(stage.call)}` for each item: a list, each {each}."
    if meaning.call is not None:
        return f"Result of `{written(meaning.call)}`: {_given(analysis, meaning.call, stage, flow)}."
    return _OWN_RESULTS.get(type(stage), "")


_OWN_RESULTS: Final[dict[type, str]] = {
    nodes.BranchStage: "What the chosen arm gave; the value as it was where none was true.",
    nodes.YieldStage: "What a person answered.",
    nodes.ListenStage: "The payload of the event.",
    nodes.LoopStage: "How often the loop went back, a whole number.",
}


def _given(analysis: Analysis, call: Call, stage: nodes.Stage, flow: Flow) -> str:
    """What a call gives, in a few words."""
    shape = _shape_of(call, stage, flow)
    if _tells_more(shape):
        return f"`{_inline(shape, _DEPTH)}`"
    return _CALLED.get(type(analysis.program.find(call.callee.text)), _system)(analysis, call)


def _shape_of(call: Call, stage: nodes.Stage, flow: Flow) -> Shape:
    found = flow.results.get(written(call))
    if found is None:
        return UNKNOWN
    # What an each stores is the list of what its call gave.
    is_list = isinstance(stage, nodes.EachStage) and found.shape.item is not None
    return found.shape.at(("0",)) if is_list else found.shape


def _answer(analysis: Analysis, call: Call) -> str:
    """Whether an agent's answer is a text or JSON, as far as the program says (spec 12.3)."""
    known = analysis.whole.symbols.interfaces
    agent = known[call.callee.text]
    policies = (known[name] for name in agent.requires if name in known)
    texts = (argument.value.value for argument in call.args if isinstance(argument.value, nodes.String))
    if agent.asks_json or any(policy.asks_json for policy in policies) or any(map(asks_for_json, texts)):
        return "JSON, as asked for"
    return "a text, or JSON if the model answers so"


def _tool_result(analysis: Analysis, call: Call) -> str:
    spec = provider_of(call.callee.text, analysis)
    entry = spec.method(call.method.text) if spec is not None and call.method is not None else None
    return entry.result if entry is not None and entry.result else "what the tool gives"


def _nested(analysis: Analysis, call: Call) -> str:
    pipeline = analysis.program.find(call.callee.text)
    return f"`{type_text(pipeline.returns)}`" if isinstance(pipeline, Pipeline) else "what it gives"


def _system(_: Analysis, call: Call) -> str:
    method = catalog.system_method(call.method.text) if call.method is not None else None
    return method.result if method is not None else "unknown"


_CALLED: Final[dict[type, Callable[[Analysis, Call], str]]] = {
    nodes.Agent: _answer,
    nodes.Provider: _tool_result,
    Pipeline: _nested,
}


def _number(pipeline: Pipeline, stage: nodes.Stage) -> int:
    return next(number for number, one in enumerate(pipeline.stages) if one is stage)


def _fields_of(shape: Shape) -> Iterable[str]:
    return (f"It looks like `{_inline(shape, _DEPTH)}`.",) if _tells_more(shape) else ()


def _tells_more(shape: Shape) -> bool:
    """Whether anything is known of a value's inside."""
    depth = 0
    while shape.item is not None and depth < _DEPTH:
        shape, depth = shape.item(), depth + 1
    return bool(shape.fields())


def _inline(shape: Shape, depth: int) -> str:
    """A shape in one line; schemas may hold each other, so at some depth it is a word."""
    if depth == 0 or not _tells_more(shape):
        return shape.label or "…"
    if shape.item is not None:
        return f"[{_inline(shape.item(), depth - 1)}, …]"
    fields, most = shape.fields(), _MOST_FIELDS[depth]
    shown = [f"{name}: {_inline(inner, depth - 1)}" for name, inner in islice(fields.items(), most)]
    return f"{{{', '.join(shown)}{', …' if len(fields) > most else ''}}}"
