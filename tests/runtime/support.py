"""What tests of the engine share: a clock that stands still, programs run from their text, stubs of the outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import halo_lang
from halo_runtime import RunResult, Runtime, ScriptedModel
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.tools.base import ToolConfig

Answer: TypeAlias = Callable[[ModelRequest], Awaitable[str | ModelReply]]


class FakeClock:
    """Always the same moment; waiting takes no time and is written down in `slept` (seconds)."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def random(self) -> float:
        return 0.0


def runtime(replies: dict[str, Any] | None = None, **options: Any) -> Runtime:
    """A Runtime on a fake clock and an empty environment, answering from `replies`."""
    options.setdefault("env", {})
    options.setdefault("clock", FakeClock())
    return Runtime(replies=None if replies is None else ScriptedModel(replies), **options)


def run(
    text: str, inputs: dict[str, Any] | None = None, replies: dict[str, Any] | None = None, pipeline: str = "Main",
    **options: Any,
) -> RunResult:  # fmt: skip
    """The result of running a program's `Main` (or another pipeline)."""
    return asyncio.run(runtime(replies or {}, **options).run(halo_lang.parse(text), pipeline, inputs or {}))


class StubModel:
    """A model service that a test plays: `answer` gets each request and gives the text or reply, or raises."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests: list[ModelRequest] = []
        self.closed = False

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        self.requests.append(request)
        reply = await self._answer(request)
        return reply if isinstance(reply, ModelReply) else ModelReply(reply)

    def missing(self) -> str | None:
        return None

    def restore(self, cursors: Sequence[Any]) -> None:
        pass

    async def close(self) -> None:
        self.closed = True


class StubTool:
    """A tool that a test plays: `answer` gets the method and its arguments and gives the result, or raises."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], Any]) -> None:
        self._answer = answer
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.config: ToolConfig | None = None
        self.closed = False

    def __call__(self, config: ToolConfig) -> StubTool:
        """The factory that Runtime.register_tool_provider takes."""
        self.config = config
        return self

    async def call(self, method: str, args: dict[str, Any]) -> Any:
        self.calls.append((method, args))
        result = self._answer(method, args)
        return await result if isinstance(result, Awaitable) else result

    async def close(self) -> None:
        self.closed = True


def stubbed(answer: Answer, **options: Any) -> tuple[Runtime, StubModel]:
    """A Runtime whose `openai/…` models are one stub."""
    model = StubModel(answer)
    made = runtime(**options)
    made.register_model_provider("openai", lambda env: model)
    return made, model


def user_text(request: ModelRequest) -> str:
    """The user message of a request."""
    return request.messages[-1].content
