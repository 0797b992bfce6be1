"""Replies in the workbench while they stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any

import pytest

from halo_runtime.engine.events import ModelDelta, ModelRequested, ModelResponded, RunEvent, RunStarted, StageStarted
from halo_tui.models.run import RunView
from halo_tui.models.session import Telling
from halo_tui.widgets.output import CallPane, Output
from halo_tui.widgets.panes import Stages

OpenBench = Callable[..., AbstractAsyncContextManager[Any]]

HELLO = """agent Bot [openai/gpt-4o-mini]

pipeline Main() -> Result:
  "hello" |> Bot.answer() as said
"""
TWO = """agent Bot [openai/gpt-4o-mini]

pipeline Main() -> Result:
  "hello" |* { Bot.one(), Bot.two() }
"""
LONG = {"delay": "1d", "reply": "never " * 20}
"""A reply whose first piece comes after hours: the tests stream in its place."""

TRY, AGAIN = "Main/0/step1/try1", "Main/0/step1/try2"


def stream(bench: Any, *texts: str, path: str = TRY) -> None:
    """Let text arrive as if the model of the running call had sent it."""
    for text in texts:
        bench.screen.session.view.apply(ModelDelta("r", path, "Bot", text), monotonic())
    bench.screen._run_changed()


async def begin(bench: Any) -> None:
    """Start the run and wait for its request to be under way."""
    await bench.press("f5")
    await bench.until(lambda: list(bench.screen.session.view.calls.streaming))


async def test_text_is_seen_in_the_stages_the_output_and_the_call_while_the_run_goes_on(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": LONG}, size=(120, 36)) as b:
        await begin(b)
        stream(b, "Once upon", " a time")
        await b.until_shown("◐ |> Bot.answer")
        await b.until_shown("Once upon a time")
        await b.press("alt+3")
        await b.until_shown("▍ Bot.answer")
        assert "Once upon a time" in b.text()
        await b.press("alt+7")
        await b.until_shown("reply so far")
        assert "Once upon a time" in b.text()
        assert "Input:" in b.text()  # what was sent
        assert "openai/gpt-4o-mini" in b.text()
        stream(b, " there was")
        await b.until_shown("Once upon a time there was")
        assert b.screen.session.view.active


async def test_the_text_folds_into_the_reply_when_that_is_there(bench: OpenBench) -> None:
    reply = {"delay": "100ms", "reply": "one two", "usage": {"input": 10, "output": 5}}
    async with bench(HELLO, {"Bot": reply}, size=(120, 36)) as b:
        await b.press("f5")
        await b.until_shown("✓ completed")
        assert "▍" not in b.text()
        await b.press("alt+7")
        await b.until_shown("15 tokens")
        assert "reply so far" not in b.text()
        assert "one two" in b.text()


@pytest.mark.parametrize("pane", ["2", "3", "7"])
async def test_nothing_that_streams_is_markup_or_obeyed(bench: OpenBench, pane: str) -> None:
    async with bench(HELLO, {"Bot": LONG}, size=(160, 36)) as b:
        await begin(b)
        await b.press(f"alt+{pane}")
        stream(b, "[bold]x[/bold] ", "[link=http://a]", "\x1b[2J", "\x00\u202e[/]")
        await b.until_shown(r"[link=http://a]\x1b[2J\x00\u202e[/]")
        assert "\x1b" not in b.text()


async def test_a_line_of_a_megabyte_streams_and_only_its_end_is_kept(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": LONG}, size=(120, 36)) as b:
        await begin(b)
        await b.press("alt+3")
        stream(b, "x" * 1_000_000, " the end")
        await b.until_shown("the end")
        await b.press("home")
        await b.until_shown("earlier characters")


async def test_who_scrolls_up_stays_there_and_is_told_what_has_come(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": LONG}, size=(120, 36)) as b:
        await begin(b)
        await b.press("alt+3")
        stream(b, *(f"line {number}\n" for number in range(100)))
        await b.until_shown("line 99")
        output = b.screen.query_one(Output)
        await b.press("pageup")
        await b.until(lambda: "line 99" not in b.text())
        top = output.scroll_offset.y
        stream(b, *(f"line {number}\n" for number in range(100, 120)))
        await b.until_shown("↓ 20 more below · End")
        assert output.scroll_offset.y == top
        await b.press("end")
        await b.until_shown("line 119")
        assert "more below" not in b.text()
        stream(b, "and on")
        await b.until_shown("and on")


async def test_calls_side_by_side_stream_each_at_its_own_stage(bench: OpenBench) -> None:
    async with bench(TWO, {"Bot": {"replies": [LONG], "repeat": True}}, size=(140, 40)) as b:
        await b.press("f5")
        await b.until(lambda: len(list(b.screen.session.view.calls.streaming)) == 2)
        paths = list(b.screen.session.view.calls._live)
        for path, text in zip(paths, ("first text", "second text"), strict=True):
            stream(b, text, path=path)
        await b.until_shown("second text")
        rows = b.text().splitlines()
        assert any("Bot.one" in row and "first text" in row for row in rows)
        assert any("Bot.two" in row and "second text" in row for row in rows)
        await b.press("alt+3")
        await b.until_shown("▍ Bot.two")
        assert "▍ Bot.one" in b.text()


async def test_a_rule_for_answers_keeps_the_text_off_every_pane(bench: OpenBench) -> None:
    program = f"policy Short : MaxLength(10)\n{HELLO.replace('mini]', 'mini]' + chr(10) + '  requires Short')}"
    seen: list[str] = []
    async with bench(program, {"Bot": {"delay": "300ms", "reply": "far too long to be seen"}}, size=(140, 40)) as b:
        for pane in ("3", "7", "2"):
            await b.press(f"alt+{pane}")
            await b.press("f5")
            while not b.screen.session.view.error:
                seen.append(b.text())
                await b.pilot.pause(0.01)
            b.screen.session.view.error = None
    assert any("◐ running" in text for text in seen)
    assert not any("far too long" in text for text in seen)


async def test_a_try_that_failed_takes_its_text_away(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": LONG}, size=(120, 36)) as b:
        await begin(b)
        await b.press("alt+3")
        stream(b, "lost text")
        await b.until_shown("lost text")
        view = b.screen.session.view
        view.apply(ModelResponded("r", TRY, "Bot", "answer", None, {}, None, 1.0, {"message": "gone"}), monotonic())
        view.apply(ModelRequested("r", AGAIN, "Bot", "answer", "m", [], 2), monotonic())
        stream(b, "found text", path=AGAIN)
        await b.until_shown("▍ Bot.answer (try 2)")
        assert "found text" in b.text()
        assert "lost text" not in b.text()
        await b.press("alt+7")
        await b.until_shown("↻ try 2")
        assert "lost text" not in b.text()


async def test_a_flood_of_text_lets_keys_have_their_turn(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": LONG}, size=(120, 36)) as b:
        await begin(b)
        telling = Telling(b.screen.session.view, monotonic, b.screen._run_changed)
        for _ in range(100_000):
            telling(ModelDelta("r", TRY, "Bot", "word "))
        finished = asyncio.ensure_future(telling.finish())
        turns = 0
        while not finished.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 3
        (call,) = b.screen.session.view.calls.streaming
        assert call.live.total == 5 * 100_000


async def test_events_are_taken_in_a_few_times_a_second_however_fast_they_come() -> None:
    changes: list[None] = []
    view = RunView(status="running")
    telling = Telling(view, monotonic, lambda: changes.append(None))
    first: list[RunEvent] = [RunStarted("r", "Main", "Main", {}), StageStarted("r", "Main/0", "pipe", "Bot.x", 3)]
    for event in (*first, ModelRequested("r", TRY, "Bot", "x", "m", [], 1)):
        telling(event)
    for _ in range(1000):
        telling(ModelDelta("r", TRY, "Bot", "x"))
        await asyncio.sleep(0)
    await telling.finish()
    (call,) = view.calls
    assert call.live is not None
    assert call.live.total == 1000
    assert len(changes) < 100


async def test_the_call_pane_follows_the_stage_that_is_chosen(bench: OpenBench) -> None:
    replies = {"Bot.one": "first reply", "Bot.two": "second reply"}
    program = HELLO.replace("Bot.answer() as said", 'Bot.one("Do one")\n    |> Bot.two("Do two")')
    async with bench(program, replies, size=(120, 40)) as b:
        await b.press("f5")
        await b.until_shown("✓ completed")
        await b.press("alt+2", "up")
        await b.press("alt+7")
        await b.until_shown("first reply")
        assert "Do one" in b.text()
        assert b.screen.query_one(Stages).cursor == 0
        await b.press("alt+2", "down", "alt+7")
        await b.until_shown("second reply")
        assert b.screen.query_one(CallPane).has_focus


async def test_the_tabs_fit_at_100_columns(bench: OpenBench) -> None:
    async with bench(HELLO, size=(100, 24)) as b:
        await b.until_shown("Call")
        assert "Stages Output Data Inbox Runs Call" in b.text()
