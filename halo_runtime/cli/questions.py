"""What a question looks like on a terminal, and what a typed line means as its answer. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from halo_lang.excerpt import visible
from halo_runtime.cli.answers import typed_value
from halo_runtime.cli.narration import elapsed
from halo_runtime.json_types import MISSING, Json, JsonObject, is_object
from halo_runtime.results import Interrupt
from halo_runtime.runtime import PAUSE, Pause
from halo_runtime.values import text_of

LATER = "later"
"""What a person types to leave a question open; the text itself is answered as `"later"`."""

MAX_ATTACHMENT_LINES = 60
"""Lines of an attached text that are shown."""

_OPEN_LATER = f"{LATER} to leave the question open"


class UnclearAnswerError(ValueError):
    """A typed line that answers nothing; the text says what to type."""


def question_text(interrupt: Interrupt, bold: Callable[[str], str] = str) -> str:
    """Everything a person needs to answer but the time left: message, attachments, choices, what may be typed."""
    message = visible(interrupt.message, keep="\t\n")
    if interrupt.kind == "listen":
        message = f"waiting for {visible(interrupt.event or 'an event')}: its payload"
    lines = ["", bold(f"? {message}")]
    if interrupt.channel is not None:
        lines.append(f"  channel {visible(interrupt.channel)}")
    for attachment in interrupt.attachments:
        lines += _attachment(attachment)
    if interrupt.choices and interrupt.kind != "in_doubt":
        lines.append(f"  the program checks for: {_choices(interrupt)}")
    if interrupt.former is not MISSING:
        lines.append(f"  answered before: {visible(text_of(interrupt.former))}")
    return "\n".join([*lines, f"  {_what_to_type(interrupt)}"])


def countdown(interrupt: Interrupt, now: datetime) -> str | None:
    """The line that tells how long the question can be answered; None where that has no end."""
    if interrupt.expires_at is None:
        return None
    left = (datetime.fromisoformat(interrupt.expires_at) - now).total_seconds()
    return f"  expires in {elapsed(max(0.0, left))}"


def meant(interrupt: Interrupt, line: str) -> Json | Pause:
    """The answer that a typed line is; PAUSE for `later`. Raises UnclearAnswerError where it is none."""
    text = line.strip()
    if text == LATER:
        return PAUSE
    if not text:
        if interrupt.former is not MISSING:
            return interrupt.former
        raise UnclearAnswerError(f'an empty text is typed as "", {LATER} leaves the question open')
    value = typed_value(text, interrupt.choices)
    if interrupt.kind == "in_doubt" and value not in ("retry", "fail") and not (is_object(value) and "skip" in value):
        raise UnclearAnswerError(_what_to_type(interrupt))
    return value


def open_question(interrupt: Interrupt) -> str:
    """For the list of what a paused run waits for: the question, and what the program checks for."""
    what = f"waits for {interrupt.event}" if interrupt.kind == "listen" else f"asks: {interrupt.message}"
    shown = visible(what, keep="\t\n").replace("\n", "\n    ")
    choices = f"\n    the program checks for: {_choices(interrupt)}" if interrupt.choices else ""
    return f"  {visible(interrupt.stage)} {shown}{choices}"


def _what_to_type(interrupt: Interrupt) -> str:
    if interrupt.kind == "in_doubt":
        return f'type retry, fail or {{"skip": value}}, or {_OPEN_LATER}'
    if interrupt.former is not MISSING:
        return f"Enter gives the same answer; or type another one (text or JSON), or {_OPEN_LATER}"
    return f"type an answer (text or JSON), or {_OPEN_LATER}"


def _choices(interrupt: Interrupt) -> str:
    return ", ".join(visible(text_of(choice)) for choice in interrupt.choices)


def _attachment(attachment: JsonObject) -> list[str]:
    name = visible(str(attachment.get("name") or "attachment"))
    if attachment.get("kind") == "file":
        return [f"  file: {visible(str(attachment.get('path')))}"]
    lines = visible(text_of(attachment.get("text")), keep="\t\n").splitlines()
    more = [f"  | ({len(lines) - MAX_ATTACHMENT_LINES} more lines)"] if len(lines) > MAX_ATTACHMENT_LINES else []
    return [f"  {name}:", *(f"  | {line}" for line in lines[:MAX_ATTACHMENT_LINES]), *more]
