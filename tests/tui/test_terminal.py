"""The workbench in a real terminal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from uuid import uuid4

import pytest

from halo_runtime.cli.demonstration import REPLIES

pytestmark = pytest.mark.terminal

DEADLINE = 60.0
PROGRAM = '// a note\nagent Bot [openai/gpt-4o-mini]\n\npipeline Main() -> Result:\n  "hello" |> Bot.answer()\n'


class Terminal:
    """A shell in a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._server = f"halo-{uuid4().hex}"
        self._tmux(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "110",
            "-y",
            "30",
            "-c",
            str(folder),
            "env -u COLUMNS PS1='$ ' sh",
        )

    def type(self, *keys: str) -> None:
        """Send keys by tmux's names."""
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def flag(self, name: str) -> str:
        """One of tmux's facts about the pane, such as `alternate_on`."""
        return self._tmux("display-message", "-p", f"#{{{name}}}").strip()

    def until(self, text: str) -> None:
        deadline = monotonic() + DEADLINE
        while text not in self.screen():
            assert monotonic() < deadline, f"{text!r} never came; the screen shows:\n{self.screen()}"

    def until_equal(self, expected: str) -> None:
        deadline = monotonic() + DEADLINE
        while self.screen() != expected:
            assert monotonic() < deadline, f"expected\n{expected}\nbut the screen shows\n{self.screen()}"

    def resize(self, width: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", "30")

    def child(self) -> int:
        """The process that the shell runs."""
        found = subprocess.run(["pgrep", "-P", self.flag("pane_pid")], capture_output=True, text=True, check=True)
        return int(found.stdout.split()[0])

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._server, "kill-server"], capture_output=True, check=False)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._server, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "main.halo").write_text(PROGRAM)
    (tmp_path / "main.replies.json").write_text(json.dumps({"Bot": "Good morning"}))
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def start(terminal: Terminal) -> None:
    halo = Path(sys.executable).with_name("halo")
    terminal.type(f"clear; {halo} edit main.halo; echo left with $?", "Enter")
    terminal.until("No problems")


def test_a_program_is_opened_run_and_left(terminal: Terminal) -> None:
    start(terminal)
    terminal.type("F5")
    terminal.until("Good morning")
    terminal.type("C-q")
    terminal.until("left with 0")


def test_the_demo_runs_to_its_question_and_shows_what_came_of_the_answer(terminal: Terminal, tmp_path: Path) -> None:
    halo = Path(sys.executable).with_name("halo")
    terminal.type(f"XDG_DATA_HOME={tmp_path} {halo} demo --replies {REPLIES}", "Enter")
    terminal.until("Answer later")
    assert "agent Florist" in terminal.screen()
    terminal.type("Enter")
    terminal.until("✓ completed")
    terminal.type("M-4")
    terminal.until('verdict  "yes"')
    terminal.type("C-q")
    terminal.until("Your copy of the program")


def test_alt_with_a_digit_goes_to_a_pane_and_types_nothing(terminal: Terminal) -> None:
    start(terminal)
    terminal.type("M-3")
    terminal.until("The output of a run appears here")
    assert "£" not in terminal.screen()


def test_a_lost_terminal_ends_the_workbench(terminal: Terminal) -> None:
    start(terminal)
    child = terminal.child()
    terminal.close()
    deadline = monotonic() + DEADLINE
    while Path(f"/proc/{child}").exists():
        assert monotonic() < deadline


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
