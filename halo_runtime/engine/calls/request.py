"""What an agent call sends, from the values that it reads (spec 2.5).

Pure functions: the engine sends what they make, and `preview` shows it without sending anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from halo_lang.records import record
from halo_runtime.engine.expressions import Scope
from halo_runtime.errors import RunError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import Message, ModelRequest
from halo_runtime.prompts import DEFAULT_TOOL_RESULT_CHARS, PromptCall, StoreMatches, ToolResult, build_prompt
from halo_runtime.values import text_of

if TYPE_CHECKING:
    from halo_runtime.engine.calls.agent import AgentCall

DEFAULT_MAX_STEPS = 8


@record
class Settings:
    """A call's settings, those of the call before those of the agent; None leaves one to the service."""

    system: str | None
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    max_steps: int
    tool_result_chars: int


def settings_of(call: AgentCall, scope: Scope) -> Settings:
    """The settings with their values. Raises RunError for one that is not of its kind."""
    values = {name: expression.evaluate(scope) for name, expression in call.settings.items() if name != "system"}
    return Settings(
        system=system_of(call, scope),
        temperature=_number(call.label, "temperature", values),
        top_p=_number(call.label, "top_p", values),
        max_tokens=_whole(call.label, "max_tokens", values),
        max_steps=_whole(call.label, "max_steps", values) or DEFAULT_MAX_STEPS,
        tool_result_chars=_whole(call.label, "tool_result_chars", values) or DEFAULT_TOOL_RESULT_CHARS,
    )


def system_of(call: AgentCall, scope: Scope) -> str | None:
    """The system prompt, the call's before the agent's."""
    own = call.settings.get("system")
    system = None if own is None else own.evaluate(scope)
    if system is None and call.agent.system is not None:
        system = call.agent.system.evaluate(scope)
    return None if system is None else text_of(system)


def parameters_of(call: AgentCall, scope: Scope) -> JsonObject:
    """The named arguments that are no settings, by name."""
    return {name: expression.evaluate(scope) for name, expression in call.parameters.items()}


def first_messages(
    call: AgentCall,
    scope: Scope,
    settings: Settings,
    parameters: JsonObject,
    tool_result: ToolResult | None,
    history: tuple[Message, ...] = (),
    contexts: tuple[StoreMatches, ...] = (),
) -> tuple[Message, ...]:
    """The messages of the call's first request; `tool_result` is what `tool:` brought. The last one is the user's."""
    return build_prompt(
        PromptCall(
            method=call.method,
            flowing=scope.current,
            system=settings.system,
            instructions=tuple(text_of(expression.evaluate(scope)) for expression in call.instructions),
            had_placeholders=call.had_placeholders,
            parameters=parameters,
            inputs=tuple(expression.evaluate(scope) for expression in call.inputs),
            tool_result=tool_result,
            contexts=contexts,
            history=history,
        )
    )


def model_request(call: AgentCall, model: str, settings: Settings, messages: tuple[Message, ...]) -> ModelRequest:
    """One request of a call, to whichever model answers."""
    return ModelRequest(
        model=model,
        agent=call.agent.name,
        method=call.method,
        messages=messages,
        temperature=settings.temperature,
        top_p=settings.top_p,
        max_tokens=settings.max_tokens,
        tools=tuple(function.spec for function in call.functions),
        json_schema=call.schema,
    )


def _number(label: str, name: str, values: Mapping[str, Json]) -> float | None:
    value = values.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise RunError(f"{label}: {name} must be a number, not {text_of(value)}")
    return value


def _whole(label: str, name: str, values: Mapping[str, Json]) -> int | None:
    value = _number(label, name, values)
    if value is not None and (value < 1 or value != int(value)):
        raise RunError(f"{label}: {name} must be a whole number of at least 1, not {text_of(value)}")
    return None if value is None else int(value)
