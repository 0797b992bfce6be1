"""Asking a person before a tool that an agent chose is called (spec 6, decision 27): an interrupt like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies.base import PolicyCall, ToolUse
from halo_runtime.values import compact, indented

if TYPE_CHECKING:
    from halo_runtime.engine.effects import Origins
    from halo_runtime.engine.frame import Frame

APPROVE: Final = "/approve"
"""What the path of an approval ends with, behind that of the call."""

_ROOM: Final = 160
_YES: Final = ("yes", "approve")


async def is_approved(
    frame: Frame, path: str, call: PolicyCall, use: ToolUse, reasons: Sequence[str], origins: Origins
) -> bool:
    """Whether a person lets the call be made. Raises Paused while nobody has answered."""
    question: JsonObject = {
        "kind": "approve",
        "message": f"{call.agent}.{call.method} wants to call {use.tool}.{use.method}({_short(use.args)}); may it?",
        "channel": None,
        "attachments": [
            {"kind": "text", "text": indented(use.args), "name": "arguments"},
            {"kind": "text", "text": "\n".join(reasons), "name": "reason"},
        ],
        "choices": ["approve", "refuse"],
        "event": None,
    }
    return approves(await frame.run.ask(frame, path, question, None, None, origins))


def _short(args: JsonObject) -> str:
    """The arguments where there is little room; an attachment has them whole."""
    text = compact(args) if args else ""
    return text if len(text) <= _ROOM else f"{text[:_ROOM]}…"


def approves(answer: Json) -> bool:
    """`true`, `"yes"` and `"approve"` approve, all else refuses."""
    return answer is True or (isinstance(answer, str) and answer.strip().lower() in _YES)
