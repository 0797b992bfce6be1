"""The workbench in a real terminal."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from halo_runtime.cli.demonstration import REPLIES
from tests.fakes.openai_server import KEY, FakeOpenAI, chunk, events
from tests.terminal import Terminal

pytestmark = pytest.mark.terminal

PROGRAM = '// a note\nagent Bot [openai/gpt-4o-mini]\n\npipeline Main() -> Result:\n  "hello" |> Bot.answer()\n'


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "main.halo").write_text(PROGRAM)
    (tmp_path / "main.replies.json").write_text(json.dumps({"Bot": "Good morning"}))
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def start(terminal: Terminal) -> None:
    terminal.type(f"clear; {halo()} edit main.halo; echo left with $?", "Enter")
    terminal.until("No problems")


def test_a_program_is_opened_run_and_left(terminal: Terminal) -> None:
    start(terminal)
    terminal.type("F5")
    terminal.until("Good morning")
    terminal.type("C-q")
    terminal.until("left with 0")


def test_the_demo_runs_to_its_question_and_shows_what_came_of_the_answer(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type(f"XDG_DATA_HOME={tmp_path} {halo()} demo --replies {REPLIES}", "Enter")
    terminal.until("Answer later")
    assert "agent Florist" in terminal.screen()
    terminal.type("Enter")
    terminal.until("✓ completed")
    terminal.type("M-4")
    terminal.until('verdict  "yes"')
    terminal.type("C-q")
    terminal.until("Your copy of the program")


APPROVALS = """pipeline Main(items: List) -> Result:
  items
    |* each(item in items, concurrency: 3) => Approve(item) as all

pipeline Approve(item: String) -> Result:
  item |! yield("Take {{item}}?") as taken
"""


def test_three_approvals_are_answered_from_the_workbench_and_from_the_command_line(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "main.halo").write_text(APPROVALS)
    (tmp_path / "main.input.json").write_text(json.dumps({"items": ["a", "b", "c"]}))
    terminal.type(f"clear; {halo()} edit main.halo --run; echo left with $?", "Enter")
    terminal.until("Run which pipeline?")
    terminal.type("Enter")
    for item in "abc":
        terminal.until(f"Take {item}?")
        terminal.type("Tab", "Tab", "Enter")  # from the field over Send to Answer later
    terminal.until("⏸ paused")
    terminal.until("Inbox 3")
    terminal.type("M-5")
    terminal.until("? Take a?")
    terminal.type("Down", "Down", "Down", "Enter")
    terminal.until("Answer later")
    terminal.type("t", "w", "o", "Enter")
    terminal.until("Inbox 2")
    run_id, first, last = open_questions(tmp_path)
    answer(tmp_path, run_id, last, "three")
    terminal.until("Inbox 1")
    answer(tmp_path, run_id, first, "one")
    terminal.until("✓ completed")
    terminal.type("M-3")
    terminal.until('"three"')
    assert all(f'"{text}"' in terminal.screen() for text in ("one", "two"))
    terminal.type("C-q")
    terminal.until("left with 0")


def open_questions(folder: Path) -> list[str]:
    """The id of the run and those of its open questions, as the command line lists them."""
    shown = subprocess.run([halo(), "inbox", "--json"], cwd=folder, capture_output=True, text=True, check=True)
    found = json.loads(shown.stdout)["interrupts"]
    return [found[0]["runId"], *(question["id"] for question in sorted(found, key=lambda one: one["message"]))]


def answer(folder: Path, run_id: str, interrupt: str, value: str) -> None:
    """Answer from another process; it exits with 4 while other questions are open."""
    command = [halo(), "resume", run_id, "--interrupt", interrupt, "--answer", value, "--no-input"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr


async def test_text_is_seen_before_the_run_ends_and_nothing_in_it_is_obeyed(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "main.replies.json").unlink()
    hostile = "\x1b]2;OWNED\x07\x1b]52;c;T1dORUQ=\x07\x1b[?1049l [bold]shown[/bold]"
    async with FakeOpenAI() as service:
        service.answer(events(*(chunk({"content": text}) for text in ("Once upon ", hostile)), done=False, hang=True))
        terminal.type(f"export OPENAI_BASE_URL={service.url} OPENAI_API_KEY={KEY}", "Enter")
        terminal.type(f"clear; {halo()} edit main.halo --model openai/gpt-4o-mini; echo left with $?", "Enter")
        await asyncio.to_thread(terminal.until, "No problems")
        terminal.type("F5")
        await asyncio.to_thread(terminal.until, "shown[/bold]")
        terminal.type("M-3")
        await asyncio.to_thread(terminal.until, "▍ Bot.answer")
        await asyncio.to_thread(terminal.until, "[bold]shown[/bold]")
        assert "Once upon" in terminal.screen()
        assert "◐ running" in terminal.screen()
        assert "OWNED" not in terminal.flag("pane_title")
        assert (terminal.clipboard(), terminal.flag("alternate_on")) == ("", "1")
        terminal.type("S-F5")
        await asyncio.to_thread(terminal.until, "⊘ interrupted")
        terminal.type("C-q")
        await asyncio.to_thread(terminal.until, "left with 0")


def halo() -> str:
    return str(Path(sys.executable).with_name("halo"))


def test_alt_with_a_digit_goes_to_a_pane_and_types_nothing(terminal: Terminal) -> None:
    start(terminal)
    terminal.type("M-3")
    terminal.until("The output of a run appears here")
    assert "£" not in terminal.screen()


def test_a_lost_terminal_ends_the_workbench(terminal: Terminal) -> None:
    start(terminal)
    child = terminal.child()
    terminal.close()
    terminal.until_ended(child)


def test_what_stands_on_the_terminal_after_keys_is_what_a_full_repaint_gives(terminal: Terminal) -> None:
    start(terminal)
    # In a comment, so that no change of problems repaints the editor.
    terminal.type("End", " ", "o", "n", "x", "BSpace", "Left", "Left", "e", "(", "a", ")", "S-Left", "S-Left", "b")
    terminal.until("// a note e(bon")
    terminal.type("Down", "Up", "Home", "Right", "Right", "Enter", "/", "/", "BSpace", "BSpace", "BSpace", "C-z", "C-y")
    terminal.until("// a note e(bon")
    terminal.until(" 1:3")
    shown = terminal.screen()
    terminal.resize(120)
    terminal.resize(110)
    terminal.until_equal(shown)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_leaves_the_terminal_as_it_was(terminal: Terminal, number: signal.Signals, code: int) -> None:
    start(terminal)
    assert terminal.flag("alternate_on") == "1"
    subprocess.run(["kill", f"-{number.value}", str(terminal.child())], check=True)
    terminal.until(f"left with {code}")
    assert [terminal.flag(name) for name in ("alternate_on", "mouse_any_flag", "cursor_flag")] == ["0", "0", "1"]
    terminal.type("echo typed", "Enter")
    terminal.until("typed")
