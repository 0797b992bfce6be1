"""Runs with a cassette as its tests make them: a model and a tool that a test plays, and what is on the tape."""

from __future__ import annotations

import itertools
import json
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import halo_lang
from halo_runtime import (
    Cassette,
    RunResult,
    Runtime,
)
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelReply, ModelRequest
from tests.runtime.support import FakeClock, StubModel, StubTool, runtime

AGENT = "agent A [openai/gpt-4o-mini]\n"
MAIN = "pipeline Main(x: Any) -> Result: x "
TAPE = "tape.jsonl"
REPO = "tool Repo : GitHub(Env.TOKEN)\nagent A [openai/gpt-4o-mini]\n  equips Repo\n"


class Clock(FakeClock):
    """Gives each run an id of its own."""

    chances = itertools.count(1)

    def random(self) -> float:
        return next(self.chances) / 0x1000000


class World:
    """A model and a GitHub tool that a test plays, and that count how often they are asked."""

    def __init__(self, answer: Callable[[ModelRequest], Any], tool: Callable[[str, JsonObject], Any] | None = None):
        async def reply(request: ModelRequest) -> str | ModelReply:
            result: Any = answer(request)
            return await cast("Awaitable[Any]", result) if isinstance(result, Awaitable) else result

        self.model = StubModel(reply)
        self.tool = StubTool(tool or (lambda method, args: None))

    @property
    def asked(self) -> int:
        return len(self.model.requests) + len(self.tool.calls)

    def runtime(self, cassette: Cassette, **options: Any) -> Runtime:
        options.setdefault("clock", Clock())
        made = runtime(cassette=cassette, **options)
        made.register_model_provider("openai", lambda env: self.model)
        made.register_tool_provider("GitHub", self.tool)
        return made


async def play(text: str, cassette: Cassette, world: World, value: Json = 1, **options: Any) -> RunResult:
    """Run `Main(x)` with a cassette."""
    made = world.runtime(cassette, **options)
    try:
        return await made.run(halo_lang.parse(text), "Main", {"x": value})
    finally:
        await made.close()


def nobody() -> World:
    """A world in which nobody answers."""

    def refuse(*_: object) -> Any:
        raise AssertionError("somebody was asked")

    return World(refuse, refuse)


def content() -> str:
    """The whole cassette."""
    return Path(TAPE).read_text()


def mode() -> int:
    """Who may read the cassette."""
    return stat.S_IMODE(Path(TAPE).stat().st_mode)


def lines() -> list[JsonObject]:
    """The exchanges in the cassette."""
    return [json.loads(line) for line in content().splitlines()[1:]]


async def recorded_and_replayed(text: str, world: World, value: Json = 1) -> tuple[RunResult, RunResult]:
    """A run that is recorded, and the same answered by its cassette alone."""
    first = await play(text, Cassette.record(TAPE), world, value)
    return first, await play(text, Cassette.replay(TAPE), nobody(), value)


def in_turn(*replies: Any) -> Callable[[ModelRequest], Any]:
    """Gives the replies in turn, and raises those that are errors."""
    left: Iterator[Any] = iter(replies)

    def answer(request: ModelRequest) -> Any:
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return answer
