"""The line of one agent call in `meta.calls`, in the shape of spec 8.1 and 12.3."""

from __future__ import annotations

from decimal import Decimal

from halo_runtime.engine.frame import Frame
from halo_runtime.engine.needs import Spent
from halo_runtime.errors import HaloError
from halo_runtime.json_types import JsonObject
from halo_runtime.models.base import Message, ModelReply, ToolCall, Usage


class Figures:
    """What has happened in a call so far; it is written down as it happens, so that a failed call is in it too.

    `declared` is the model that the program says, `model` the one that is asked. `judged` is the call that a judge's
    call is about.
    """

    def __init__(
        self, frame: Frame, agent: str, method: str, declared: str, model: str, judged: str | None = None
    ) -> None:
        self.last_attempt = 1
        self._cost: Decimal | None = Decimal(0)
        self._paid = False
        self._line: JsonObject = {
            "agent": agent,
            "method": method,
            "model": declared,
            "modelUsed": None if model == declared else model,
            "messages": [],
            "reply": None,
            "tokens": {"input": 0, "output": 0, "total": 0},
            "cost": 0.0,
            "attempts": 0,
            "corrections": 0,
            "tools": [],
            "durationMs": 0.0,
            "reused": False,
        }
        if judged is not None:
            self._line["for"] = judged
        frame.strand.calls.append(self._line)

    @property
    def sent_before(self) -> bool:
        """Whether a request of this call has gone out."""
        return bool(self._line["messages"])

    def sent(self, messages: tuple[Message, ...]) -> None:
        self._line["messages"] = [message.to_json() for message in messages]

    def tried(self, attempt: int) -> None:
        self.last_attempt = attempt
        self._line["attempts"] += 1

    def not_tried(self) -> None:
        """A budget stood in the way of the try, so that it was not made."""
        self._line["attempts"] -= 1

    def reused(self, reply: ModelReply) -> None:
        """The reply was paid for by the run that this one continues."""
        self._line["modelUsed"] = reply.model_used or self._line["modelUsed"]
        self._line["reused"] = not self._paid

    def replied(self, reply: ModelReply, spent: Spent, duration: float) -> None:
        self._paid, self._line["reused"] = True, False
        self.spent(spent)
        self._line["durationMs"] += duration
        self._line["modelUsed"] = reply.model_used or self._line["modelUsed"]

    def spent(self, spent: Spent) -> None:
        """A request has used this, whether it was answered or not."""
        tokens = tokens_of(spent.usage)
        self._line["tokens"] = {name: count + tokens[name] for name, count in self._line["tokens"].items()}
        self._cost = None if self._cost is None or spent.usd is None else self._cost + spent.usd
        self._line["cost"] = None if self._cost is None else float(self._cost)
        if spent.estimated:
            self._line["estimated"] = True

    def corrected(self) -> None:
        self._line["corrections"] += 1

    def answered(self, text: str) -> None:
        self._line["reply"] = text

    def failed(self, error: HaloError) -> None:
        self._line["error"] = {"type": type(error).__name__, "message": error.message}

    def tool(self, call: ToolCall) -> JsonObject:
        """A line for one tool call, to be filled with its result or error."""
        line: JsonObject = {"name": call.name, "args": call.arguments}
        self._line["tools"].append(line)
        return line


def tokens_of(usage: Usage) -> JsonObject:
    """The tokens of one request as they stand in figures and events."""
    given, made = usage.input or 0, usage.output or 0
    return {"input": given, "output": made, "total": given + made}
