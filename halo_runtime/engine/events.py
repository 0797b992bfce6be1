"""The one stream that everything that watches a run reads (spec 2.8).

Events are frozen, JSON-serialisable and carry no clock time of their own: a replayed run gives the same ones, but for
deltas, which are kept nowhere, and the marks `continued` and `reused`.
Events of one structural `path` come in order; those of parallel paths interleave as the work does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import ClassVar, Final, TypeAlias

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject


@record
class RunEvent:
    """Base of all events. `type` is the stable name in JSON."""

    type: ClassVar[str] = "event"

    run_id: str
    path: str

    def to_json(self) -> JsonObject:
        """`{"type": …, "runId": …, "path": …}` and the event's own fields, names in camelCase."""
        document: JsonObject = {"type": self.type}
        for item in fields(self):
            document[_camel(item.name)] = getattr(self, item.name)
        return document


@record
class RunStarted(RunEvent):
    """The first event; `input` holds the arguments by name.

    `continued`: the run goes on, and what its journal holds is told again before anything new is done. `forked`: it
    continues another run as a new one, and so does what it takes from that.
    """

    type: ClassVar[str] = "run_started"
    pipeline: str
    input: JsonObject
    continued: bool = False
    forked: bool = False


@record
class RunFinished(RunEvent):
    """The last event."""

    type: ClassVar[str] = "run_finished"
    status: str
    output: Json
    error: JsonObject | None


@record
class StageStarted(RunEvent):
    """`kind`: pipe gate branch fanout each yield listen loop, or `item` for an arm's or item's call."""

    type: ClassVar[str] = "stage_started"
    kind: str
    stage: str
    line: int


@record
class StageFinished(RunEvent):
    """`outcome`: completed halted paused failed cancelled; `value` flows on when completed.

    `stored` is what the stage wrote to its pipeline's results, by name: `summary`, `Bot.answer` in a namespace.
    """

    type: ClassVar[str] = "stage_finished"
    kind: str
    stage: str
    line: int
    outcome: str
    value: Json
    stored: JsonObject = field(default_factory=dict[str, Json])


@record
class AgentStarted(RunEvent):
    """An agent's call begins; its `path` is that of its stage, arm or item. `model` is the one that will be asked."""

    type: ClassVar[str] = "agent_started"
    agent: str
    method: str
    model: str


@record
class AgentFinished(RunEvent):
    """An agent's call has ended; `outcome` as that of a stage."""

    type: ClassVar[str] = "agent_finished"
    agent: str
    method: str
    outcome: str
    error: JsonObject | None


@record
class ModelRequested(RunEvent):
    """A request goes out; `attempt` counts tries from 1. `settings` are those that are set: temperature, …"""

    type: ClassVar[str] = "model_requested"
    agent: str
    method: str
    model: str
    messages: list[JsonObject]
    attempt: int
    settings: JsonObject = field(default_factory=dict[str, Json])


@record
class ModelDelta(RunEvent):
    """A piece of a reply as it streams."""

    type: ClassVar[str] = "model_delta"
    agent: str
    text: str


CANCELLED: Final[JsonObject] = {
    "type": "Cancelled",
    "message": "broken off before its answer had come",
    **dict.fromkeys(("stage", "file", "line", "column")),
}
"""What `ModelResponded` has as the error of a request that was broken off."""


@record
class ModelResponded(RunEvent):
    """`error` is null when a reply came, CANCELLED when nobody waited for it any more. `duration_ms` as recorded.

    `cost` in USD as text, null when unknown. `model` is the one that answered, null if unknown; `finish` why it ended
    (models/base.py, Stop). `usage` are its tokens as the service told them, null for what it did not. `reused`: nothing
    was sent, a journal had the reply.
    """

    type: ClassVar[str] = "model_responded"
    agent: str
    method: str
    reply: str | None
    tokens: JsonObject
    cost: str | None
    duration_ms: float
    error: JsonObject | None
    model: str | None = None
    finish: str | None = None
    usage: JsonObject = field(default_factory=dict[str, Json])
    tool_calls: list[JsonObject] = field(default_factory=list[JsonObject])
    reused: bool = False


@record
class ToolRequested(RunEvent):
    """A tool is called; `args` by name."""

    type: ClassVar[str] = "tool_requested"
    tool: str
    method: str
    args: JsonObject


@record
class ToolResponded(RunEvent):
    """A tool has answered; `error` is null when it did its work. `reused`: a journal had it, nothing was called."""

    type: ClassVar[str] = "tool_responded"
    tool: str
    method: str
    result: Json
    error: JsonObject | None
    reused: bool = False


@record
class PolicyDecided(RunEvent):
    """`action`: allow, redact or block; `reason` never repeats the offending text."""

    type: ClassVar[str] = "policy_decided"
    policy: str
    rule: str
    point: str
    action: str
    reason: str | None


@record
class RetryScheduled(RunEvent):
    """A call failed for the moment and is tried again after the wait; `attempt` is the one to come."""

    type: ClassVar[str] = "retry_scheduled"
    attempt: int
    wait_seconds: float
    reason: str


@record
class InterruptOpened(RunEvent):
    """`interrupt` in the shape of spec 8.1."""

    type: ClassVar[str] = "interrupt_opened"
    interrupt: JsonObject


@record
class InterruptAnswered(RunEvent):
    """A question has its answer; `by` is who gave it, null when unknown."""

    type: ClassVar[str] = "interrupt_answered"
    interrupt_id: str
    answer: Json
    by: str | None


@record
class WarningRaised(RunEvent):
    """Something that does not stop the run; the place is null where none is known."""

    type: ClassVar[str] = "warning"
    message: str
    line: int | None
    column: int | None


@record
class Printed(RunEvent):
    """`System.Print` and `System.Log`; `level` is print or log."""

    type: ClassVar[str] = "printed"
    level: str
    text: str


@record
class SystemEvent(RunEvent):
    """`System.Publish`, `Notify` and their kin."""

    type: ClassVar[str] = "system_event"
    name: str
    payload: Json


Observer: TypeAlias = Callable[[RunEvent], None]
"""Called from a thread of its own, in order. It cannot slow or break the run; one that raises is dropped."""


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
