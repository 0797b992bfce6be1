"""How stages and directives fit together: HL403 to HL406."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.checks.walk import calls, inside, loop_condition
from halo_lang.diagnostics import Diagnostic, Fix, Related, error
from halo_lang.nodes import Arm, Declaration, Directive, LoopStage, Pipeline
from halo_lang.source import Span
from halo_lang.strings import Literal
from halo_lang.symbols import Kind, Scope

_PLAIN: Final = frozenset("\"'\\")
"""Characters that a string literal may have to escape."""


def directives(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL403: a directive where it does not apply, or twice."""
    if not isinstance(declaration, nodes.Agent | nodes.Pipeline):
        return
    target = "agent" if isinstance(declaration, nodes.Agent) else "pipeline"
    first: dict[str, Directive] = {}
    for directive in declaration.directives:
        name, place = directive.name.text, _head(directive)
        spec = catalog.directive(name)
        if spec is None:
            continue
        if target not in spec.applies_to:
            hint = f"it stands above {' and '.join(f'{kind}s' for kind in spec.applies_to)}"
            yield error("HL403", f"`@{name}` does not apply to {_a(target)}", place, hint=hint)
        elif name in first:
            related = (Related("the first", _head(first[name])),)
            same = scope.source(directive.span) == scope.source(first[name].span)
            fix = Fix(directive.span, "") if same else None
            yield error("HL403", f"`@{name}` is given twice", place, hint="remove one", related=related, fix=fix)
        first.setdefault(name, directive)


def else_arms(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL404: what stands behind an `else` is never looked at."""
    if isinstance(declaration, Pipeline):
        for stage in declaration.stages:
            if isinstance(stage, nodes.BranchStage):
                yield from _misplaced_else(stage.arms)


def loop_targets(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL405: a loop jumps back to a stage that calls its agent, so there must be one before it."""
    if not isinstance(declaration, Pipeline) or scope.broken:
        return
    called: set[str] = set()
    for stage in declaration.stages:
        if isinstance(stage, LoopStage) and stage.agent.text not in called:
            found = scope.lookup(stage.agent.text)
            if found is not None and found.kind is Kind.AGENT:
                message = f"no stage before this loop calls `{stage.agent.text}`"
                hint = "loop back to an agent that an earlier stage of this pipeline calls"
                yield error("HL405", message, stage.agent.span, hint=hint)
        called.update(call.callee.text for call in calls(stage))


def loop_conditions(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL406: a loop's condition is a string, and must be a condition."""
    if not isinstance(declaration, Pipeline):
        return
    for stage in declaration.stages:
        if isinstance(stage, LoopStage):
            flaw = loop_condition(stage.condition.value)
            if isinstance(flaw, Diagnostic):
                literal = Literal(scope.source(stage.condition.span))
                place = inside(literal, stage.condition.span, flaw.span)
                message = f"this loop's condition does not parse: {flaw.message}"
                yield error("HL406", message, place, hint=flaw.hint, fix=_written(flaw.fix, stage, literal))


def _written(fix: Fix | None, stage: LoopStage, literal: Literal) -> Fix | None:
    """The edit of a condition as an edit of the string that holds it; none that would need an escape there."""
    if fix is None or not _PLAIN.isdisjoint(fix.text):
        return None
    return Fix(inside(literal, stage.condition.span, fix.span), fix.text)


def _misplaced_else(arms: tuple[Arm, ...]) -> Iterator[Diagnostic]:
    for arm in arms[:-1]:
        if arm.condition is None:
            place = Span(arm.span.start, arm.span.start + len("else"))
            another = any(later.condition is None for later in arms if later.span.start > arm.span.start)
            message = "there are two `else` arms here" if another else "`else` must be the last arm"
            hint = "keep one, as the last arm" if another else "move it behind the other arms"
            yield error("HL404", message, place, hint=hint)
            return


def _head(directive: Directive) -> Span:
    return Span(directive.span.start, directive.name.span.end)


def _a(target: str) -> str:
    return f"an {target}" if target == "agent" else f"a {target}"
