"""The event stream, system events, and runs beside each other (spec 2.7, 2.8)."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

import halo_lang
from halo_runtime import Journal, verify_trace
from halo_runtime.engine.events import (
    ModelDelta,
    ModelResponded,
    RunEvent,
    RunStarted,
    SystemEvent,
)
from halo_runtime.models.base import ModelReply, ModelRequest, ToolCall, Usage
from tests.runtime.support import StubModel, run, runtime, stubbed

AGENT = "agent A [openai/gpt-4o-mini]\n"


async def watched(text: str, replies: dict[str, Any] | None = None, **inputs: Any) -> list[RunEvent]:
    """All events of a run of `Main`."""
    world = runtime(replies or {})
    events: list[RunEvent] = []
    world.subscribe(events.append)
    await world.run(halo_lang.parse(text), "Main", inputs, run_id="r")
    return events


async def test_events_come_in_order_from_the_first_to_the_last() -> None:
    text = f'{AGENT}pipeline Main(x: Any) -> Result: x |> System.Print("hi {{{{x}}}}") |> A.go()'
    events = await watched(text, {"A": "reply"}, x=1)
    assert [event.type for event in events] == [
        "run_started", "stage_started", "printed", "stage_finished", "stage_started", "agent_started",
        "model_requested", "model_responded", "agent_finished", "stage_finished", "run_finished",
    ]  # fmt: skip
    documents = [event.to_json() for event in events]
    assert json.loads(json.dumps(documents)) == documents
    assert {document["runId"] for document in documents} == {"r"}
    assert documents[2]["text"] == "hi 1"
    assert documents[-1] == {
        "type": "run_finished", "runId": "r", "path": "Main", "status": "completed", "output": "reply", "error": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stages", "outcomes"),
    [
        ("|? (false)", ["halted"]),
        ('|> System.Fail("x")', ["failed"]),
        ('|! yield("?")', ["paused"]),
        ("|* { System.Value(1), Stop() }", ["completed", "halted", "halted", "halted"]),
    ],
)
async def test_every_stage_that_starts_ends_with_its_outcome(stages: str, outcomes: list[str]) -> None:
    text = f"pipeline Stop() -> Result: 1 |? (false)\npipeline Main() -> Result: 1 {stages}"
    documents = [event.to_json() for event in await watched(text)]
    started = [document["path"] for document in documents if document["type"] == "stage_started"]
    finished = {document["path"]: document["outcome"] for document in documents if document["type"] == "stage_finished"}
    assert sorted(started) == sorted(finished)
    assert sorted(finished.values()) == sorted(outcomes)


async def test_text_that_streams_reaches_observers_as_it_comes() -> None:
    class Streaming(StubModel):
        async def complete(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            for piece in ("one ", "two"):
                on_delta(piece)
            return ModelReply("one two")

    world = runtime()
    world.register_model_provider("openai", lambda env: Streaming(lambda request: asyncio.sleep(0, "")))
    events: list[RunEvent] = []
    world.subscribe(events.append)
    await world.run(halo_lang.parse(f"{AGENT}pipeline Main() -> Result: |> A.go()"))
    assert [event.text for event in events if isinstance(event, ModelDelta)] == ["one ", "two"]


# --- what a call tells ---------------------------------------------------------------------------------------


async def test_a_request_tells_its_settings_and_a_reply_who_gave_it_and_how_it_ended() -> None:
    async def answer(request: ModelRequest) -> ModelReply:
        call = ToolCall("1", "Sh_run", "{}")
        return ModelReply("", (call,), "tool", Usage(3, 2, cached=1), "real-model")

    world, _ = stubbed(answer)
    documents: list[dict[str, Any]] = []
    world.subscribe(lambda event: documents.append(event.to_json()))
    text = "agent A [openai/gpt-4o-mini, temp: 0, max_steps: 1]\npipeline Main() -> Result: 1 |> A.go(max_tokens: 5)"
    assert (await world.run(halo_lang.parse(text))).status == "failed"
    by_type = {document["type"]: document for document in documents}
    assert by_type["model_requested"]["settings"] == {"temperature": 0, "max_tokens": 5}
    replied = by_type["model_responded"]
    assert (replied["model"], replied["finish"], replied["reused"]) == ("real-model", "tool", False)
    assert replied["usage"] == {"input": 3, "output": 2, "cached": 1, "reasoning": None, "cache_written": None}
    assert replied["toolCalls"] == [{"id": "1", "name": "Sh_run", "arguments": "{}"}]
    assert by_type["agent_started"]["model"] == "openai/gpt-4o-mini"
    assert by_type["agent_finished"]["outcome"] == "failed"
    assert by_type["agent_finished"]["error"]["type"] == "StepLimitError"


async def test_a_run_that_goes_on_marks_what_its_journal_had() -> None:
    text = f'{AGENT}pipeline Main() -> Result: 1 |> A.go() |! yield("?") |> A.go()'
    world = runtime({"A": ["one", "two"]})
    program = halo_lang.parse(text)
    await world.run(program, run_id="r")
    events: list[RunEvent] = []
    world.subscribe(events.append)
    await world.signal("r", "yes")
    assert [event.reused for event in events if isinstance(event, ModelResponded)] == [True, False]
    assert isinstance(events[0], RunStarted)
    assert events[0].continued


# --- observers ----------------------------------------------------------------------------------------------


async def test_a_failing_observer_is_left_out_and_the_others_go_on() -> None:
    world = runtime({})
    good: list[RunEvent] = []
    seen: list[RunEvent] = []

    def bad(event: RunEvent) -> None:
        seen.append(event)
        raise RuntimeError("display fault")

    world.subscribe(bad)
    world.subscribe(good.append)
    result = await world.run(halo_lang.parse("pipeline Main() -> Result: 1 |> System.Value(2)"))
    assert (result.output, len(seen)) == (2, 1)
    assert good[-1].type == "run_finished"


async def test_an_observer_that_wants_to_exit_takes_no_event_from_the_others() -> None:
    def leave(_event: RunEvent) -> None:
        raise SystemExit(3)

    world = runtime({"A": "reply"})
    events: list[RunEvent] = []
    world.subscribe(leave)
    world.subscribe(events.append)
    result = await world.run(halo_lang.parse(f"{AGENT}pipeline Main(x: Any) -> Result: x |> A.go()"), "Main", {"x": 1})
    assert result.status == "completed"
    assert events[-1].type == "run_finished"


async def test_a_slow_observer_does_not_hold_the_run() -> None:
    released = threading.Event()

    async def answer(request: ModelRequest) -> str:
        if request.method == "last":
            released.set()
        return "ok"

    world, _ = stubbed(answer)
    world.subscribe(lambda event: bool(released.wait(5)) and None)
    result = await world.run(halo_lang.parse(f"{AGENT}pipeline Main() -> Result: |> A.first() |> A.last()"))
    assert (result.status, released.is_set()) == ("completed", True)


async def test_who_is_no_longer_subscribed_sees_no_further_run() -> None:
    world = runtime({})
    events: list[RunEvent] = []
    leave = world.subscribe(events.append)
    program = halo_lang.parse("pipeline Main() -> Result: 1")
    await world.run(program)
    count = len(events)
    leave()
    leave()
    await world.run(program)
    assert len(events) == count == 2


# --- system events ------------------------------------------------------------------------------------------

PUBLISH = 'pipeline Main(x: Any) -> Result: x |> System.Publish({}) |> System.Notify("n")'


async def test_the_host_is_told_of_each_system_event_once() -> None:
    world = runtime({})
    told: list[SystemEvent] = []
    world.on_system_event(told.append)
    program, journal = halo_lang.parse(PUBLISH.format("[x, 2]")), Journal()
    result = await world.run(program, "Main", {"x": 1}, journal=journal, run_id="r")
    assert [(event.name, event.payload) for event in told] == [("Publish", [1, 2]), ("Notify", "n")]
    replayed = await world.run(program, "Main", {"x": 1}, journal=journal, run_id="r")
    assert len(told) == 2
    assert replayed.to_json() == result.to_json()


def test_an_events_payload_is_its_argument_else_the_flowing_value_and_the_value_passes_through() -> None:
    result = run(PUBLISH.format(""), {"x": {"k": 1}})
    assert result.output == {"k": 1}
    assert result.context.meta["events"] == [
        {"name": "Publish", "payload": {"k": 1}},
        {"name": "Notify", "payload": "n"},
    ]


async def test_a_host_that_fails_to_take_an_event_fails_the_run_there() -> None:
    def broken(event: SystemEvent) -> None:
        raise OSError("no route to host")

    world = runtime({})
    world.on_system_event(broken)
    result = await world.run(halo_lang.parse(PUBLISH.format("1")), "Main", {"x": 1})
    assert "Publish" in str(result.error)
    assert "no route to host" in str(result.error)
    assert result.error is not None
    assert result.error.place is not None
    assert result.error.place.stage == "|> System.Publish"


# --- stopping and runs beside each other --------------------------------------------------------------------


async def test_a_stopped_run_ends_as_interrupted_with_its_context_kept_and_its_trace_open() -> None:
    world, model = stubbed(lambda request: silent(request) if request.method == "second" else asyncio.sleep(0, "one"))

    async def silent(request: ModelRequest) -> str:
        assert world.stop("r")
        await asyncio.Event().wait()
        return ""

    program = halo_lang.parse(f"{AGENT}pipeline Main() -> Result: |> A.first() |> A.second() |> A.third()")
    result = await world.run(program, run_id="r")
    assert (result.status, result.output, result.error) == ("interrupted", None, None)
    assert result.context.data["first"] == "one"
    assert str(verify_trace(result.context.trace)) == "open"
    assert len(model.requests) == 2
    assert not world.stop("r")


async def test_a_run_that_has_its_result_is_not_stopped_any_more() -> None:
    world, loop = runtime({}), asyncio.get_running_loop()

    def late(event: RunEvent) -> None:
        if event.type == "run_finished":
            stopped = threading.Event()
            loop.call_soon_threadsafe(lambda: (world.stop("r"), stopped.set()))
            stopped.wait(5)

    world.subscribe(late)
    assert (await world.run(halo_lang.parse("pipeline Main() -> Result: 7"), run_id="r")).output == 7


async def test_two_runs_of_one_runtime_at_once_stay_apart() -> None:
    both = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        if len(model.requests) == 2:
            both.set()
        await both.wait()
        return request.messages[-1].content[-1]

    world, model = stubbed(answer)
    program = halo_lang.parse(f"{AGENT}pipeline Main(x: Any) -> Result: x |> A.go(x)")
    first, second = await asyncio.gather(*(world.run(program, "Main", {"x": x}) for x in (1, 2)))
    assert (first.output, second.output) == ("1", "2")
    assert first.run_id != second.run_id
    assert len(first.context.meta["calls"]) == len(second.context.meta["calls"]) == 1


async def test_a_run_id_is_not_given_to_two_runs_at_once() -> None:
    started = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        started.set()
        await asyncio.sleep(0)
        return "ok"

    world, _ = stubbed(answer)
    program = halo_lang.parse(f"{AGENT}pipeline Main() -> Result: |> A.go()")
    first = asyncio.create_task(world.run(program, run_id="r"))
    await started.wait()
    with pytest.raises(ValueError, match="r"):
        await world.run(program, run_id="r")
    assert (await first).output == "ok"


async def test_closing_the_runtime_closes_its_models() -> None:
    world, model = stubbed(lambda request: asyncio.sleep(0, "ok"))
    await world.run(halo_lang.parse(f"{AGENT}pipeline Main() -> Result: |> A.go()"))
    await world.close()
    assert model.closed
