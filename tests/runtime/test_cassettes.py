"""Cassettes: what is recorded answers again, in the same order and to the same hash chain (spec 2.9)."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Runtime,
    ToolError,
)
from halo_runtime.cassettes.format import Exchange, header, read
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta, ToolCall, Usage
from tests.runtime.support import FakeClock, StubModel, StubTool, runtime, user_text

AGENT = "agent A [openai/gpt-4o-mini]\n"
MAIN = "pipeline Main(x: Any) -> Result: x "
TAPE = "tape.jsonl"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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


REPO = "tool Repo : GitHub(Env.TOKEN)\nagent A [openai/gpt-4o-mini]\n  equips Repo\n"
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


# --- the file -----------------------------------------------------------------------------------------------


async def test_a_cassette_is_its_owners_alone_and_holds_no_secret() -> None:
    secret = "sk-very-secret-key"
    world = World(
        lambda request: ModelReply(f"key {secret}", opaque={"openai": [secret]}), lambda method, args: {secret: secret}
    )
    text = f"{REPO}{MAIN}|> Repo.get_issue(7) |> A.go(x)"
    await play(text, Cassette.record(TAPE), world, secret, env={"TOKEN": secret})
    assert mode() == 0o600
    assert secret not in content()
    assert len(lines()) == 2


async def test_a_new_recording_takes_the_place_of_the_old_one() -> None:
    for reply in ("old", "new"):
        await play(f"{AGENT}{MAIN}|> A.go()", Cassette.record(TAPE), World(in_turn(reply)))
    assert [line["result"]["reply"]["text"] for line in lines()] == ["new"]


async def test_a_run_that_asks_nobody_leaves_an_old_recording_alone() -> None:
    await play(f"{AGENT}{MAIN}|> A.go()", Cassette.record(TAPE), World(in_turn("paid")))
    await play(f'{AGENT}{MAIN}|> System.Fail("no")', Cassette.record(TAPE), nobody())
    assert [line["result"]["reply"]["text"] for line in lines()] == ["paid"]


async def test_a_run_that_asks_nobody_makes_a_cassette_all_the_same() -> None:
    first, again = await recorded_and_replayed(f"{MAIN}|> System.Value(2)", nobody())
    assert (again.output, again.head) == (2, first.head)


async def test_runs_of_one_runtime_stand_in_one_cassette() -> None:
    text = halo_lang.parse(f"{AGENT}{MAIN}|> A.go()")
    made = World(in_turn("a", "b")).runtime(Cassette.record(TAPE))
    first = [await made.run(text, "Main", {"x": 1}, run_id=name) for name in ("r1", "r2")]
    await made.close()
    player = nobody().runtime(Cassette.replay(TAPE))
    again = [await player.run(text, "Main", {"x": 1}) for _ in range(2)]
    assert [result.output for result in again] == [result.output for result in first] == ["a", "b"]


async def test_two_runs_are_not_recorded_into_one_file_at_once() -> None:
    held = World(in_turn("a")).runtime(Cassette.record(TAPE))
    await held.run(halo_lang.parse(f"{AGENT}{MAIN}|> A.go()"), "Main", {"x": 1})
    with pytest.raises(ConfigError, match=r"another run is being recorded into tape\.jsonl"):
        await play(f"{AGENT}{MAIN}|> A.go()", Cassette.record(TAPE), nobody())
    await held.close()


GOOD = Exchange("r", 1, "Main/0", "tool", {"tool": "T", "method": "m"}, "done", {"value": 1, "warnings": []})
HEAD = header().decode()


def changed(**fields: Any) -> str:
    return f"{HEAD}{json.dumps(json.loads(GOOD.line()) | fields)}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the cassette tape.jsonl cannot be read: No such file"),
        ("", "tape.jsonl is empty"),
        ("\n\n", "tape.jsonl is empty"),
        ('{"Bot": "hello"}\n', "tape.jsonl is no cassette"),
        ("not JSON", "tape.jsonl is no cassette"),
        (
            '{"halo-cassette": 2, "halo": "9.1"}\n',
            "tape.jsonl has format 2, made by halo 9.1; this halo reads format 1",
        ),
        ('{"halo-cassette": "1"}\n', "halo-cassette is the number of a format"),
        (f"{HEAD}nonsense\n", "tape.jsonl:2: it is no JSON; record the run again, or take the line out"),
        (f"{HEAD}\n[1]\n", "tape.jsonl:3: an exchange has the fields run, seq, path, kind"),
        (changed(extra=1), "an exchange has the fields"),
        (changed(seq="1"), "the field seq is not as it should be"),
        (changed(kind="human"), 'the kind of an exchange is "model" or "tool"'),
        (changed(outcome="odd"), "the outcome or the result of a tool exchange is not as it should be"),
        (changed(result=None), "the outcome or the result"),
        (changed(outcome="failed", result={"type": "SystemExit", "message": "m"}), "the outcome or the result"),
        (changed(kind="model", result={"reply": {"text": 1}}), "the outcome or the result of a model exchange"),
        (f"{HEAD}{'[' * 100_000}\n", "tape.jsonl:2: it is no JSON"),
        (changed(result={"value": float("nan"), "warnings": []}), "tape.jsonl:2: it is no JSON"),
    ],
)
def test_a_file_that_is_no_good_cassette_is_refused_with_its_line(content: str | None, message: str) -> None:
    if content is not None:
        Path(TAPE).write_text(content)
    with pytest.raises(ConfigError) as caught:
        Cassette.replay(TAPE)
    assert message in caught.value.message


PLACES: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.write_text("precious notes"), "is no cassette, and is not written over"),
    (lambda path: path.write_text('{"halo-cassette": 2}\n'), "has format 2"),
    (lambda path: path.mkdir(), "cannot be written: Is a directory"),
    (lambda path: path.symlink_to("/dev/null"), "it is no regular file"),
    (lambda path: path.symlink_to("gone/away"), "cannot be written: there is no folder"),
]


@pytest.mark.parametrize(("prepare", "message"), PLACES)
async def test_a_place_that_cannot_be_recorded_into_is_told_before_anybody_is_asked(
    prepare: Callable[[Path], object], message: str
) -> None:
    prepare(Path(TAPE))
    with pytest.raises(ConfigError) as caught:
        await play(f"{AGENT}{MAIN}|> A.go()", Cassette.record(TAPE), nobody())
    assert message in caught.value.message


exchanges = st.builds(
    Exchange,
    run=st.text(max_size=3),
    seq=st.integers(0, 9),
    path=st.text(max_size=3),
    kind=st.just("tool"),
    request=st.dictionaries(st.text(max_size=3), st.text(st.characters(exclude_categories=()), max_size=5), max_size=2),
    outcome=st.just("done"),
    result=st.fixed_dictionaries({"value": st.text() | st.integers() | st.none(), "warnings": st.just([])}),
)


@given(st.lists(exchanges, max_size=3), st.data())
def test_a_file_cut_anywhere_has_all_its_whole_lines(made: list[Exchange], data: st.DataObject) -> None:
    written = [exchange.line() for exchange in made]
    whole = header() + b"".join(written)
    assert [entry.exchange() for entry in read(whole, "f").entries] == made
    cut = data.draw(st.integers(len(header()), len(whole)))
    ends = [len(header()) + sum(map(len, written[:count])) for count in range(len(made) + 1)]
    found = read(whole[:cut], "f")
    # A line that lacks nothing but its end is whole.
    assert len(found.entries) == sum(end <= cut + 1 for end in ends[1:])


class Half(StubModel):
    """Streams half of its answer and fails."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        if on_delta is not None:
            on_delta("half")
        raise ModelError("the stream was cut", retryable=True)


async def test_an_answer_that_broke_off_in_the_middle_is_a_failure_again() -> None:
    world = World(user_text)
    world.model = Half(world.model._answer)  # pyright: ignore[reportPrivateUsage]
    first, again = await recorded_and_replayed(f"{AGENT}{MAIN}|> A.go()", world)
    assert repr(again.error) == repr(first.error) == "ModelError('the stream was cut')"
