"""What the call pane says: what was sent to the model, what came back, and what it cost (spec 9.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from halo_runtime.json_types import JsonObject
from halo_runtime.values import parse_json
from halo_tui.models.calls import Call
from halo_tui.models.lines import Run, counted, duration, money, one_line, pretty
from halo_tui.models.output import MAX_SHOWN, shown
from halo_tui.models.wrapping import Section

_PLACEHOLDER: Final = re.compile(r"\[[A-Z][A-Z_]*_[1-9][0-9]*\]|\[REDACTED\]")

EMPTY: Sequence[Section] = (
    Section("empty", None, lambda: [("What a stage sent to its model appears here; choose one in Stages.", "dim")]),
)


def call_sections(calls: Sequence[Call]) -> Iterator[Section]:
    """The last of the calls of a stage, or that there is none."""
    if not calls:
        yield from EMPTY
        return
    call = calls[-1]
    head = tuple(_head(call, len(calls)))
    yield Section((call.path, "head"), head, lambda: head)
    for number, message in enumerate(call.messages):
        yield Section((call.path, number), message, lambda message=message: _message(message))
    notes = tuple(call.notes)
    if notes:
        yield Section((call.path, "notes"), notes, lambda: [("\n", "text"), *_lines(notes)])
    yield from _reply(call)


def _head(call: Call, count: int) -> Iterator[Run]:
    yield one_line(call.label, 60), "title"
    yield f"  {one_line(call.model, 80)}", "dim"
    if call.live is not None:
        yield "  ◐ running", "busy"
    elif call.error:
        yield "  ✗ failed", "error"
    yield "  reused" if call.reused else "", "ok"
    figures = [counted(call.requests, "request")]
    figures += [counted(call.tokens, "token")] if call.tokens else []
    figures += ["cost unknown"] if call.cost is None else [money(call.cost)] if call.cost else []
    figures += [duration(call.milliseconds / 1000)] if call.milliseconds else []
    yield f"\n{' · '.join(figures)}\n", "dim"
    if count > 1:
        yield f"the last of {counted(count, 'call')} of this stage\n", "dim"


def _message(message: JsonObject) -> Iterator[Run]:
    role = str(message.get("role", ""))
    yield f"\n{one_line(role, 20)}\n", "accent"
    content = message.get("content", "")
    if content:
        yield from marked(f"{shown(content)}\n")
    for call in message.get("tool_calls") or ():
        yield f"→ {one_line(str(call.get('name', '')), 80)} ", "accent"
        yield from marked(f"{shown(call.get('arguments', ''))}\n")


def marked(text: str) -> Iterator[Run]:
    """A text in which what stands for redacted values can be told from the rest."""
    at = 0
    for found in _PLACEHOLDER.finditer(text):
        yield text[at : found.start()], "text"
        yield found[0], "warning"
        at = found.end()
    yield text[at:], "text"


def _lines(notes: Sequence[Run]) -> Iterator[Run]:
    return ((f"{text}\n", role) for text, role in notes)


def _reply(call: Call) -> Iterator[Section]:
    if call.live is not None:
        yield Section((call.path, "live"), call.requests, lambda: [("\nreply so far\n", "busy")], call.live)
        return
    if call.error:
        yield Section((call.path, "error"), call.error, lambda: [("\nerror\n", "error"), (shown(call.error), "text")])
    if call.reply:
        reply = call.reply
        yield Section((call.path, "reply"), reply, lambda: [("\nreply\n", "accent"), *marked(shown(reply))])
        yield Section((call.path, "parsed"), reply, lambda: _parsed(reply))


def _parsed(reply: str) -> Iterator[Run]:
    """A reply that is JSON as data."""
    if len(reply) > MAX_SHOWN or not reply.lstrip().startswith(("{", "[")):
        return
    try:
        value = parse_json(reply)
    except ValueError:
        return
    yield "\nas data\n", "accent"
    yield pretty(value), "text"
