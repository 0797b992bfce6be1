"""Requests to Gemini as its tests make them, and what came of them."""

from __future__ import annotations

from typing import Any

import pytest

from halo_runtime.errors import ModelError
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolSpec
from halo_runtime.models.gemini import Gemini
from tests.fakes.gemini_server import KEY, FakeGemini

HI = (Message("user", "hi"),)
WEATHER = ToolSpec("Weather_at", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
FACTS = {"title": "Facts", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
INSTEAD = "it was asked for in the system instruction instead"
NEW, OLD = "gemini-3.5-flash", "gemini-2.5-flash"


def ask(model: str = f"google/{NEW}", **settings: Any) -> ModelRequest:
    return ModelRequest(model, "Bot", "answer", settings.pop("messages", HI), **settings)


async def complete(provider: Gemini, request: ModelRequest, told: list[str] | None) -> ModelReply:
    answer = await provider.complete(request, None if told is None else told.append)
    assert told is None or "".join(told) == answer.text
    return answer


async def failed(provider: Gemini, told: list[str] | None = None, request: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await provider.complete(request or ask(), None if told is None else told.append)
    assert KEY not in f"{caught.value} {caught.value.detail}"
    return caught.value


def body(server: FakeGemini, number: int = -1) -> Any:
    return server.requests[number].body
