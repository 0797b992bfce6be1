"""The effect boundary: a journal replays a run without doing anything, and any part of it is done only once."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import halo_lang
from halo_runtime import PAUSE, Journal, RunResult, Runtime, ScriptedModel, verify_trace
from halo_runtime.engine.events import RunEvent
from halo_runtime.engine.journal import EffectRecord
from tests.runtime.runnable import Runnable, runnables
from tests.runtime.support import FakeClock


class World:
    """The outside of a run, which counts what is asked of it."""

    def __init__(self, program: Runnable, *, answers: bool = True) -> None:
        self.asked = 0
        self.events: list[RunEvent] = []
        self.model = ScriptedModel(program.replies)
        self.runtime = Runtime(env={}, replies=self, clock=FakeClock())
        self.runtime.subscribe(self.events.append)
        self.runtime.on_interrupt(self._answer)
        self.runtime.on_listen(self._answer)
        self._answers = program.answers if answers else (PAUSE,)

    async def _answer(self, interrupt: Any) -> Any:
        self.asked += 1
        return self._answers[len(interrupt.path) % len(self._answers)]

    async def complete(self, request: Any, on_delta: Any = None) -> Any:
        self.asked += 1
        return await self.model.complete(request, on_delta)

    def missing(self) -> None:
        return None

    def restore(self, cursors: Any) -> None:
        self.model.restore(cursors)

    async def close(self) -> None:
        await self.model.close()

    def run(self, program: Runnable, journal: Journal) -> RunResult:
        parsed = halo_lang.parse(program.text)
        return asyncio.run(self.runtime.run(parsed, "Main", program.inputs, journal=journal, run_id="run"))


def by_path(events: list[RunEvent]) -> dict[str, list[dict[str, Any]]]:
    """Events of parallel paths interleave; those of one path have an order. What a journal had already is marked."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        found[event.path].append({k: v for k, v in event.to_json().items() if k not in ("continued", "reused")})
    return dict(found)


def asked(journal: Journal) -> list[EffectRecord]:
    return [record for record in journal if record.kind in ("model", "human", "event") and "event" not in record.path]


@settings(max_examples=60)
@given(runnables())
def test_replaying_a_runs_journal_does_nothing_and_gives_the_same_run(program: Runnable) -> None:
    journal = Journal()
    live = World(program)
    result = live.run(program, journal)
    length = len(journal)

    again = World(program)
    replayed = again.run(program, journal)

    assert again.asked == 0
    assert len(journal) == length
    assert replayed.to_json() == result.to_json()
    assert replayed.origins == result.origins
    assert by_path(again.events) == by_path(live.events)


@settings(max_examples=60)
@given(runnables(), st.data())
def test_a_cut_journal_is_kept_and_only_the_rest_is_done(program: Runnable, data: st.DataObject) -> None:
    journal = Journal()
    World(program).run(program, journal)
    kept = journal.prefix(data.draw(st.integers(0, len(journal))))
    before = list(kept)

    rest = World(program)
    rest.run(program, kept)

    assert list(kept)[: len(before)] == before
    assert rest.asked == len(asked(kept)) - len(asked(Journal(before)))


@settings(max_examples=25)
@given(runnables())
def test_records_survive_json(program: Runnable) -> None:
    journal = Journal()
    World(program).run(program, journal)
    copied = Journal(EffectRecord.from_json(record.to_json()) for record in journal)
    assert list(copied) == list(journal)


@settings(max_examples=40)
@given(runnables())
def test_answering_one_question_after_the_other_comes_to_the_end_of_a_handled_run(program: Runnable) -> None:
    handled = World(program).run(program, Journal())
    world = World(program, answers=False)
    parsed = halo_lang.parse(program.text)

    async def answer_all() -> RunResult:
        result = await world.runtime.run(parsed, "Main", program.inputs, run_id="run")
        while result.status == "paused":
            question = result.interrupts[0]
            reply = program.answers[len(question.path) % len(program.answers)]
            result = await world.runtime.signal("run", reply, interrupt=question.id)
        return result

    result = asyncio.run(answer_all())
    assert result.status == handled.status
    assert result.output == handled.output
    if result.status != "failed":  # how far siblings of a failed arm came depends on when it failed
        assert result.context.trace == handled.context.trace


@settings(max_examples=40)
@given(runnables())
def test_every_ended_run_has_a_valid_trace(program: Runnable) -> None:
    result = World(program).run(program, Journal())
    assert str(verify_trace(result.context.trace, head=result.head)) == "valid"


@settings(max_examples=25)
@given(runnables())
def test_every_result_knows_effects_that_are_in_the_journal(program: Runnable) -> None:
    journal = Journal()
    result = World(program).run(program, journal)
    known = {record.path for record in journal} | {"input"}
    assert all(set(origins) <= known for origins in result.origins.values())
    assert all(set(record.origins) | set(record.guards) <= known for record in journal)


def test_what_a_loop_rests_on_does_not_grow_with_its_rounds() -> None:
    rounds = "|> A.go() |<> loop(A, \"context.data.go == 'no'\", max: 50)"
    text = f"agent A [openai/gpt-4o-mini]\npipeline Main(text: String, xs: Array) -> Result: text {rounds}"
    program = Runnable(text, {"text": "t", "xs": []}, {"A.go": ["no"] * 40 + ["yes"]}, ("yes",))
    journal = Journal()
    World(program).run(program, journal)
    assert [len(record.guards) for record in journal] == [0] + [1] * 40
