"""How a run is shown while it goes on."""

from __future__ import annotations

import io
import json
import re
from itertools import count

import pytest

from halo_lang.assist.positions import MARKS, cells
from halo_runtime.cli.narration import Tally, elapsed
from halo_runtime.cli.progress import MAX_TAILS, JsonLines, LiveLine, PlainLines, Progress, choose_progress
from halo_runtime.cli.tails import KEPT, Tails
from halo_runtime.engine.events import (
    InterruptOpened,
    ModelDelta,
    ModelRequested,
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
    """A stream that says it is a terminal, and what such a terminal would show; a row has room for everything."""

    encoding = "utf-8"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]

    def isatty(self) -> bool:
        return True

    def rows(self) -> list[str]:
        """What stands there from the first row to the one with the cursor."""
        rows, at = [""], 0
        for text in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if text == "\n":
                at += 1
                rows += [""] if at == len(rows) else []
            elif text == "\r":
                pass  # what follows takes the row away
            elif text == "\x1b[J":
                rows[at:] = [""]
            elif moved := re.fullmatch(r"\x1b\[(\d+)A", text):
                at -= int(moved[1])
                assert at >= 0
            elif not text.startswith("\x1b"):
                rows[at] += text
            else:
                assert text in ("\x1b[?7l", "\x1b[?7h"), text
        return rows


def started(path: str = "Main/0", kind: str = "pipe", stage: str = "|> Bot.reply", line: int = 4) -> StageStarted:
    return StageStarted("r", path, kind, stage, line)


def finished(path: str = "Main/0", kind: str = "pipe", outcome: str = "completed") -> StageFinished:
    return StageFinished("r", path, kind, "|> Bot.reply", 4, outcome, "value")


USED: JsonObject = {"input": 100, "output": 20, "total": 120}


def responded(
    cost: str | None = "0.0012", error: JsonObject | None = None, tokens: JsonObject = USED
) -> ModelResponded:
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


def test_a_failed_call_that_used_nothing_leaves_the_cost_known_and_one_that_did_does_not() -> None:
    tally = Tally()
    tally.add(responded(cost=None, tokens={}, error={"type": "ModelError"}))
    assert tally.figures() == ["1 call"]
    tally.add(responded(cost=None, error={"type": "TimeoutExceeded"}))
    assert tally.figures() == ["2 calls", "120 tokens", "cost unknown"]


@pytest.mark.parametrize("kind", ["PolicyViolation", "ReplayMiss"])
def test_what_no_model_was_asked_is_no_call(kind: str) -> None:
    tally = Tally()
    tally.add(responded(cost=None, tokens={}, error={"type": kind}))
    assert tally.figures() == []
    tally.add(responded(error={"type": kind}))  # one that took longer than a policy allows
    assert tally.figures()[0] == "1 call"


def test_the_summary_names_status_figures_and_time() -> None:
    progress = Progress(iter([0.0, 75.0]).__next__)
    progress(responded())
    assert progress.summary("completed") == "completed: 1 call, 120 tokens, $0.0012, 1 m 15 s"


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (60, "1 m 0 s"), (7300, "2 h 1 m")])
def test_durations_read_well(seconds: float, text: str) -> None:
    assert elapsed(seconds) == text


def requested(path: str = "Main/0/try1", method: str = "reply", attempt: int = 1) -> ModelRequested:
    return ModelRequested("r", path, "Bot", method, "m", [], attempt)


def delta(text: str, path: str = "Main/0/try1") -> ModelDelta:
    return ModelDelta("r", path, "Bot", text)


def answered(path: str) -> ModelResponded:
    return ModelResponded("r", path, "Bot", "reply", "text", {}, None, 5.0, None)


def still() -> float:
    return 0.0


def test_the_live_line_shows_what_runs_now_and_leaves_what_is_done() -> None:
    screen = Screen()
    live = LiveLine(screen, map(float, count()).__next__)
    live(started())
    live.tick()
    assert screen.rows()[-1].startswith("⠙ |> Bot.reply: ")
    live(started("Main/0/item1", "item", "Bot.other"))
    live.tick()
    assert "Bot.other and 1 more: " in screen.rows()[-1]
    live(finished("Main/0/item1", "item"))
    live(finished())
    assert re.fullmatch(r"✓ \|> Bot.reply \d+.0 s", screen.rows()[0])
    assert screen.rows()[1:] == [""]


def test_replies_are_shown_above_it_as_they_stream_and_taken_away_when_they_are_there() -> None:
    screen = Screen()
    live = LiveLine(screen, still)
    for event in (started(), requested(), requested("Main/0/b/try1", "other"), delta("one\n\n  two")):
        live(event)
    live.tick()
    assert screen.rows()[:-1] == ["  Bot.reply 0.0 s │ one two"]
    live(delta("three", "Main/0/b/try1"))
    live(delta(" and", "Main/0/try1"))
    live.tick()
    assert screen.rows()[:-1] == ["  Bot.reply 0.0 s │ one two and", "  Bot.other 0.0 s │ three"]
    live(answered("Main/0/try1"))
    live(answered("Main/0/b/try1"))
    live.tick()
    assert [row.partition(":")[0] for row in screen.rows()] == ["⠸ |> Bot.reply"]


def test_a_try_that_failed_takes_its_text_away_and_the_next_one_says_that_it_is_another() -> None:
    screen = Screen()
    live = LiveLine(screen, still)
    for event in (started(), requested(), delta("half a"), responded(error={"message": "gone"})):
        live(event)
    live(ModelResponded("r", "Main/0/try1", "Bot", "reply", None, {}, None, 1.0, {"message": "gone"}))
    live(RetryScheduled("r", "Main/0", 2, 1.0, "gone"))
    live(requested("Main/0/try2", attempt=2))
    live(delta("whole", "Main/0/try2"))
    live.tick()
    assert screen.rows()[:-1] == ["retry 2 in 1.0 s: gone", "  Bot.reply (try 2) 0.0 s │ whole"]


@pytest.mark.parametrize(
    "ending",
    [finished(outcome="cancelled"), RunFinished("r", "Main", "failed", None, None)],
)
def test_the_text_of_a_call_that_was_cancelled_goes_with_its_stage(ending: RunEvent) -> None:
    screen = Screen()
    live = LiveLine(screen, still)
    for event in (started("Main/1"), started(), requested(), delta("half a"), ending):
        live(event)
    live.tick()
    assert not any("half a" in row for row in screen.rows())


def test_of_many_replies_some_are_shown() -> None:
    screen = Screen()
    live = LiveLine(screen, still)
    live(started())
    for number in range(500):
        live(requested(f"Main/0/item{number}/try1"))
        live(delta("text", f"Main/0/item{number}/try1"))
    live.tick()
    assert len(screen.rows()) == MAX_TAILS + 1


@pytest.mark.parametrize("size", [20, 60])
@pytest.mark.parametrize(
    "text",
    [
        "日本語" * 500,
        "a" * 5000,
        "e" + "\u0301" * 5000,
        "👨\u200d👩\u200d👧 " * 500,
        "\u202e\x1b]0;title\x07" * 300,
        "\x00\r\n\t\x9b2J" * 500,
    ],
)
def test_moving_lines_never_wrap_and_never_act(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(size))
    screen = Screen()
    live = LiveLine(screen)
    live(started(stage=text))
    live(requested())
    live(delta(text))
    live.tick()
    tail, line = screen.rows()
    assert "…" in line
    assert cells(line) < size
    assert cells(tail) < size
    assert len(line + tail) < size * 2 * MARKS
    assert line.isprintable() or "\u200d" in line  # a joiner alone is none of the printable characters


def test_a_moving_line_does_not_begin_with_half_a_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    screen = Screen()
    live = LiveLine(screen, still)
    for event in (started(), requested(), delta("e\u0301" * 100)):
        live(event)
    live.tick()
    assert screen.rows()[0] == "  Bot.reply 0.0 s │ …" + "e\u0301" * 18


def test_what_is_kept_of_a_reply_is_bounded() -> None:
    tails = Tails(still)
    tails.add(requested())
    for _ in range(1000):
        tails.add(delta("x" * 1000))
    assert tails.rows(10**6, 1, "utf-8", "│", "…") == ["  Bot.reply 0.0 s │ " + "x" * KEPT]


def test_a_terminal_that_was_made_narrower_has_folded_what_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    live = LiveLine(screen, still)
    for event in (started(), requested(), delta("x" * 200)):
        live(event)
    live.tick()
    screen.seek(0)
    screen.truncate()
    monkeypatch.setenv("COLUMNS", "50")
    with live.hidden():
        assert screen.getvalue() == "\r\x1b[2A\x1b[J"  # 99 cells on 2 rows, and the short line


def test_the_live_line_keeps_out_of_the_way_of_a_question() -> None:
    screen = Screen()
    live = LiveLine(screen)
    live(started())
    live.tick()
    with live.hidden():
        live.tick()
        live(started("Main/1"))
        assert screen.rows() == [""]
    live.tick()
    assert "Bot.reply" in screen.rows()[-1]


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


def test_many_items_and_deltas_are_not_drawn_one_by_one() -> None:
    screen = Screen()
    live = LiveLine(screen)
    for number in range(10_000):
        live(started(f"Main/0/item{number}", "item"))
        live(requested(f"Main/0/item{number}/try1"))
        live(delta("x", f"Main/0/item{number}/try1"))
        live(answered(f"Main/0/item{number}/try1"))
        live(finished(f"Main/0/item{number}", "item"))
    assert screen.getvalue() == ""


def test_the_moving_lines_are_drawn_a_few_times_a_second_however_much_is_printed() -> None:
    screen = Screen()
    time = [0.0]
    live = LiveLine(screen, lambda: time[0])
    live(started())
    for number in range(1000):
        time[0] = number / 1000
        live(Printed("r", "p", "print", f"line {number}"))
    assert screen.getvalue().count("Bot.reply") <= 21
    assert screen.rows()[:1000] == [f"line {number}" for number in range(1000)]


def test_signs_fit_a_narrow_encoding() -> None:
    screen = Screen()
    screen.encoding = "ascii"  # pyright: ignore[reportAttributeAccessIssue]
    live = LiveLine(screen)
    for event in (started(), requested(), delta("é日" * 100)):
        live(event)
    live.tick()
    assert all(len(row) < 100 for row in screen.rows())
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
