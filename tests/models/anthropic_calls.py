"""Requests to Anthropic as its tests make them, and what came of them."""

from __future__ import annotations

from typing import Any

import pytest

from halo_runtime.errors import ModelError
from halo_runtime.models.anthropic import Anthropic
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolSpec
from tests.fakes.anthropic_server import (
    KEY,
    FakeAnthropic,
)
from tests.fakes.wire import Answer

HI = (Message("user", "hi"),)
WEATHER = ToolSpec("Weather_at", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def ask(model: str = "anthropic/claude-sonnet-4-5", **settings: Any) -> ModelRequest:
    return ModelRequest(model, "Bot", "answer", settings.pop("messages", HI), **settings)


async def both(server: FakeAnthropic, provider: Anthropic, answer: Answer, request: ModelRequest) -> ModelReply:
    """The reply to a message, which must be the same whole and streamed."""
    server.answer(answer, answer)
    deltas: list[str] = []
    whole, streamed = await provider.complete(request), await provider.complete(request, deltas.append)
    assert whole == streamed
    assert "".join(deltas) == whole.text
    return whole


async def failed(provider: Anthropic, request: ModelRequest | None = None, *, streaming: bool = False) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await provider.complete(request or ask(), [].append if streaming else None)
    assert KEY not in f"{caught.value!r} {caught.value.detail} {provider!r} {vars(provider)}"
    return caught.value


def answered(turn: ModelReply, *results: str) -> tuple[Message, ...]:
    """The question, the turn that asked for tools, and their results."""
    pairs = zip(results, turn.tool_calls, strict=True)
    asked = Message("assistant", turn.text, turn.tool_calls, opaque=turn.opaque)
    return (*HI, asked, *(Message("tool", said, tool_call_id=call.id) for said, call in pairs))
