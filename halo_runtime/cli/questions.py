"""What a question looks like on a terminal, and what a typed line means as its answer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from halo_lang.excerpt import visible
from halo_runtime.cli.answers import typed_value
from halo_runtime.cli.narration import elapsed
from halo_runtime.json_types import MISSING, Json, JsonObject, is_object
from halo_runtime.results import Interrupt, choices_label
from halo_runtime.runtime import PAUSE, Pause
from halo_runtime.values import text_of

LATER = "later"
"""What a person types to leave a question open; the text itself is answered as `"later"`."""

MAX_ATTACHMENT_LINES = 60
"""Lines of an attached text that are shown."""

MAX_ATTACHMENT_LINE = 100
"""Characters of an attached text that are shown in a list of questions."""

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
    if interrupt.choices and interrupt.how is None:
        lines.append(f"  {choices_line(interrupt.kind, interrupt.choices)}")
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
    value = interrupt.meant(typed_value(text, interrupt.choices))
    if not interrupt.takes(value):
        raise UnclearAnswerError(_what_to_type(interrupt))
    return value


def open_question(interrupt: Interrupt) -> str:
    """For the list of what a paused run waits for: the question, and which answers mean something."""
    what = f"waits for {interrupt.event}" if interrupt.kind == "listen" else f"asks: {interrupt.message}"
    shown = visible(what, keep="\t\n").replace("\n", "\n    ")
    about = [attachment_line(attachment) for attachment in interrupt.attachments]
    about += [choices_line(interrupt.kind, interrupt.choices)] if interrupt.choices else []
    return "\n    ".join([f"  {visible(interrupt.stage)} {shown}", *about])


def _what_to_type(interrupt: Interrupt) -> str:
    if interrupt.kind == "in_doubt":
        return f'type retry, fail or {{"skip": value}}, or {_OPEN_LATER}'
    if interrupt.kind == "limit":
        return f"type how much to add, such as {_suggested(interrupt)}, or stop, or {_OPEN_LATER}"
    if interrupt.kind == "approve":
        return f"type approve or yes; any other answer refuses; or {_OPEN_LATER}"
    if interrupt.former is not MISSING:
        return f"Enter gives the same answer; or type another one (text or JSON), or {_OPEN_LATER}"
    return f"type an answer (text or JSON), or {_OPEN_LATER}"


def choices_line(kind: str, choices: Iterable[Json]) -> str:
    """The answers that mean something: those that the program looks for, or that Halo itself does."""
    return f"{choices_label(kind)}: {', '.join(visible(text_of(choice)) for choice in choices)}"


def attachment_line(attachment: JsonObject) -> str:
    """The beginning of what is attached, which may be all that tells one question from another."""
    name, kind = visible(str(attachment.get("name") or "attachment")), attachment.get("kind")
    if kind == "file":
        return f"file: {visible(str(attachment.get('path')))}"
    text = visible(" ".join(text_of(attachment.get("text")).split()))
    return f"{name}: {text if len(text) <= MAX_ATTACHMENT_LINE else text[: MAX_ATTACHMENT_LINE - 1] + '…'}"


def _suggested(interrupt: Interrupt) -> str:
    amounts = (choice["add"] for choice in interrupt.choices if is_object(choice) and "add" in choice)
    return next(map(text_of, amounts), "1")


def _attachment(attachment: JsonObject) -> list[str]:
    name = visible(str(attachment.get("name") or "attachment"))
    if attachment.get("kind") == "file":
        return [f"  file: {visible(str(attachment.get('path')))}"]
    lines = visible(text_of(attachment.get("text")), keep="\t\n").splitlines()
    more = [f"  | ({len(lines) - MAX_ATTACHMENT_LINES} more lines)"] if len(lines) > MAX_ATTACHMENT_LINES else []
    return [f"  {name}:", *(f"  | {line}" for line in lines[:MAX_ATTACHMENT_LINES]), *more]
