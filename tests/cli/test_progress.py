"""How a run is shown while it goes on."""

from __future__ import annotations

import io
import json
from itertools import count

import pytest

from halo_runtime.cli.narration import Tally, elapsed
from halo_runtime.cli.progress import JsonLines, LiveLine, PlainLines, Progress, choose_progress
from halo_runtime.engine.events import (
    InterruptOpened,
    ModelResponded,
    PolicyDecided,
    Printed,
    RetryScheduled,
    RunEvent,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
    SystemEvent,
    ToolRequested,
    WarningRaised,
)
from halo_runtime.json_types import JsonObject


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]

    def isatty(self) -> bool:
        return True


def started(path: str = "Main/0", kind: str = "pipe", stage: str = "|> Bot.reply", line: int = 4) -> StageStarted:
    return StageStarted("r", path, kind, stage, line)


def finished(path: str = "Main/0", kind: str = "pipe", outcome: str = "completed") -> StageFinished:
    return StageFinished("r", path, kind, "|> Bot.reply", 4, outcome, "value")


def responded(cost: str | None = "0.0012", error: JsonObject | None = None) -> ModelResponded:
    tokens = {"input": 100, "output": 20, "total": 120}
    return ModelResponded("r", "p", "Bot", "reply", "text", tokens, cost, 5.0, error)


def decided(action: str) -> PolicyDecided:
    return PolicyDecided("r", "p", "Safe", "Redact(Email)", "input", action, None)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (started(), "line 4: |> Bot.reply\n"),
        (started(kind="item"), ""),
        (finished(), ""),
        (finished(kind="gate", outcome="halted"), "line 4: the gate did not pass\n"),
        (Printed("r", "p", "print", "two\nlines\t[/bold] \x1b[2J"), "two\nlines\t[/bold] \\x1b[2J\n"),
        (Printed("r", "p", "log", "text"), "log: text\n"),
        (WarningRaised("r", "p", "odd", 7, 3), "warning: line 7: odd\n"),
        (WarningRaised("r", "p", "odd", None, None), "warning: odd\n"),
        (RetryScheduled("r", "p", 2, 1.5, "429"), "retry 2 in 1.5 s: 429\n"),
        (ToolRequested("r", "p", "Repo", "get_issue", {}), "tool Repo.get_issue\n"),
        (decided("redact"), "policy Safe: Redact(Email) redact at input\n"),
        (decided("allow"), ""),
        (SystemEvent("r", "p", "Notify", {"a": 1}), 'event Notify: {"a":1}\n'),
        (SystemEvent("r", "p", "Notify", "x" * 500), f"event Notify: {'x' * 200}…\n"),
        (responded(), ""),
        (RunStarted("r", "p", "Main", {}), ""),
    ],
)
def test_plain_lines_tell_what_people_want_to_know(event: RunEvent, line: str) -> None:
    stream = io.StringIO()
    PlainLines(stream)(event)
    assert stream.getvalue() == line


def test_json_lines_give_every_event_in_its_own_shape() -> None:
    stream = io.StringIO()
    progress = JsonLines(stream)
    progress(started())
    progress(Printed("r", "p", "print", "é\n\u2028"))
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"type": "stage_started", "runId": "r", "path": "Main/0", "kind": "pipe", "stage": "|> Bot.reply", "line": 4},
        {"type": "printed", "runId": "r", "path": "p", "level": "print", "text": "é\n\u2028"},
    ]


def test_figures_add_up() -> None:
    tally = Tally()
    for event in (started(), responded(), responded(), finished(), finished(kind="item")):
        tally.add(event)
    assert tally.figures() == ["1 item", "2 calls", "240 tokens", "$0.0024"]
    assert (tally.stages, tally.items, tally.running) == (1, 1, {})


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    tally = Tally()
    for event in (responded(), responded(cost=None), responded()):
        tally.add(event)
    assert tally.figures()[-1] == "cost unknown"


def test_a_failed_call_without_a_price_leaves_the_cost_known() -> None:
    tally = Tally()
    tally.add(responded(cost=None, error={"type": "ModelError"}))
    assert tally.figures() == ["1 call", "120 tokens"]


def test_the_summary_names_status_figures_and_time() -> None:
    progress = Progress(iter([0.0, 75.0]).__next__)
    progress(responded())
    assert progress.summary("completed") == "completed: 1 call, 120 tokens, $0.0012, 1 m 15 s"


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (60, "1 m 0 s"), (7300, "2 h 1 m")])
def test_durations_read_well(seconds: float, text: str) -> None:
    assert elapsed(seconds) == text


def last_line(screen: Screen) -> str:
    return screen.getvalue().rpartition("\r\x1b[2K")[2]


def test_the_live_line_shows_what_runs_now_and_leaves_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    screen = Screen()
    live = LiveLine(screen, map(float, count()).__next__)
    live(started())
    live.tick()
    assert last_line(screen).startswith("⠙ |> Bot.reply: ")
    live(started("Main/0/item1", "item", "Bot.other"))
    live.tick()
    assert "Bot.other and 1 more: " in last_line(screen)
    live(finished("Main/0/item1", "item"))
    live(finished())
    assert last_line(screen) == ""
    assert "✓ |> Bot.reply " in screen.getvalue()


def test_the_live_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    screen = Screen()
    live = LiveLine(screen)
    live(started(stage="日本語" * 50))
    live.tick()
    assert last_line(screen).endswith("…")
    assert len(last_line(screen)) <= 12


def test_the_live_line_keeps_out_of_the_way_of_a_question() -> None:
    screen = Screen()
    live = LiveLine(screen)
    live(started())
    with live.hidden():
        live.tick()
        live(started("Main/1"))
        assert last_line(screen) == ""
    live.tick()
    assert "Bot.reply" in last_line(screen)


@pytest.mark.parametrize("form", [PlainLines, LiveLine])
def test_lines_wait_while_a_question_has_the_terminal(form: type[PlainLines]) -> None:
    screen = Screen()
    progress = form(screen)
    with progress.hidden():
        screen.write("> ")
        with progress.hidden():
            progress(Printed("r", "p", "print", "printed"))
        assert screen.getvalue().endswith("> ")
    assert screen.getvalue().endswith("printed\n")


def test_lines_that_wait_are_written_before_the_end() -> None:
    screen = Screen()
    progress = PlainLines(screen)
    with progress.hidden():
        progress(Printed("r", "p", "print", "printed"))
        progress.close()
        assert screen.getvalue() == "printed\n"


def test_many_items_are_not_drawn_one_by_one() -> None:
    screen = Screen()
    live = LiveLine(screen)
    for number in range(10_000):
        live(started(f"Main/0/item{number}", "item"))
        live(finished(f"Main/0/item{number}", "item"))
    assert screen.getvalue() == ""


def test_signs_fit_a_narrow_encoding() -> None:
    screen = Screen()
    screen.encoding = "ascii"  # pyright: ignore[reportAttributeAccessIssue]
    live = LiveLine(screen)
    live(started())
    live.tick()
    live(finished())
    assert screen.getvalue().isascii()


def test_the_end_and_the_questions_told_of_are_known() -> None:
    progress = Progress()
    progress(InterruptOpened("r", "p", {"id": "ask-1"}))
    assert (progress.run_id, progress.asked, progress.caught_up) == ("r", {"ask-1"}, False)
    progress(RunFinished("r", "p", "completed", "x", None))
    assert progress.caught_up


@pytest.mark.parametrize(
    ("events", "quiet", "terminal", "term", "form"),
    [
        (True, True, True, "xterm", JsonLines),
        (False, True, True, "xterm", Progress),
        (False, False, True, "xterm", LiveLine),
        (False, False, True, "dumb", PlainLines),
        (False, False, False, "xterm", PlainLines),
    ],
)
def test_the_form_suits_options_and_terminal(
    events: bool, quiet: bool, terminal: bool, term: str, form: type[Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr("sys.stderr", Screen() if terminal else io.StringIO())
    assert type(choose_progress(events=events, quiet=quiet)) is form
