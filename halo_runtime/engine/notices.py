"""Questions sent to people, where `channel:` of a question names a tool that can tell them (spec 2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halo_runtime.errors import HaloError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.values import text_of

if TYPE_CHECKING:
    from halo_runtime.engine.frame import Frame
    from halo_runtime.results import Interrupt

SUBJECT_LENGTH = 120


async def announce(frame: Frame, path: str, interrupt: Interrupt) -> None:
    """Tell people of a question, once however often the run goes on. What fails is a warning: the run still waits."""
    run, tool = frame.run, interrupt.channel
    if tool is None or not run.tools.notifies(tool):
        return
    place = f"{path}/notified"
    # Without the ids of the run, which a fork and a cassette's replay have anew.
    request: JsonObject = {"tool": tool, "method": "notify", "args": {"message": interrupt.message}}

    async def live() -> Json:
        await run.tools.notify(tool, subject_of(interrupt), text_for_people(interrupt))
        return True

    try:
        await run.effects.perform(place, "tool", request, lambda: run.exchange(place, "tool", lambda: request, live))
    except HaloError as error:
        run.warn(frame, f"nobody was told of the question by {tool}: {error.message}")


def subject_of(interrupt: Interrupt) -> str:
    """One line that says what is asked."""
    line = " ".join(interrupt.message.split()) or interrupt.stage
    return f"Halo asks: {line}"[:SUBJECT_LENGTH]


def text_for_people(interrupt: Interrupt) -> str:
    """The question, what can be answered, until when, and how."""
    attachments = [item.get("text") or item.get("path") or "" for item in interrupt.attachments]
    choices = [text_of(choice) for choice in interrupt.choices]
    parts = [
        interrupt.message,
        *(text for text in attachments if text),
        f"Answers: {', '.join(choices)}" if choices else "",
        f"Until: {interrupt.expires_at}" if interrupt.expires_at else "",
        f"Run {interrupt.run_id} waits for it. Where the run is kept, it goes on with:\n"
        f"halo resume {interrupt.run_id} --interrupt {interrupt.id} --answer {_example(choices)}",
    ]
    return "\n\n".join(part for part in parts if part)


def _example(choices: list[str]) -> str:
    if not choices:
        return "ANSWER"
    return choices[0] if choices[0].isalnum() else f"'{choices[0]}'"
