"""Cassettes: what is recorded answers again, in the same order and to the same hash chain (spec 2.9)."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import (
    Cassette,
    ConfigError,
    FileRunStore,
    Interrupt,
    ModelError,
    ReplayMiss,
    RunEvent,
    RunResult,
    ToolError,
)
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelReply, ModelRequest, ToolCall, Usage
from tests.runtime.support import FakeClock, runtime, user_text
from tests.runtime.taping import (
    AGENT,
    MAIN,
    REPO,
    TAPE,
    World,
    content,
    in_turn,
    lines,
    nobody,
    play,
    recorded_and_replayed,
)


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# --- the same run again -------------------------------------------------------------------------------------


def backwards() -> Callable[[ModelRequest], Awaitable[str]]:
    """Three replies to one request that come in the reverse order of the requests."""
    gates = [asyncio.Event() for _ in range(4)]
    gates[3].set()
    numbers = iter(range(3))

    async def answer(request: ModelRequest) -> str:
        number = next(numbers)
        await gates[number + 1].wait()
        gates[number].set()
        return f"reply {number}"

    return answer


def slow(first: str) -> Callable[[ModelRequest], Any]:
    """The agent A.`first` answers when A.fails has been asked; whatever else is asked never ends."""
    failing = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        if request.method == "fails":
            failing.set()
            await asyncio.sleep(0)
            raise ModelError("no such model", status=404)
        if request.method == first:
            return "first"
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    return answer


async def one_tool(request: ModelRequest) -> ModelReply | str:
    if request.messages[-1].role == "tool":
        return f"I saw {request.messages[-1].content}"
    call = ToolCall("call_1", "Repo_get_issue", '{"number": 7}')
    return ModelReply("", (call,), "tool", Usage(10, 5), opaque={"openai": {"model": "m", "signature": "s"}})


def broken(method: str, args: JsonObject) -> Json:
    raise ToolError("there is no issue 7", status=404)


CASES: list[tuple[str, str, Callable[[], World], Json]] = [
    ("two stages", f"{AGENT}{MAIN}|> A.one() |> A.two()", lambda: World(user_text), 1),
    ("equal requests side by side", f"{AGENT}{MAIN}|* each(y in x) => A.go()", lambda: World(backwards()), [1, 1, 1]),
    (
        "a retry",
        f"@retry(2, 1h)\n{AGENT}{MAIN}|> A.go()",
        lambda: World(in_turn(ModelError("busy", retryable=True, status=429, retry_after=60), "ok")),
        1,
    ),
    (
        "a service that asks to wait too long",
        f"@retry(2, 1h)\n{AGENT}{MAIN}|> A.go()",
        lambda: World(in_turn(ModelError("busy", retryable=True, status=429, retry_after=3600))),
        1,
    ),
    ("a failure", f"{AGENT}{MAIN}|> A.go()", lambda: World(in_turn(ModelError("no", status=400, detail="d"))), 1),
    ("a failed sibling", f"{AGENT}{MAIN}|* {{ A.one(), A.fails(), A.waits() }}", lambda: World(slow("one")), 1),
    (
        "failures that stay",
        f'{AGENT}{MAIN}|* each(y in x, onError: "keep") => A.go(y)',
        lambda: World(in_turn("a", ModelError("no"), "c")),
        [1, 2, 3],
    ),
    (
        "a gate in one item",
        f"{AGENT}pipeline Sub(y: Any) -> Result: y |> A.go() |? (y != 1) |> A.end()\n"
        f"{MAIN}|* each(y in x, concurrency: 2) => Sub(y)",
        lambda: World(user_text),
        [1, 2, 3, 4],
    ),
    ("the time of an agent", f"@timeout(10ms)\n{AGENT}{MAIN}|> A.waits()", lambda: World(slow("")), 1),
    (
        "a loop",
        f'{AGENT}{MAIN}|> A.go("Go.") as it |<> loop(A, "it != \\"c\\"", max: 5)',
        lambda: World(in_turn("a", "b", "c")),
        1,
    ),
    (
        "corrections",
        f'policy P : Match("^ok")\n@correct(2)\n{AGENT}  requires P\n{MAIN}|> A.go()',
        lambda: World(in_turn("no", "ok")),
        1,
    ),
    (
        "a tool that the model chooses",
        f"{REPO}{MAIN}|> A.go(tools: [Repo])",
        lambda: World(one_tool, lambda method, args: {"title": "t"}),
        1,
    ),
    ("a tool that fails", f"{REPO}{MAIN}|> A.go(tools: [Repo])", lambda: World(one_tool, broken), 1),
    (
        "a tool stage and figures that flow on",
        f"{REPO}{MAIN}|> Repo.get_issue(7) |> A.go() |> System.Value(context.meta)",
        lambda: World(lambda request: ModelReply("hi", usage=Usage(1000, 100)), lambda method, args: [1, "ü"]),
        1,
    ),
    (
        "a budget",
        f"policy P : MaxCalls(1)\n{AGENT}  requires P\n{MAIN}|> A.one() |> A.two()",
        lambda: World(user_text),
        1,
    ),
]


@pytest.mark.parametrize(("text", "world", "value"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_a_recorded_run_comes_out_the_same_with_nobody_to_ask(
    text: str, world: Callable[[], World], value: Json
) -> None:
    made = world()
    first = await play(text, Cassette.record(TAPE), made, value, env={"TOKEN": "a secret token"})
    again = await play(text, Cassette.replay(TAPE), nobody(), value)  # without the token
    assert made.asked
    assert (again.status, again.output, again.head) == (first.status, first.output, first.head)
    assert again.context == first.context
    assert repr(again.error) == repr(first.error)
    assert type(again.error) is not ReplayMiss


@pytest.mark.parametrize("count", [2, 9, 40, 150])
async def test_what_came_in_the_moment_of_a_failure_comes_from_the_cassette_too(count: int) -> None:
    gates, numbers = [asyncio.Event() for _ in range(count)], itertools.count()

    async def answer(request: ModelRequest) -> str:
        number = next(numbers)
        if number == count - 1:
            for gate in random.Random(count).sample(gates, count):
                gate.set()
        await gates[number].wait()
        if number % 7 == 1:
            raise ModelError("broken", status=500)
        return "fine"

    text = f"{AGENT}pipeline One(y: Any) -> Result: y |> A.go()\n{MAIN}|* each(y in x, concurrency: 500) => One(y)"
    first, again = await recorded_and_replayed(text, World(answer), list(range(count)))
    assert str(first.error).startswith("broken")
    assert again.context.trace == first.context.trace
    assert again.context.meta["tokens"] == first.context.meta["tokens"]


async def test_what_a_shadow_said_is_in_the_cassette_too() -> None:
    text = f"{AGENT}@shadow(A)\nagent B [openai/gpt-4o]\n{MAIN}|> A.go()"
    first, again = await recorded_and_replayed(text, World(lambda request: f"{request.agent} says so"))
    assert again.context.meta["shadow"] == first.context.meta["shadow"]
    assert again.context.meta["shadow"][0]["output"] == "B says so"


@pytest.mark.parametrize(
    "failure", [ModelError("busy", retryable=True, retry_after=60), ModelError("cut", retryable=True), None]
)
async def test_waits_before_another_try_are_left_out(failure: ModelError | None) -> None:
    text = f"@retry(2, 1h) @timeout(10ms)\n{AGENT}{MAIN}|> A.go()"
    first: Any = asyncio.get_running_loop().create_future() if failure is None else failure
    await play(text, Cassette.record(TAPE), World(in_turn(first, "ok")))
    clock = FakeClock()
    await play(text, Cassette.replay(TAPE), nobody(), clock=clock)
    assert clock.slept == [0.0]


async def test_a_reply_comes_to_observers_as_if_it_streamed() -> None:
    await play(f"{AGENT}{MAIN}|> A.go()", Cassette.record(TAPE), World(in_turn("a reply")))
    made = nobody().runtime(Cassette.replay(TAPE))
    seen: list[RunEvent] = []
    made.subscribe(seen.append)
    await made.run(halo_lang.parse(f"{AGENT}{MAIN}|> A.go()"), "Main", {"x": 1})
    told = [event.to_json() for event in seen]
    assert [event["text"] for event in told if event["type"] == "model_delta"] == ["a reply"]


async def test_a_model_that_answered_in_anothers_place_is_not_needed_again() -> None:
    text = f"{AGENT}{MAIN}|> A.go() |> System.Value(context.meta.cost)"
    world = World(lambda request: ModelReply("hi", usage=Usage(1000, 100), model_used=request.model))
    first = await play(text, Cassette.record(TAPE), world, model="openai/gpt-4o")
    again = await play(text, Cassette.replay(TAPE), nobody())
    assert again.head == first.head
    assert again.output == pytest.approx(0.0035)
    assert again.context.meta["calls"][0]["modelUsed"] == "openai/gpt-4o"


# --- an edited program --------------------------------------------------------------------------------------


async def test_equal_requests_that_have_moved_take_their_answers_in_the_order_of_the_program() -> None:
    await play(f"{AGENT}{MAIN}|* each(y in x) => A.go()", Cassette.record(TAPE), World(backwards()), [1, 1, 1])
    moved = f"{AGENT}{MAIN}|> System.Log() |* each(y in x) => A.go()"
    result = await play(moved, Cassette.replay(TAPE), nobody(), [1, 1, 1])
    assert result.output == ["reply 0", "reply 1", "reply 2"]


MISSES = [
    (
        'A.go("Say it briefly.")',
        r'in the nearest one (line 2) messages.0.content was "Task: go\n\nInstructions:\nSay it.\n\nInput:\n1", '
        r'and is "Task: go\n\nInstructions:\nSay it briefly.\n\nInput:\n1"',
    ),
    ('A.go("Say it.", temperature: 0.5)', "(line 2) temperature was not there, and is 0.5"),
    ('System.Value(2) |> A.go("Say it.", max_tokens: 9)', "(line 2) messages.0.content was "),
    ('A.went("Say it.")', "A.went: tape.jsonl has no request of it, only of A.go"),
]


@pytest.mark.parametrize(("call", "reason"), MISSES)
async def test_a_miss_says_which_call_it_is_and_what_differs(call: str, reason: str) -> None:
    await play(f'{AGENT}{MAIN}|> A.go("Say it.")', Cassette.record(TAPE), World(in_turn("ok")))
    result = await play(f"{AGENT}{MAIN}\n  |> {call}", Cassette.replay(TAPE), nobody())
    error = result.error
    assert isinstance(error, ReplayMiss)
    assert reason in error.message
    assert (error.place and error.place.line, error.hint and error.hint[-29:]) == (3, "--replay-else-live tape.jsonl")


async def test_another_model_in_the_program_is_a_miss() -> None:
    await play(f"{AGENT}{MAIN}|> A.go()", Cassette.record(TAPE), World(in_turn("ok")))
    result = await play(f"{AGENT.replace('4o-mini', '5')}{MAIN}|> A.go()", Cassette.replay(TAPE), nobody())
    assert 'model was "openai/gpt-4o-mini", and is "openai/gpt-5"' in str(result.error)


async def test_a_request_made_once_more_than_it_was_recorded_is_a_miss() -> None:
    await play(f"{AGENT}{MAIN}|* each(y in x) => A.go()", Cassette.record(TAPE), World(lambda _: "ok"), [1, 1])
    result = await play(f"{AGENT}{MAIN}|* each(y in x) => A.go()", Cassette.replay(TAPE), nobody(), [1, 1, 1])
    assert "A.go: tape.jsonl has this request 2 times only" in str(result.error)


async def test_a_miss_is_no_failure_that_a_program_may_keep() -> None:
    text = f'{AGENT}{MAIN}|* each(y in x, onError: "keep") => A.go(y)'
    await play(text, Cassette.record(TAPE), World(lambda _: "ok"), [1])
    result = await play(text, Cassette.replay(TAPE), nobody(), [1, 2])
    assert isinstance(result.error, ReplayMiss)


async def test_what_was_broken_off_is_a_miss_when_nothing_breaks_it_off_again() -> None:
    text = f"{AGENT}{MAIN}|* {{ A.fails(), A.waits() }}"
    await play(text, Cassette.record(TAPE), World(slow("")))
    assert [line["outcome"] for line in lines()] == ["failed", "cancelled"]
    result = await play(f"{AGENT}{MAIN}|* {{ System.Value(1), A.waits() }}", Cassette.replay(TAPE), nobody())
    assert "A.waits: it was broken off when tape.jsonl was recorded" in str(result.error)


# --- else live ----------------------------------------------------------------------------------------------


async def test_else_live_asks_only_what_is_missing_and_adds_it() -> None:
    await play(f"{AGENT}{MAIN}|> A.one()", Cassette.record(TAPE), World(in_turn("1")))
    longer = f"{AGENT}{MAIN}|> A.one() |> A.two()"
    world = World(in_turn("2"))
    result = await play(longer, Cassette.replay(TAPE, else_live=True), world)
    assert (result.output, world.asked) == ("2", 1)
    assert (await play(longer, Cassette.replay(TAPE), nobody())).head == result.head


async def test_else_live_begins_a_cassette_that_is_not_there() -> None:
    program, world = f"{AGENT}{MAIN}|> A.one()", World(in_turn("1"))
    first = await play(program, Cassette.replay(TAPE, else_live=True), world)
    again = await play(program, Cassette.replay(TAPE, else_live=True), world)
    assert (first.output, again.output, world.asked) == ("1", "1", 1)
    assert (await play(program, Cassette.replay(TAPE), nobody())).head == first.head


async def test_else_live_needs_a_key_only_for_what_is_missing() -> None:
    text = f"{AGENT}{MAIN}|> A.one()"
    await play(text, Cassette.record(TAPE), World(in_turn("1")))
    keyless = runtime(cassette=Cassette.replay(TAPE, else_live=True))
    result = await keyless.run(halo_lang.parse(f"{text} |> A.two()"), "Main", {"x": 1})
    assert "OPENAI_API_KEY is not set" in str(result.error)
    assert result.context.data["A"] == {"one": "1"}


async def test_else_live_tells_of_a_tool_without_its_variable_where_it_is_called() -> None:
    await play(f"{AGENT}{MAIN}|> A.one()", Cassette.record(TAPE), World(in_turn("1")))
    result = await play(f"{REPO}{MAIN}|> Repo.get_issue(7)", Cassette.replay(TAPE, else_live=True), nobody())
    assert isinstance(result.error, ToolError)
    assert "the environment variable TOKEN is not set" in result.error.message


# --- runs in several parts ----------------------------------------------------------------------------------

ASKING = f"{AGENT}{MAIN}|> A.one() |! yield('Go on?') as answer |> A.two(answer)".replace("'", '"')


async def test_a_run_that_pauses_is_recorded_over_its_parts() -> None:
    store = FileRunStore(Path(".halo"))
    paused = await play(ASKING, Cassette.record(TAPE), World(in_turn("1")), store=store)
    going_on = World(in_turn("2")).runtime(Cassette.record(TAPE, anew=False), store=store)
    first = await going_on.signal(paused.run_id, "yes")
    assert [line["request"]["method"] for line in lines()] == ["one", "two"]
    assert await replayed(ASKING) == first.head


async def test_a_recording_that_begins_with_the_second_part_has_the_first_too() -> None:
    store = FileRunStore(Path(".halo"))
    paused = await play(ASKING, Cassette.record("other.jsonl"), World(in_turn("1")), store=store)
    going_on = World(in_turn("2")).runtime(Cassette.record(TAPE), store=store)
    first = await going_on.signal(paused.run_id, "yes")
    assert await replayed(ASKING) == first.head


async def test_a_fork_is_recorded_whole() -> None:
    store = FileRunStore(Path(".halo"))
    text = f"{AGENT}{MAIN}|> A.one() |> A.two()"
    made = World(in_turn("1", "2")).runtime(Cassette.record("other.jsonl"), store=store)
    old = await made.run(halo_lang.parse(text), "Main", {"x": 1}, keep=True)
    await made.close()
    edited = text.replace("A.two()", "A.three()")
    world = World(in_turn("3"))
    fork = await world.runtime(Cassette.record(TAPE), store=store).fork(halo_lang.parse(edited), old.run_id)
    assert (world.asked, fork.output) == (1, "3")
    assert await replayed(edited) == fork.head


async def test_a_replayed_run_that_pauses_takes_each_answer_once() -> None:
    text = f'{AGENT}{MAIN}|> A.one() |! yield("Go on?") |> System.Value(1) |> A.one()'
    store = FileRunStore(Path(".halo"))

    async def both(cassette: Callable[[], Cassette], world: World) -> RunResult:
        paused = await play(text, cassette(), world, store=store)
        going_on = world.runtime(cassette(), store=store)
        result = await going_on.signal(paused.run_id, 1)
        await going_on.close()
        return result

    first = await both(lambda: Cassette.record(TAPE, anew=not Path(TAPE).exists()), World(in_turn("a", "b")))
    again = await both(lambda: Cassette.replay(TAPE), nobody())
    assert (first.output, again.head) == ("b", first.head)


async def test_the_recording_of_another_run_is_not_written_over_by_a_run_that_goes_on() -> None:
    store = FileRunStore(Path(".halo"))
    paused = await play(ASKING, Cassette.record("own.jsonl"), World(in_turn("1")), store=store)
    await play(ASKING, Cassette.record(TAPE), World(in_turn("1")))
    before = content()
    going_on = nobody().runtime(Cassette.record(TAPE, anew=False), store=store)
    with pytest.raises(ConfigError, match=r"tape\.jsonl holds another run by now"):
        await going_on.signal(paused.run_id, "yes")
    assert content() == before


async def test_a_stopped_run_leaves_what_it_had_and_goes_on_from_there() -> None:
    store, text = FileRunStore(Path(".halo")), f"{AGENT}{MAIN}|> A.one() |> A.waits()"
    begun = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        if request.method == "one":
            return "1"
        begun.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    made = World(answer).runtime(Cassette.record(TAPE), store=store)
    running = asyncio.create_task(made.run(halo_lang.parse(text), "Main", {"x": 1}, run_id="r1"))
    await begun.wait()
    made.stop("r1")
    assert (await running).status == "interrupted"
    await made.close()
    assert [line["path"] for line in lines()] == ["Main/0/step1/try1"]
    first = await World(in_turn("2")).runtime(Cassette.record(TAPE, anew=False), store=store).resume("r1")
    assert await replayed(text) == first.head


async def replayed(text: str) -> str | None:
    """The head of a run that the cassette alone answers, its question answered with yes."""
    made = nobody().runtime(Cassette.replay(TAPE))

    async def yes(interrupt: Interrupt) -> Json:
        return "yes"

    made.on_interrupt(yes)
    return (await made.run(halo_lang.parse(text), "Main", {"x": 1})).head
