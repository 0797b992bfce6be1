"""The prompt of an agent call, made by one pure function so that it can be shown before anything is sent (spec 2.5).

The user message is a row of sections with one blank line between, empty ones left out (spec 12.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from itertools import pairwise

from halo_lang.records import record
from halo_runtime.json_types import Json
from halo_runtime.models.base import Message
from halo_runtime.values import text_of

DEFAULT_TOOL_RESULT_CHARS = 20_000


@record
class ToolResult:
    """What `tool: Repo` brought: `label` is `Repo.get_issue`; longer texts than `limit` code points are cut."""

    label: str
    value: Json
    limit: int = DEFAULT_TOOL_RESULT_CHARS


@record
class StoreMatches:
    """What a store adds by itself: `label` is the store's name, `entries` its closest matches."""

    label: str
    entries: tuple[Json, ...]


@record
class PromptCall:
    """All that a prompt is made of. Strings are filled in already.

    `had_placeholders` tells whether any instruction held a `{{…}}` before filling: such a call says itself where its
    input goes, so the flowing value is not added.
    """

    method: str
    flowing: Json
    system: str | None = None
    instructions: tuple[str, ...] = ()
    had_placeholders: bool = False
    parameters: Mapping[str, Json] = field(default_factory=dict[str, Json])
    inputs: tuple[Json, ...] = ()
    tool_result: ToolResult | None = None
    contexts: tuple[StoreMatches, ...] = ()
    history: tuple[Message, ...] = ()


def build_prompt(call: PromptCall) -> tuple[Message, ...]:
    """System message (where there is one), the turns of the history, user message."""
    user = Message("user", "\n\n".join(_sections(call)))
    system = (Message("system", call.system),) if call.system else ()
    return (*system, *call.history, user)


def task_line(method: str) -> str:
    """A method's name as words: `extract_facts` and `extractFacts` are both "extract facts"."""
    return _words(method) or method


def cut(text: str, limit: int) -> str:
    """The first `limit` code points of a text, with a mark that says how much is gone where some is."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… {len(text) - limit:,} more characters cut]"


def _sections(call: PromptCall) -> list[str]:
    parameters = [f"- {name}: {text_of(value)}" for name, value in call.parameters.items()]
    sections = [
        f"Task: {task_line(call.method)}",
        _section("Instructions", call.instructions),
        _section("Parameters", parameters),
        _section("Input", [text_of(value) for value in _inputs(call)]),
    ]
    if call.tool_result is not None:
        result = call.tool_result
        sections.append(_section(f"Tool result ({result.label})", [cut(text_of(result.value), result.limit)]))
    for store in call.contexts:
        sections.append(_section(f"Context ({store.label})", [text_of(entry) for entry in store.entries]))
    return [section for section in sections if section]


def _section(head: str, lines: list[str] | tuple[str, ...]) -> str:
    text = "\n".join(lines)
    return f"{head}:\n{text}" if text else ""


def _inputs(call: PromptCall) -> tuple[Json, ...]:
    if call.inputs or call.had_placeholders:
        return call.inputs
    return (call.flowing,)


@lru_cache(maxsize=1024)
def _words(method: str) -> str:
    spaced = method[:1]
    for before, letter in pairwise(method):
        spaced += f" {letter}" if letter.isupper() and not before.isupper() else letter
    return " ".join(spaced.replace("_", " ").lower().split())
