"""Requests in OpenAI's responses API as its tests make them, and what came of them."""

from __future__ import annotations

from typing import Any

import pytest

from halo_runtime.errors import ModelError
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolSpec
from halo_runtime.models.openai import OpenAILike, open_openai
from tests.fakes.openai_responses import (
    function_call,
    message,
    reasoning,
    response,
    usage,
)
from tests.fakes.openai_server import KEY, FakeOpenAI
from tests.fakes.wire import Answer

HI = (Message("user", "hi"),)
MODEL = "gpt-6.1-sol"
WEATHER = ToolSpec("Weather_at", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
CITY = {
    "type": "object", "title": "City", "properties": {"city": {"type": "string"}}, "required": ["city"],
    "additionalProperties": False,
}  # fmt: skip
TURN = response(
    reasoning(),
    message("I look. ", phase="commentary"),
    message("Grüße \u2028", "msg_2"),
    function_call("call_1", "Weather_at", '{"city": "Zürich"}'),
    function_call("call_2", "Weather_at", ""),
    usage=usage(90, 40, cached=64, written=8, reasoning=20),
)


def ask(model: str = MODEL, **settings: Any) -> ModelRequest:
    settings.setdefault("tools", (WEATHER,))
    return ModelRequest(f"openai/{model}", "Bot", "answer", settings.pop("messages", HI), **settings)


async def complete(server: FakeOpenAI, request: ModelRequest, told: list[str] | None = None) -> ModelReply:
    provider = opened(server)
    try:
        return await provider.complete(request, None if told is None else told.append)
    finally:
        await provider.close()


def opened(server: FakeOpenAI) -> OpenAILike:
    return open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url})


async def both(server: FakeOpenAI, turn: Answer, request: ModelRequest | None = None) -> ModelReply:
    """The reply to a turn, which must be the same whole and streamed."""
    request, told = request or ask(), list[str]()
    server.turn(turn, turn)
    whole, streamed = await complete(server, request), await complete(server, request, told)
    assert [asked.body.get("stream", False) for asked in server.requests[-2:]] == [False, True]
    assert whole == streamed
    assert "".join(told) == whole.text
    return whole


async def failure(server: FakeOpenAI, told: list[str] | None = None, request: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await complete(server, request or ask(), told)
    assert KEY not in f"{caught.value} {caught.value.detail}"
    return caught.value


def paths(server: FakeOpenAI) -> list[str]:
    return [request.path.removeprefix("/v1/") for request in server.requests]
