"""A process to be killed: runs, or goes on with, the one program that has every operator and a tool with effects.

    victim.py FOLDER          start the run `victim` in FOLDER, or go on with it, until it ends; answer its questions
    victim.py FOLDER --fork   continue it as a new run

Prints `ready`, then the result as JSON. Each call of the tool adds a line to FOLDER/deeds: that is what must
not happen twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import halo_lang
from halo_runtime import Interrupt, RunResult, Runtime, ScriptedModel
from halo_runtime.errors import RunRefused, UnknownRun
from halo_runtime.store.files import FileRunStore

RUN = "victim"
PROGRAM = """
agent A [openai/gpt-4o-mini]
  equips Deeds
agent B [openai/gpt-4o-mini]
store Deeds: KV("deeds.db")

@checkpoint
@timeout(10m)
pipeline Main(text: String, xs: Array) -> Result:
  text
    |> Deeds.incr("begin {{text}}") as begun
    |> A.draft("Draft {{begun}}")
    |> A.act(tools: [Deeds]) as acted
    |<> loop(A, "act != 'done'", max: 3) as rounds
    |> System.Value("{{text}}")
    |* { Part("left") as left, B.review(), Deeds.incr("both") as noted, Part("right") as right } as both
    |* each(x in xs, concurrency: 2, onError: "keep") => One(x) as ones
    |? { (acted == "never") => Deeds.incr("wrong"), else => Part("else") } as chosen
    |? (chosen != "zz") => Deeds.incr("arrow {{chosen}}") as arrowed
    |! yield("Publish {{chosen}}?") as ok
    ~> listen(UI.Click)
    |? (ok == "yes")
    |> Deeds.incr("finish {{ok}}")

pipeline Part(side: String) -> Result:
  side
    |> B.part("Part {{side}}")
    |! yield("Is {{side}} right?") as right
    |> Deeds.incr("part {{side}} {{right}}")

pipeline One(x: Any) -> Result:
  x
    |> B.one("One {{x}}")
    |> Deeds.incr("item {{x}}")
    |! yield("Item {{x}}?") as fine
    |? { (x == "bad") => System.Fail("bad item"), else => B.rate("Rate {{x}} {{fine}}") }
"""
USAGE = {"usage": {"input": 100, "output": 10}}


def doing(*keys: str) -> dict[str, Any]:
    """A reply in which the model asks for deeds."""
    return {"tool_calls": [{"tool": "Deeds_incr", "args": {"key": key}} for key in keys], **USAGE}


REPLIES: dict[str, Any] = {
    "A.draft": {"delay": "3ms", "reply": "a draft", **USAGE},
    "A.act": [
        doing("one", "two"), {"delay": "5ms", "reply": "more", **USAGE}, {"reply": "still more", **USAGE},
        doing("three", "four"), {"delay": "2ms", "reply": "done", **USAGE},
    ],
    "B.review": {"replies": [{"delay": "8ms", "reply": "fine", **USAGE}], "repeat": True},
    "B.part": {"replies": [{"delay": "4ms", "reply": "a part", **USAGE}], "repeat": True},
    "B.one": {"replies": [{"delay": "3ms", "reply": "one", **USAGE}], "repeat": True},
    "B.rate": {"replies": [{"delay": "2ms", "reply": "good", **USAGE}], "repeat": True},
}  # fmt: skip
INPUTS: dict[str, Any] = {"text": "hello", "xs": ["a", "bad", "c", "d"]}


class Deeds:
    """The tool: a line for each call, in one write, before and after which it may be killed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def call(self, method: str, args: dict[str, Any]) -> Any:
        assert method == "incr"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, f"{args['key']}\n".encode())
        os.close(descriptor)
        await asyncio.sleep(0.002)
        return args["key"]

    async def close(self) -> None:
        pass


def deeds(folder: Path) -> list[str]:
    """What the tool has done."""
    path = folder / "deeds"
    return path.read_text().splitlines() if path.exists() else []


def answer(folder: Path, question: Interrupt) -> Any:
    """What a person would say."""
    if question.kind == "in_doubt":
        key = json.loads(question.attachments[0]["text"])["key"]
        return {"skip": key} if key in deeds(folder) else "retry"
    return {"x": 1} if question.event else "yes"


def runtime(folder: Path) -> Runtime:
    """A Runtime whose people are away: every question pauses the run."""
    made = Runtime(env={}, replies=ScriptedModel(REPLIES), store=FileRunStore(folder / ".halo"))
    made.register_tool_provider("KV", lambda config: Deeds(folder / "deeds"))
    return made


async def go_on(folder: Path) -> dict[str, Any]:
    """Start the run or go on with it, until it ends."""
    program = halo_lang.parse(PROGRAM)
    try:
        result = await runtime(folder).resume(RUN)
    except UnknownRun:
        result = await runtime(folder).run(program, "Main", INPUTS, run_id=RUN)
    except RunRefused:
        return FileRunStore(folder / ".halo").load(RUN).to_json()  # killed when all was done
    return (await to_the_end(folder, result)).to_json()


async def fork(folder: Path) -> dict[str, Any]:
    """Continue the run as a new one, until that ends."""
    return (await to_the_end(folder, await runtime(folder).fork(halo_lang.parse(PROGRAM), RUN))).to_json()


async def to_the_end(folder: Path, result: RunResult) -> RunResult:
    """Answer everything, the last question first."""
    while result.status == "paused":
        question = result.interrupts[-1]
        result = await runtime(folder).signal(result.run_id, answer(folder, question), interrupt=question.id)
    return result


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    print("ready", flush=True)
    print(json.dumps(asyncio.run(fork(folder) if "--fork" in sys.argv else go_on(folder))))


if __name__ == "__main__":
    main()
