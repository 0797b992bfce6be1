"""A real terminal for tests of what people see: tmux, driven by keys and read by screens."""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import monotonic
from uuid import uuid4

DEADLINE = 60.0
"""Seconds after which what is waited for will never come."""


class Terminal:
    """A shell in a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._server = f"halo-{uuid4().hex}"
        size = ("-x", "110", "-y", "30")
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(folder), "env -u COLUMNS PS1='$ ' sh")
        self._tmux("set-option", "-s", "set-clipboard", "on")  # as many terminals let programs do

    def type(self, *keys: str) -> None:
        """Send keys by tmux's names."""
        self._tmux("send-keys", *keys)

    def write(self, text: str) -> None:
        """Type characters as they are."""
        self._tmux("send-keys", "-l", text)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def flag(self, name: str) -> str:
        """One of tmux's facts about the pane, such as `alternate_on`."""
        return self._tmux("display-message", "-p", f"#{{{name}}}").strip()

    def clipboard(self) -> str:
        """What programs have put into the terminal's clipboard (OSC 52)."""
        command = ["tmux", "-L", self._server, "show-buffer"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def until(self, text: str) -> None:
        deadline = monotonic() + DEADLINE
        while text not in self.screen():
            assert monotonic() < deadline, f"{text!r} never came; the screen shows:\n{self.screen()}"

    def until_gone(self, text: str) -> None:
        deadline = monotonic() + DEADLINE
        while text in self.screen():
            assert monotonic() < deadline, f"{text!r} never went; the screen shows:\n{self.screen()}"

    def until_ended(self, process: int) -> None:
        deadline = monotonic() + DEADLINE
        while Path(f"/proc/{process}").exists():
            assert monotonic() < deadline, f"process {process} still runs"

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
