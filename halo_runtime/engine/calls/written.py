"""Which texts of an agent call the program's author wrote: rules that look for what others put in leave them alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from halo_runtime.engine.calls.request import DEFAULT_MAX_STEPS, Settings, first_messages, parameters_of, system_of
from halo_runtime.engine.expressions import Expression, Segments
from halo_runtime.json_types import Json
from halo_runtime.prompts import DEFAULT_TOOL_RESULT_CHARS, StoreMatches, ToolResult
from halo_runtime.values import text_of

if TYPE_CHECKING:
    from halo_runtime.engine.calls.agent import AgentCall

_HOLE: Final = "\ufdd0"
"""What stands for a value that the author did not write; no character of any text."""


class _Unfilled:
    """A scope in which every value is a hole."""

    current: Json = _HOLE

    def read(self, segments: Segments) -> Json:
        return _HOLE


def written_texts(call: AgentCall) -> tuple[str, ...]:
    """The author's texts between the values that are filled in: system prompt, heads, instructions, parameters.

    They are cut from the prompt as it is made, so they stand in every request of the call letter by letter. As a
    section without a value is left out, the paragraphs of each are there too.
    """
    scope = _Unfilled()
    settings = Settings(system_of(call, scope), None, None, None, DEFAULT_MAX_STEPS, DEFAULT_TOOL_RESULT_CHARS)
    result = None if call.first_tool is None else ToolResult(f"{call.first_tool.tool}.{call.method}", _HOLE)
    contexts = tuple(StoreMatches(library.store, (_HOLE,)) for library in call.libraries)
    messages = first_messages(call, scope, settings, parameters_of(call, scope), result, contexts=contexts)
    return tuple(chain.from_iterable(_between_holes(message.content) for message in messages))


def written_in(prompt: Expression) -> tuple[str, ...]:
    """The author's texts of a system prompt."""
    return tuple(_between_holes(text_of(prompt.evaluate(_Unfilled()))))


def _between_holes(text: str) -> Iterator[str]:
    parts = text.split(_HOLE)
    paragraphs = chain.from_iterable(part.split("\n\n") for part in parts if "\n\n" in part)
    return (part for part in (*parts, *paragraphs) if any(map(str.isalpha, part)))
