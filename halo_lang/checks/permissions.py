"""What may be used where: equipped tools (HL401), secrets in tool and store declarations only (HL402, HL407)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from halo_lang import nodes
from halo_lang.checks.references import is_agent_call, tool_names
from halo_lang.checks.walk import calls, conditions, loop_operands, operands, written_values
from halo_lang.diagnostics import Diagnostic, error
from halo_lang.nodes import Agent, Call, Declaration, Name
from halo_lang.source import Span
from halo_lang.symbols import Kind, Scope

_NAME: Final = re.compile(r"[^\W\d]\w*")
_ENV_TEXT: Final = re.compile(r"Env\.\S*")
_PLAIN: Final = "write a plain name such as `Env.API_KEY`: letters, digits and `_`"


def equipment(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL401: an agent uses the tools that it equips, and no others (seed 003 §2)."""
    match declaration:
        case nodes.Agent():
            yield from _unequipped_settings(declaration, scope)
        case nodes.Pipeline():
            for stage in declaration.stages:
                for call in calls(stage):
                    yield from _unequipped_arguments(call, scope)
        case _:
            return


def environment(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL402 and HL407: `Env.NAME`, bare or as a whole string, with a plain name and only where a tool is declared."""
    if "Env" not in scope.text:
        return
    if isinstance(declaration, nodes.Provider):
        yield from _ill_named(declaration)
        return
    yield from _env_callees(declaration)
    for value in written_values(declaration):
        if _is_env(value):
            yield _misplaced(value.span)
    if isinstance(declaration, nodes.Pipeline):
        yield from (_misplaced(span) for span in _env_in_conditions(declaration, scope))


def _unequipped_settings(agent: Agent, scope: Scope) -> Iterator[Diagnostic]:
    equipped = {name.text for name in agent.names("equips")}
    for name in tool_names(agent.config):
        found = scope.lookup(name.text)
        if found is not None and found.kind is Kind.TOOL and name.text not in equipped:
            yield _unequipped(agent.name.text, name)


def _unequipped_arguments(call: Call, scope: Scope) -> Iterator[Diagnostic]:
    names = list(tool_names(call.args))
    if not names or not is_agent_call(call, scope):
        return
    agent = scope.lookup(call.callee.text)
    for name in names:
        found = scope.lookup(name.text)
        known = found is not None and found.kind in (Kind.TOOL, Kind.UNKNOWN)
        if agent is not None and known and name.text not in agent.equips:
            yield _unequipped(call.callee.text, name)


def _unequipped(agent: str, name: Name) -> Diagnostic:
    hint = f"add `equips {name.text}` to agent {agent}, or leave it out here"
    return error("HL401", f"agent {agent} does not equip `{name.text}`", name.span, hint=hint)


def _ill_named(node: nodes.Provider) -> Iterator[Diagnostic]:
    for value in written_values(node):
        match value:
            case nodes.Path() if value.root == "Env" and len(value.parts) != 2:
                yield error("HL407", "`Env` takes one name", value.span, hint=_PLAIN)
            case nodes.Path() if value.root == "Env" and not _NAME.fullmatch(value.parts[1].text):
                yield error("HL407", f"`{value.parts[1].text}` is no name of a variable", value.span, hint=_PLAIN)
            case nodes.String(text) if _ENV_TEXT.fullmatch(text) and not _NAME.fullmatch(text[4:]):
                yield error("HL407", f"`{text[4:]}` is no plain name of a variable", value.span, hint=_PLAIN)
            case _:
                pass


def _is_env(value: object) -> bool:
    if isinstance(value, nodes.Path):
        return value.root == "Env"
    return isinstance(value, nodes.String) and value.value.startswith("Env.") and bool(_NAME.fullmatch(value.value[4:]))


def _env_callees(declaration: Declaration) -> Iterator[Diagnostic]:
    if isinstance(declaration, nodes.Pipeline):
        for stage in declaration.stages:
            names = [call.callee for call in calls(stage)]
            names += [stage.source] if isinstance(stage, nodes.ListenStage) else []
            yield from (_misplaced(name.span) for name in names if name.text == "Env")


def _env_in_conditions(node: nodes.Pipeline, scope: Scope) -> Iterator[Span]:
    for stage in node.stages:
        for condition in conditions(stage):
            yield from (operand.span for operand in operands(condition) if _is_env(operand))
        if isinstance(stage, nodes.LoopStage):
            yield from (span for operand, span in loop_operands(stage, scope) if _is_env(operand))


def _misplaced(span: Span) -> Diagnostic:
    return error(
        "HL402",
        "`Env` can be read in tool and store declarations only, so that secrets cannot reach a prompt",
        span,
        hint='give the variable to a tool, for example `tool Api : REST("…", apiKey: Env.API_KEY)`',
    )
