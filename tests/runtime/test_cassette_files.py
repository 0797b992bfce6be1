"""The file of a cassette: what it is written like, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halo_lang
from halo_runtime import (
    Cassette,
    ConfigError,
    ModelError,
)
from halo_runtime.cassettes.format import Exchange, header, read
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from tests.runtime.support import StubModel, user_text
from tests.runtime.taping import (
    AGENT,
    MAIN,
    REPO,
    TAPE,
    World,
    content,
    in_turn,
    lines,
    mode,
    nobody,
    play,
    recorded_and_replayed,
)


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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
