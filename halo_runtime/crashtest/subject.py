"""The run that is tried: how one process begins it, and how another one goes on with it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import halo_lang
from halo_lang.records import record
from halo_lang.source import Source
from halo_runtime.crashtest.moments import Diary, Moments, MomentsModel, MomentsStore
from halo_runtime.engine.clock import SystemClock
from halo_runtime.errors import RunRefused
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing
from halo_runtime.models.script import Script
from halo_runtime.models.scripted import ScriptedModel
from halo_runtime.results import Interrupt
from halo_runtime.runtime import PAUSE, Pause, Runtime
from halo_runtime.store.verification import verify_journal

RUN_ID = "crashtest"
DOUBT = "/doubt"
"""What the path of a question about an effect in doubt ends with, behind the effect's."""

_ANSWERS = ("human", "event")

Answers = Callable[[Interrupt], Json | Missing]


@record
class Subject:
    """A program with everything that a run of it needs. `answers` gives the next answer to a question, if any.

    `needs_files`: its tools may use what lies beside it.
    """

    source: Source
    pipeline: str
    inputs: JsonObject
    replies: Script | None
    env: Mapping[str, str]
    answers: Answers
    needs_files: bool


class Hurried(SystemClock):
    """A clock on which waiting takes no time: what a run waits for between two tries is not what is tried here."""

    async def sleep(self, seconds: float) -> None:
        """Let others have their turn."""
        await asyncio.sleep(0)


class Attempt:
    """One run of the subject, in `folder`: its program, journal and diary lie there.

    Each method is the work of one process.
    """

    def __init__(self, subject: Subject, folder: Path) -> None:
        self._subject = subject
        self._folder = folder
        self.diary = Diary(folder / "diary.jsonl")

    def begin(self, fatal: int | None, given: Mapping[str, Json]) -> JsonObject:
        """Run it until the moment number `fatal`, or to its end; `given` are answers to questions by path."""
        moments = Moments(self.diary, fatal)
        runtime = self._runtime(moments, given)
        program = halo_lang.parse(Source(self._subject.source.text, str(self._program)))
        running = runtime.run(program, self._subject.pipeline, self._subject.inputs, run_id=RUN_ID, keep=True)
        result = asyncio.run(running)
        return self._outcome(result.to_json())

    def go_on(self, given: Mapping[str, Json]) -> JsonObject:
        """Go on with what the process before has left."""
        runtime = self._runtime(Moments(self.diary, None), given)
        try:
            return self._outcome(asyncio.run(runtime.resume(RUN_ID)).to_json())
        except RunRefused:  # it had ended
            return self._outcome(self._store.load(RUN_ID).to_json())

    @property
    def _program(self) -> Path:
        return self._folder / "program" / Path(self._subject.source.path).name

    @property
    def _store(self) -> MomentsStore:
        return MomentsStore(self._folder / ".halo", Moments(self.diary, None))

    def _outcome(self, result: JsonObject) -> JsonObject:
        """What is held against the run that nobody killed."""
        verdict = verify_journal(self._store, RUN_ID)
        return {
            "status": result["status"],
            "output": result["output"],
            "error": None if result["error"] is None else result["error"]["type"],
            "interrupts": [question["id"] for question in result["interrupts"]],
            "data": result["context"]["data"],
            "cost": result["context"]["meta"]["cost"],
            "calls": len(result["context"]["meta"]["calls"]),
            "head": result["context"]["trace"][-1]["hash"],
            "chain": str(verdict),
        }

    def _runtime(self, moments: Moments, given: Mapping[str, Json]) -> Runtime:
        subject = self._subject
        os.chdir(self._program.parent)
        replies = None if subject.replies is None else MomentsModel(ScriptedModel(subject.replies), moments)
        store = MomentsStore(self._folder / ".halo", moments)
        runtime = Runtime(env=subject.env, replies=replies, clock=Hurried(), store=store)

        async def answer(question: Interrupt) -> Json | Pause:
            if question.kind == "in_doubt":
                return _became_of(question, self.diary)
            moments.reach("question", question.path)
            if question.kind == "limit":  # what a kill took counts, so a killed run comes to its limits earlier
                return question.choices[0]
            known = given[question.path] if question.path in given else subject.answers(question)
            return PAUSE if isinstance(known, Missing) else known

        runtime.on_interrupt(answer)
        runtime.on_listen(answer)
        return runtime


def answers_given(diary: Diary) -> dict[str, Json]:
    """The answers that a run has got, by the paths of their questions."""
    return {moment.path: moment.result for moment in diary if moment.boundary == "done" and moment.kind in _ANSWERS}


def _became_of(question: Interrupt, diary: Diary) -> Json:
    """What a person who has looked says of an effect in doubt: it was done, and gave this, or it was not."""
    effect = question.path.removesuffix(DOUBT)
    done = next((m.result for m in diary if m.boundary == "done" and m.path == effect), MISSING)
    return "retry" if isinstance(done, Missing) else {"skip": done["value"]}
