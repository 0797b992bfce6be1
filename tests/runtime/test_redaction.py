"""Secrets in texts that come in pieces: what is shown is what redacting the whole would show (reference, row 63)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import halo_lang
from halo_runtime.engine.calls.streaming import BUNDLE_SECONDS
from halo_runtime.engine.events import ModelDelta, ModelResponded, RunEvent
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.redaction import REDACTED, Redactor, StreamRedactor
from tests.runtime.support import runtime

KEY = "sk-abcdef0123456789"
TEXT = f"the key is {KEY}, again {KEY}sk-"


def streamed(redactor: Redactor, pieces: list[str]) -> list[str]:
    """What is shown after each piece, and at the end."""
    stream = StreamRedactor(redactor)
    return [*map(stream.feed, pieces), stream.end()]


@pytest.mark.parametrize("at", range(len(TEXT) + 1))
def test_a_secret_is_found_wherever_the_text_is_split(at: int) -> None:
    redactor = Redactor([KEY])
    shown = streamed(redactor, [TEXT[:at], TEXT[at:]])
    assert "".join(shown) == redactor.text(TEXT)


def test_a_secret_is_found_when_its_characters_come_one_by_one() -> None:
    assert "".join(streamed(Redactor([KEY]), list(TEXT))) == f"the key is {REDACTED}, again {REDACTED}sk-"


def test_only_what_may_be_the_beginning_of_a_secret_waits() -> None:
    assert streamed(Redactor([KEY]), ["risk sk-ab", "c no", "thing s", ""]) == ["risk ", "sk-abc no", "thing ", "", "s"]


def test_a_short_secret_waits_while_it_may_become_a_longer_one() -> None:
    redactor = Redactor(["abcd", "abcdefgh"])
    assert streamed(redactor, ["abcd", "ef", "gh."]) == ["", "", f"{REDACTED}.", ""]
    assert streamed(redactor, ["abcd", "."]) == ["", f"{REDACTED}.", ""]


def test_without_secrets_nothing_waits() -> None:
    assert streamed(Redactor(), ["a", "", "b"]) == ["a", "", "b", ""]


def test_a_secret_that_is_learnt_meanwhile_counts_from_then_on() -> None:
    redactor = Redactor()
    stream = StreamRedactor(redactor)
    assert stream.feed("pass") == "pass"
    redactor.add(["word1"])
    assert stream.feed("wor") + stream.feed("d1!") == f"{REDACTED}!"


texts = st.text("ab-", max_size=24)


@given(st.lists(st.text("ab-", min_size=4, max_size=9), max_size=4), texts, st.sets(st.integers(0, 24)))
@example(["aaaa", "aabb-"], "aaaaabb-", {4})
@example(["abab", "bab-ab"], "ababab-ab", {3, 5})
def test_pieces_show_what_the_whole_would(secrets: list[str], text: str, borders: set[int]) -> None:
    redactor = Redactor(secrets)
    cuts = [0, *sorted(at for at in borders if at < len(text)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(cuts)]
    shown = streamed(redactor, pieces)
    assert "".join(shown) == redactor.text(text)
    assert all(secret not in "".join(shown[:count]) for secret in secrets for count in range(len(shown)))


class Streaming:
    """A model that streams its reply in pieces; where it is to break off, it does so behind them."""

    def __init__(self, *pieces: str, error: Exception | None = None) -> None:
        self._pieces = pieces
        self._error = error

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        assert on_delta is not None
        for piece in self._pieces:
            on_delta(piece)
            await asyncio.sleep(0)
        if self._error is not None:
            raise self._error
        return ModelReply("".join(self._pieces))

    def missing(self) -> None:
        return None

    def restore(self, cursors: Any) -> None:
        pass

    async def close(self) -> None:
        pass


async def told(model: Streaming, head: str = "") -> list[RunEvent]:
    """What observers hear of a run that asks the model once, in an environment with a key."""
    world = runtime(env={"OPENAI_API_KEY": KEY})
    world.register_model_provider("openai", lambda env: model)
    events: list[RunEvent] = []
    world.subscribe(events.append)
    text = f"{head}agent A [openai/gpt-4o-mini]{'  requires Rules' if head else ''}\n"
    await world.run(halo_lang.parse(f"{text}pipeline Main() -> Result: |> A.go()"))
    return events


def text_of(events: list[RunEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ModelDelta))


@pytest.mark.parametrize("at", range(len(KEY) + 1))
async def test_observers_never_get_a_key_in_pieces(at: int) -> None:
    events = await told(Streaming("it is ", KEY[:at], KEY[at:], " s"))
    assert text_of(events) == "it is [REDACTED] s"
    assert [event.reply for event in events if isinstance(event, ModelResponded)] == ["it is [REDACTED] s"]


async def test_text_that_comes_closely_is_told_in_bundles_and_the_first_of_it_at_once() -> None:
    events = await told(Streaming(*("word " for _ in range(1000))))
    pieces = [event.text for event in events if isinstance(event, ModelDelta)]
    assert pieces[0] == "word "
    assert "".join(pieces) == "word " * 1000
    assert len(pieces) < 500


async def test_nothing_is_told_of_a_try_once_it_has_ended() -> None:
    model = Streaming("one ", "two", error=ConnectionError("gone"))
    events = await told(model)
    await asyncio.sleep(BUNDLE_SECONDS * 2)
    assert text_of(events) == "one "


async def test_what_waits_is_dropped_where_a_try_fails() -> None:
    assert text_of(await told(Streaming("it is ", KEY[:10], error=ConnectionError("gone")))) == "it is "


async def test_with_rules_for_answers_nothing_is_told_before_they_have_passed() -> None:
    events = await told(Streaming("some", "thing"), "policy Rules : MaxLength(100)\n")
    assert text_of(events) == ""
    assert [event.reply for event in events if isinstance(event, ModelResponded)] == [None]
