"""What the output pane says: what a run printed, what streams, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halo_runtime.json_types import Json, JsonObject
from halo_tui.models.lines import Run, pretty, visible
from halo_tui.models.run import STATES, RunView
from halo_tui.models.wrapping import Section

MAX_SHOWN: Final = 50_000
"""Characters of one text that are shown; more would make the terminal slow, and nobody reads it there."""

MAX_LIVE: Final = 8
"""Replies shown while they stream; there may be hundreds side by side."""

MAX_WARNINGS: Final = 20
"""Warnings listed; the count says how many there are."""


def output_sections(run: RunView) -> Iterator[Section]:
    """The pane's text."""
    if run.status == "idle":
        yield Section("idle", None, lambda: [("The output of a run appears here.", "dim")])
        return
    head = tuple(_head(run))
    yield Section("head", head, lambda: head)
    yield from _printed(run)
    yield from _live(run)
    rest = (*_result(run), *_warnings(run))
    yield Section("rest", rest, lambda: rest)


def error_block(error: JsonObject) -> Iterator[Run]:
    """An error as it is shown everywhere: what kind, where, what happened."""
    yield f"\n{visible(str(error.get('type', 'Error')))}", "error"
    line = error.get("line")
    if line is not None:
        yield f"  {visible(str(error.get('stage') or ''))} at line {line}, column {error.get('column')}", "dim"
    yield f"\n{shown(str(error.get('message', '')))}\n", "text"


def shown(value: Json) -> str:
    """A value for reading, its head only when it is very long."""
    text = pretty(value)
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[:MAX_SHOWN]}\n… {len(text) - MAX_SHOWN:,} more characters"


def _head(run: RunView) -> Iterator[Run]:
    glyph, role = STATES[run.status]
    yield f"{glyph} {run.status}", role
    yield f"  {run.pipeline} {run.on}\n", "dim"
    yield "\n" if run.printed else "", "text"


def _printed(run: RunView) -> Iterator[Section]:
    first = run.printed_count - len(run.printed)
    for number, text in enumerate(run.printed, first):
        yield Section(("printed", number), text, lambda text=text: [("› ", "dim"), (f"{shown(text)}\n", "text")])


def _live(run: RunView) -> Iterator[Section]:
    """The replies that stream; of many the first ones, for the others get their turn as these end."""
    streaming = [call for call in run.calls.streaming if call.live is not None and call.live.total]
    for call in streaming[:MAX_LIVE]:
        label = call.label
        yield Section(("live", call.path), label, lambda label=label: [(f"\n▍ {label}\n", "busy")], call.live)
    more = len(streaming) - MAX_LIVE
    if more > 0:
        yield Section("more", more, lambda: [(f"\n… and {more:,} more\n", "dim")])


def _result(run: RunView) -> Iterator[Run]:
    if run.error is not None:
        yield from error_block(run.error)
    elif run.status in ("completed", "halted"):
        yield f"\n{shown(run.output)}\n", "text"
    elif run.status == "replay":
        yield f"\n{shown(run.current)}\n", "text"
    elif run.open_questions:
        yield "\nF4", "accent"
        yield f" opens {'the question' if len(run.open_questions) == 1 else 'the questions'}.\n", "dim"


def _warnings(run: RunView) -> Iterator[Run]:
    if run.warnings:
        yield "\n", "text"
    for warning in run.warnings[:MAX_WARNINGS]:
        yield "▲ ", "warning"
        yield f"{visible(warning)}\n", "text"
    if len(run.warnings) > MAX_WARNINGS:
        yield f"… {len(run.warnings) - MAX_WARNINGS} more warnings\n", "dim"
