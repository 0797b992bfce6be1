"""`@shadow(Name)`: an agent that runs beside another's calls; its output is recorded and never used (spec 2.5).

A shadow can neither slow the call beside it nor fail the run: it has a task of its own, no tools, and whatever goes
wrong with it, or is held back from it by its policies, stands in `meta.shadow` alone. Its cost is its own figure there.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from halo_runtime.engine.calls.written import written_in
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import examine, examine_messages, refuse
from halo_runtime.engine.journal import SHADOW
from halo_runtime.engine.limits import within
from halo_runtime.engine.strand import Strand
from halo_runtime.errors import HaloError, TimeoutExceeded
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import Message, ModelReply, ModelRequest
from halo_runtime.policies.base import Examined, PolicyCall
from halo_runtime.values import text_of

if TYPE_CHECKING:
    from halo_runtime.engine.plan import AgentPlan

UNFINISHED = "not finished when the run ended"
GRACE_SECONDS = 30.0
"""How long a shadow without a `@timeout` of its own may still run when the run has ended."""


class Shadows:
    """The shadows of one run, in progress."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], float] = {}

    def start(self, frame: Frame, path: str, request: ModelRequest, asked: PolicyCall) -> None:
        """Let every shadow of the agent or model that is asked answer the request too."""
        if frame.run.effects.rehearsal:
            return
        for agent in frame.run.plan.shadows_of(asked.agent, asked.model):
            line: JsonObject = {"agent": agent.name, "for": f"{request.agent}.{request.method}"}
            line |= {"output": None, "error": UNFINISHED, "cost": None}
            frame.strand.shadow.append(line)
            # What it says is filled in now: the run goes on meanwhile, and its values with it.
            messages = _messages(agent, request, frame)
            own = () if agent.system is None else written_in(agent.system)
            guarded = PolicyCall(agent.name, request.method, agent.model, (*own, *asked.written))
            apart = frame.fork(Strand(), current=frame.current, origins=frame.current_origins)
            task = asyncio.create_task(
                _run(apart, f"{path}{SHADOW}{agent.name}", agent, request, messages, guarded, line)
            )
            self._tasks[task] = agent.directives.timeout or GRACE_SECONDS

    async def __aenter__(self) -> None:
        """Begin a run."""

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for those that still run, each for its own time, and cancel what is left. A cancelled run waits not."""
        try:
            if self._tasks and kind is not asyncio.CancelledError:
                await asyncio.wait(self._tasks, timeout=max(self._tasks.values()))
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


def _messages(agent: AgentPlan, request: ModelRequest, frame: Frame) -> tuple[Message, ...]:
    """The messages of a request with the shadow's own system prompt, where it has one."""
    if agent.system is None:
        return request.messages
    own = Message("system", text_of(agent.system.evaluate(frame)))
    return (own, *(message for message in request.messages if message.role != "system"))


async def _run(
    frame: Frame, path: str, agent: AgentPlan, request: ModelRequest, messages: tuple[Message, ...],
    guarded: PolicyCall, line: JsonObject,
) -> None:  # fmt: skip
    redact = frame.run.redactor
    try:
        reply, model = await _ask(frame, path, agent, request, messages, guarded)
    except HaloError as error:
        line["error"] = redact.text(error.message)
        return
    price = frame.run.prices.cost(model, reply.usage) if reply.cost is None else reply.cost
    line |= {"output": redact.text(reply.text), "error": None, "cost": None if price is None else float(price)}


async def _ask(
    frame: Frame, path: str, agent: AgentPlan, request: ModelRequest, messages: tuple[Message, ...],
    guarded: PolicyCall,
) -> tuple[ModelReply, str]:  # fmt: skip
    """The shadow's reply to the messages, under its own rules, and the model whose prices hold for it."""
    run = frame.run
    rules = run.rules(agent)
    messages = await examine_messages(frame, path, rules, messages, guarded)
    shadowed = replace(request, model=run.model or agent.model, agent=agent.name, messages=messages, tools=())

    async def complete() -> Json:
        reply = await within(agent.directives.timeout, agent.name, run.complete(shadowed, None))
        priced_as = agent.model if run.scripted else shadowed.model
        return {"reply": reply.to_json(), **({} if priced_as == agent.model else {"priced_as": priced_as})}

    def recorded() -> JsonObject:
        return {**shadowed.to_json(), "model": agent.model}

    record = run.effects.journal.find(path)
    if record is not None and record.outcome == "cancelled":
        raise TimeoutExceeded(UNFINISHED)

    async def exchange() -> Json:
        return await run.exchange(path, "model", recorded, complete)

    try:
        document = await run.effects.perform(path, "model", shadowed.to_json(), exchange)
    finally:
        run.heard(path, "model", recorded)
    reply = ModelReply.from_json(document["reply"])
    verdict = await examine(frame, path, rules, Examined("output", reply.text, guarded))
    if verdict.reasons:
        raise refuse(verdict.reasons, guarded)
    return replace(reply, text=verdict.text), document.get("priced_as", agent.model)
