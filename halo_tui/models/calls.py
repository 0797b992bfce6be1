"""What is known of each agent call of a run, folded from its events; of a kept run from what it has noted (spec 9.3).

A call may take many requests: tries, tool steps, corrections. What was sent last holds those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias

from halo_runtime.engine.events import (
    ModelDelta,
    ModelRequested,
    ModelResponded,
    PolicyDecided,
    RetryScheduled,
    RunEvent,
    ToolRequested,
    ToolResponded,
)
from halo_runtime.json_types import JsonObject
from halo_tui.models.growing import Growing
from halo_tui.models.lines import Role, Run, duration, one_line

MAX_CALLS: Final = 2_000
"""Calls of which all is kept while a run goes on; of more, those that ended first go."""

MAX_NOTES: Final = 100
"""What happened within one call, in lines."""

_REQUEST: Final = re.compile(r"(/correction\d+)?/step\d+/try\d+$")
_JUDGE: Final = re.compile(r"/judge\d+/try\d+$")


Note: TypeAlias = tuple[str, str, Role]
"""A sign, what happened, and the part it plays."""


@dataclass(slots=True)
class Call:
    """One agent call. `cost` is None where a price is not known; `reply` where there is none, or none to be seen.

    `live` is the text of the request that is at work, as it streams.
    """

    path: str
    agent: str
    method: str
    model: str
    messages: list[JsonObject] = field(default_factory=list[JsonObject])
    reply: str | None = None
    live: Growing | None = None
    error: str = ""
    requests: int = 0
    attempt: int = 1
    tokens: int = 0
    cost: Decimal | None = Decimal(0)
    milliseconds: float = 0.0
    reused: bool = False
    notes: list[Run] = field(default_factory=list[Run])

    @property
    def name(self) -> str:
        return f"{self.agent}.{self.method}"

    @property
    def label(self) -> str:
        """The name, and which try it is where that is not the first."""
        return f"{self.name} (try {self.attempt})" if self.attempt > 1 else self.name

    def note(self, sign: str, text: str, role: Role) -> None:
        """Keep a line of what happened."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append((f"{sign} {one_line(text)}", role))


class Calls:
    """The calls of a run, by the paths at which they were made."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._live: dict[str, Call] = {}
        self._early: list[tuple[str, Note]] = []
        """What happened at paths of calls that have sent nothing yet: rules come before the first request."""
        self.forgotten = 0

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls.values())

    @property
    def streaming(self) -> Iterable[Call]:
        """Those with a request at work, in the order in which they were sent."""
        return self._live.values()

    def within(self, path: str) -> list[Call]:
        """The calls made at a path or below it, in their order."""
        own = self._calls.get(path)
        below = f"{path}/"
        return [call for call in self if call is own or call.path.startswith(below)]

    def live_within(self, path: str) -> Call | None:
        """The call at a path or below it whose request is at work, where it is the only one."""
        below = f"{path}/"
        found = [call for call in self._live.values() if call.path == path or call.path.startswith(below)]
        return found[0] if len(found) == 1 else None

    def stop(self) -> None:
        """No request is at work any more."""
        for call in self._live.values():
            call.reply, call.live = call.reply if call.live is None else call.live.text or call.reply, None
        self._live.clear()

    def take(self, event: RunEvent) -> None:
        """Take an event of a call in; others are passed over."""
        if isinstance(event, ModelDelta):
            call = self._live.get(event.path)
            if call is not None and call.live is not None:
                call.live.add(event.text)
        elif isinstance(event, ModelRequested | ModelResponded) and _JUDGE.search(event.path):
            self._judged(event)
        elif isinstance(event, ModelRequested):
            self._requested(event)
        elif isinstance(event, ModelResponded):
            self._responded(event)
        else:
            self._noted(event)

    def keep(self, path: str, entry: JsonObject) -> None:
        """Take a call that is over, in the shape of `meta.calls` (spec 8.1); a judge is noted at the call it is for."""
        if "for" in entry:
            self._note_kept(path, entry["for"], _judge(entry["agent"], entry["model"]))
            return
        name = path
        while name in self._calls:
            name = f"{path}/{len(self._calls)}"
        error = entry.get("error")
        call = Call(
            name, entry["agent"], entry["method"], entry["modelUsed"] or entry["model"], entry["messages"],
            entry["reply"], None, "" if error is None else str(error["message"]), entry["attempts"], 1,
            entry["tokens"]["total"], None if entry["cost"] is None else Decimal(str(entry["cost"])),
            entry["durationMs"], bool(entry.get("reused")),
        )  # fmt: skip
        for tool in entry["tools"]:
            call.note("→", str(tool["name"]), "accent")
            if "error" in tool:
                call.note("✗", str(tool["error"]), "error")
        self._calls[name] = call

    def keep_decision(self, path: str, line: JsonObject) -> None:
        """Take what a rule stopped or changed in a call that is over, in the shape of `meta.violations` (spec 8.1)."""
        note = _decision(line["policy"], line["rule"], line["action"], line["point"], None)
        self._note_kept(path, f"{line['agent']}.{line['method']}", note)

    def _note_kept(self, path: str, name: str, note: Note) -> None:
        for call in reversed(self.within(path)):
            if call.name == name:
                call.note(*note)
                return

    def _judged(self, event: ModelRequested | ModelResponded) -> None:
        if isinstance(event, ModelRequested):
            self._note(event.path, _judge(event.agent, event.model))
        elif event.error is not None:
            self._note(event.path, ("✗", f"{event.agent}.judge: {event.error.get('message', 'failed')}", "error"))

    def _requested(self, event: ModelRequested) -> None:
        path = _REQUEST.sub("", event.path)
        call = self._calls.get(path)
        if call is None:
            call = self._calls[path] = Call(path, event.agent, event.method, event.model)
            self._note_early(call)
            self._forget()
        elif event.attempt > 1:
            call.note("↻", f"try {event.attempt}", "warning")
        call.messages, call.reply, call.error = event.messages, None, ""
        call.attempt, call.live = event.attempt, Growing()
        call.requests += 1
        self._live[event.path] = call

    def _responded(self, event: ModelResponded) -> None:
        call = self._live.pop(event.path, None)
        if call is None:
            return
        call.live, call.reply = None, event.reply
        call.tokens += sum(event.tokens.get(side) or 0 for side in ("input", "output"))
        call.milliseconds += event.duration_ms
        if event.error is not None:
            call.error = str(event.error.get("message", "failed"))
            call.note("✗", call.error, "error")
        elif call.cost is not None:
            call.cost = None if event.cost is None else call.cost + Decimal(event.cost)

    def _noted(self, event: RunEvent) -> None:
        if isinstance(event, ToolRequested):
            self._note(event.path, ("→", f"{event.tool}.{event.method}", "accent"))
        elif isinstance(event, ToolResponded) and event.error is not None:
            failure = event.error.get("message", "failed")
            self._note(event.path, ("✗", f"{event.tool}.{event.method}: {failure}", "error"))
        elif isinstance(event, PolicyDecided) and event.action != "allow":
            note = _decision(event.policy, event.rule, event.action, event.point, event.reason)
            self._note(event.path, note)
        elif isinstance(event, RetryScheduled):
            self._note(event.path, ("↻", f"again in {duration(event.wait_seconds)}", "warning"))

    def _note(self, path: str, note: Note) -> None:
        call = self._around(path)
        if call is not None:
            call.note(*note)
        elif len(self._early) < MAX_NOTES:
            self._early.append((path, note))

    def _note_early(self, call: Call) -> None:
        """What happened before the first request of a call, now that it is known."""
        waiting, self._early = self._early, []
        for path, note in waiting:
            if path == call.path or path.startswith(f"{call.path}/"):
                call.note(*note)
            else:
                self._early.append((path, note))

    def _around(self, path: str) -> Call | None:
        while path:
            if path in self._calls:
                return self._calls[path]
            path = path.rpartition("/")[0]
        return None

    def _forget(self) -> None:
        if len(self._calls) <= MAX_CALLS:
            return
        over = next((path for path, call in self._calls.items() if call.live is None), None)
        if over is not None:
            del self._calls[over]
            self.forgotten += 1


def _judge(policy: str, model: str) -> Note:
    return "?", f"{policy}: asked {model}", "accent"


def _decision(policy: str, rule: str, action: str, point: str, reason: str | None) -> Note:
    because = f": {reason}" if reason else ""
    return "▲", f"{policy}: {rule} {action} at {point}{because}", "warning"
