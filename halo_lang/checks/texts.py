"""Inside string literals: placeholders (HL501) and escapes (HL502)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halo_lang import nodes
from halo_lang.checks.reach import NAMESPACES, Reach, reach_of
from halo_lang.checks.walk import arguments, conditions, inside, leaves, operands, written_values
from halo_lang.diagnostics import Diagnostic, Fix, Severity
from halo_lang.nodes import Agent, Declaration, Pipeline, Stage, String
from halo_lang.placeholders import placeholders as placeholders_of
from halo_lang.source import Span
from halo_lang.spelling import Guess, nearest
from halo_lang.strings import Literal
from halo_lang.symbols import Scope, system_prompt


def placeholders(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL501: a `{{…}}` that stays as it is written, whatever the run does."""
    if "{{" not in scope.text:
        return
    if isinstance(declaration, Pipeline):
        yield from _in_pipeline(declaration, scope)
        return
    # A system prompt is filled where its agent is called, so only what never resolves is known here; see prompts.py.
    prompt = system_prompt(declaration) if isinstance(declaration, Agent) else None
    for value in written_values(declaration):
        if isinstance(value, String):
            for path, span in written_placeholders(value, scope.text):
                if path[0] == "Env":
                    yield unresolved(path, span, _NO_ENV)
                elif value is prompt and (flaw := _namespace_flaw(path)) is not None:
                    yield unresolved(path, span, *flaw)


def escapes(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    r"""HL502: a backslash that begins no escape stays, which is seldom what was meant."""
    if "\\" not in scope.text:
        return
    for text in _strings(declaration):
        raw = scope.source(text.span)
        if "\\" not in raw:
            continue
        for offset in Literal(raw).unknown_escapes:
            span = Span(text.span.start + offset, text.span.start + offset + 1)
            escape = raw[offset : offset + 2]
            message = f"`{escape}` is no escape; the backslash stays in the text"
            hint = r"write `\\` for a backslash, or use a '…' string; escapes are \" \\ \n \t"
            yield Diagnostic("HL502", Severity.WARNING, message, span, hint, fix=Fix(span, r"\\"))


_NO_ENV: Final = "`Env` is never filled in, so that secrets cannot reach a prompt"


def _in_pipeline(pipeline: Pipeline, scope: Scope) -> Iterator[Diagnostic]:
    reach = reach_of(pipeline, scope)
    start = leaves((pipeline.start,)) if pipeline.start is not None else ()
    for text in start:
        if isinstance(text, String):
            yield from _unresolved_in(text, reach, 0, frozenset(), scope)
    for number, stage in enumerate(pipeline.stages):
        for text, local in stage_texts(stage):
            yield from _unresolved_in(text, reach, number, local, scope)


def stage_texts(stage: Stage) -> Iterator[tuple[String, frozenset[str]]]:
    """The template strings of a stage, each with the names that only exist there."""
    if isinstance(stage, nodes.EachStage):
        own = frozenset((stage.item.text, "index"))
        yield from ((text, frozenset[str]()) for text in leaves((stage.source,)) if isinstance(text, String))
        for argument in stage.call.args:
            yield from ((text, own) for text in leaves((argument.value,)) if isinstance(text, String))
        return
    for argument in arguments(stage):
        yield from ((text, frozenset[str]()) for text in leaves((argument.value,)) if isinstance(text, String))


def _unresolved_in(text: String, reach: Reach, stage: int, local: frozenset[str], scope: Scope) -> Iterator[Diagnostic]:
    for path, span in written_placeholders(text, scope.text):
        if path[0] == "Env":
            yield unresolved(path, span, _NO_ENV)
        elif path[0] == "context":
            if (flaw := _context_flaw(path, reach, stage, scope)) is not None:
                yield unresolved(path, span, *flaw)
        elif path[0] not in local and path[0] != "current" and not reach.resolves(path, stage) and not scope.broken:
            yield unresolved(path, span, _UNKNOWN, reach.nearest_path(path, stage))


_UNKNOWN: Final = "name a parameter, a result of an earlier stage, `current` or `context.…`"


def _context_flaw(path: tuple[str, ...], reach: Reach, stage: int, scope: Scope) -> tuple[str, Guess | None] | None:
    """Why a path below `context` leads nowhere, and the path that was probably meant."""
    if (flaw := _namespace_flaw(path)) is not None:
        return flaw
    if len(path) > 2 and path[1] == "input" and path[2] not in reach.parameters:
        guess = nearest(path[2], reach.parameters)
        return "`context.input` has the pipeline's parameters", guess and guess.within(path, 2)
    if len(path) > 2 and path[1] == "data" and not scope.broken and not reach.is_produced(path[2:], stage):
        guess = reach.nearest_result(path[2:], stage)
        return "no earlier stage can have produced it", guess and guess.within(path[:3], 2)
    return None


def _namespace_flaw(path: tuple[str, ...]) -> tuple[str, Guess | None] | None:
    if len(path) < 2 or path[0] != "context" or path[1] in NAMESPACES:
        return None
    guess = nearest(path[1], NAMESPACES)
    return f"`context` has {', '.join(sorted(NAMESPACES))}", guess and guess.within(path, 1)


def unresolved(path: tuple[str, ...], span: Span, hint: str, meant: Guess | None = None) -> Diagnostic:
    """HL501 at the place of a placeholder."""
    message = f"`{{{{{'.'.join(path)}}}}}` resolves to nothing here and stays as it is written"
    hint = f"did you mean `{meant.name}`?" if meant is not None else hint
    fix = Fix(span, f"{{{{{meant.name}}}}}") if meant is not None and meant.certain else None
    return Diagnostic("HL501", Severity.WARNING, message, span, hint, fix=fix)


def written_placeholders(text: String, source: str) -> Iterator[tuple[tuple[str, ...], Span]]:
    """The paths of a string's placeholders, each with the placeholder's place in `source`, where the string stands."""
    if "{{" not in text.value:
        return
    literal = Literal(source[text.span.start : text.span.end])
    for found in placeholders_of(text.value):
        yield found.segments, inside(literal, text.span, Span(found.start, found.end))


def _strings(declaration: Declaration) -> Iterator[String]:
    yield from (value for value in written_values(declaration) if isinstance(value, String))
    if isinstance(declaration, Pipeline):
        for stage in declaration.stages:
            for condition in conditions(stage):
                yield from (operand for operand in operands(condition) if isinstance(operand, String))
