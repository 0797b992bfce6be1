"""Names said twice in one place (HL205), and names that hide others (HL206)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from halo_lang import nodes
from halo_lang.checks.walk import bindings, item_keys
from halo_lang.diagnostics import Diagnostic, Related, error
from halo_lang.nodes import Declaration, FanOutStage, Name, Pipeline
from halo_lang.source import Span
from halo_lang.symbols import Kind, Scope


def repeated_fields(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL205: parameters of a pipeline, fields of a schema. (Arguments: see `arguments`.)"""
    match declaration:
        case nodes.Pipeline():
            yield from _twice((field.name for field in declaration.params), "the parameter")
        case nodes.Schema():
            yield from _twice((field.name for field in declaration.fields), "the field")
        case _:
            return


def repeated_keys(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL205: a fan-out's result is an object with one key an item."""
    if isinstance(declaration, Pipeline):
        for stage in declaration.stages:
            if isinstance(stage, FanOutStage):
                yield from _repeated_keys(stage)


def repeated_prompts(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL205: an agent has one system prompt, of several only the last would count."""
    if isinstance(declaration, nodes.Agent):
        prompts = [one for one in declaration.modifiers if isinstance(one, nodes.SystemModifier)]
        for prompt in prompts[1:]:
            related = (Related("the first", _keyword(prompts[0])),)
            yield error("HL205", "`system` is given twice", _keyword(prompt), hint="join the two", related=related)


def hiding_names(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL206: an `as` or `each` name, or the `index` of an each, that means something else already."""
    if not isinstance(declaration, Pipeline):
        return
    parameters = {parameter.name.text: parameter.name for parameter in declaration.params}
    for name, text in _bound(declaration.stages):
        if name.text == text == "index" and _is_item(name, declaration):
            yield error("HL206", "`index` hides the item's number", name.span, hint="choose another name")
        elif text in parameters:
            related = (Related("the parameter", parameters[text].span),)
            yield _hiding(name, text, "a parameter", related)
        elif (found := scope.lookup(text)) is not None and found.kind is not Kind.UNKNOWN:
            yield _hiding(name, text, "a declaration", ())


def _is_item(name: Name, pipeline: Pipeline) -> bool:
    return any(isinstance(stage, nodes.EachStage) and stage.item is name for stage in pipeline.stages)


def _bound(stages: Iterable[nodes.Stage]) -> Iterator[tuple[Name, str]]:
    """Names that stages bring in; `index`, told once, stands where the each that brings it has its own name."""
    indexed = False
    for stage in stages:
        if isinstance(stage, nodes.EachStage):
            yield stage.item, stage.item.text
            if not indexed and stage.item.text != "index":
                yield stage.item, "index"
            indexed = True
        for name in bindings(stage):
            yield name, name.text


def _hiding(name: Name, text: str, what: str, related: tuple[Related, ...]) -> Diagnostic:
    if text != name.text:
        message = f"`{text}`, which every each brings along, hides {what} of that name"
        return error("HL206", message, name.span, hint=f"rename {what} `{text}`", related=related)
    message = f"`{text}` hides {what} of that name"
    return error("HL206", message, name.span, hint="choose another name", related=related)


def _keyword(prompt: nodes.SystemModifier) -> Span:
    return Span(prompt.span.start, prompt.span.start + len("system"))


def _twice(names: Iterable[Name], what: str) -> Iterator[Diagnostic]:
    first: dict[str, Name] = {}
    for name in names:
        if name.text in first:
            related = (Related("first here", first[name.text].span),)
            yield error("HL205", f"{what} `{name.text}` is given twice", name.span, hint="remove one", related=related)
        else:
            first[name.text] = name


def _repeated_keys(stage: FanOutStage) -> Iterator[Diagnostic]:
    first: dict[str, Span] = {}
    for item, key in zip(stage.items, item_keys(stage), strict=True):
        place = item.binding.span if item.binding is not None else item.call.callee.span
        if key not in first:
            first[key] = place
            continue
        message = f"two items of this block give their result the key `{key}`"
        related = (Related("the first", first[key]),)
        yield error("HL205", message, place, hint="name the results apart with `as`", related=related)
