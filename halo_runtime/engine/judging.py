"""Asking a model for a rule: an effect with a cost of its own, under the place of the text that is judged (spec 6)."""

from __future__ import annotations

from halo_runtime.engine.frame import Frame
from halo_runtime.json_types import JsonObject
from halo_runtime.models.base import Message, ModelReply, ModelRequest
from halo_runtime.policies.base import AskModel, PolicyCall


def asking(frame: Frame, place: str, model: str, call: PolicyCall) -> AskModel:
    """How a rule asks its judge model; what it answers is recorded at `place`."""
    run = frame.run

    async def ask(system: str, text: str) -> str:
        request = ModelRequest(
            model=model,
            agent=call.agent,
            method="judge",
            messages=(Message("system", system), Message("user", text)),
            temperature=0.0,
        )

        async def complete() -> JsonObject:
            return {"reply": (await run.complete(request, None)).to_json()}

        document = await run.effects.perform(place, "model", request.identity(), complete, guards=frame.guards)
        return ModelReply.from_json(document["reply"]).text

    return ask
