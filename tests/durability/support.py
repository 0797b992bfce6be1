"""What tests of durability share: a project's `.halo` folder, and Runtimes that know nothing but what is in it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halo_lang
from halo_runtime import Cassette, Interrupt, RunResult, Runtime, ScriptedModel
from halo_runtime.engine.clock import Clock
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.format import FORMAT, Sealer
from tests.runtime.support import FakeClock, StubTool

AGENTS = "agent A [openai/gpt-4o-mini]\nagent B [openai/gpt-4o-mini]\n"
STORE = 'store Deeds: KV("deeds.db")\n'
"""A store whose `incr` must not happen twice; the tests play it and see what was done."""

Answers = Callable[[Interrupt], Any]


class StillClock(FakeClock):
    """A clock that stands still, and gives other numbers each time, so that run ids differ."""

    numbers = itertools.count(1)

    def random(self) -> float:
        return next(self.numbers) % 0x1000000 / 0x1000000


class Project:
    """A folder of runs. Each `runtime()` is a new process as far as it can tell: all it shares is the folder."""

    def __init__(self, root: Path, replies: dict[str, Any] | None = None) -> None:
        self.root = root
        self.replies = replies or {}
        self.clock: Clock = StillClock()
        self.env: dict[str, str] = {}
        self.deeds = StubTool(lambda method, args: f"did {args['key']}")

    @property
    def store(self) -> FileRunStore:
        return FileRunStore(self.root)

    def runtime(self, cassette: Cassette | None = None) -> Runtime:
        replies = ScriptedModel(self.replies)
        made = Runtime(env=self.env, replies=replies, clock=self.clock, store=self.store, cassette=cassette)
        made.register_tool_provider("KV", self.deeds)
        return made

    def runtime_without_store(self) -> Runtime:
        """Runs that live as long as their process."""
        made = Runtime(env=self.env, replies=ScriptedModel(self.replies), clock=self.clock)
        made.register_tool_provider("KV", self.deeds)
        return made

    async def run(self, text: str, inputs: dict[str, Any] | None = None, **options: Any) -> RunResult:
        options.setdefault("keep", True)
        return await self.runtime().run(halo_lang.parse(text), "Main", inputs or {}, **options)

    async def fork(self, text: str, checkpoint: str, **options: Any) -> RunResult:
        return await self.runtime().fork(halo_lang.parse(text), checkpoint, **options)

    async def answer_all(self, result: RunResult, answers: Answers, order: Callable[[int], int]) -> RunResult:
        """Answer a paused run's questions one by one, each in a process of its own; `order` picks the next of n."""
        while result.status == "paused":
            question = result.interrupts[order(len(result.interrupts))]
            result = await self.runtime().signal(result.run_id, answers(question), interrupt=question.id)
        return result

    def lines(self, run_id: str) -> list[dict[str, Any]]:
        """A run's journal as it stands in the file."""
        path = self.store.folder / f"{run_id}.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def bytes_of(self, run_id: str) -> bytes:
        return (self.store.folder / f"{run_id}.jsonl").read_bytes()

    def cut(self, run_id: str, keep: Callable[[dict[str, Any]], bool]) -> None:
        """Leave of a journal only the lines up to the first that `keep` refuses, as a kill would."""
        path = self.store.folder / f"{run_id}.jsonl"
        kept: list[bytes] = []
        for line in path.read_bytes().splitlines(keepends=True):
            if not keep(json.loads(line)):
                break
            kept.append(line)
        path.write_bytes(b"".join(kept))


def sealed(*documents: dict[str, Any]) -> bytes:
    """A journal file of these lines; the first gets the format."""
    sealer = Sealer()
    first, *rest = documents
    return b"".join(sealer.line(document) for document in [{"t": "run", "format": FORMAT, **first}, *rest])


def keys(deeds: StubTool) -> list[str]:
    """What was done, in order."""
    return [args["key"] for _, args in deeds.calls]


def figures(result: RunResult) -> dict[str, Any]:
    """All of a result that does not depend on when and where it came about."""
    meta = result.context.meta
    calls = [{name: value for name, value in call.items() if name != "durationMs"} for call in meta["calls"]]
    return {
        "status": result.status,
        "output": result.output,
        "data": result.context.data,
        "trace": result.context.trace,
        "cost": meta["cost"],
        "tokens": meta["tokens"],
        "calls": calls,
    }
