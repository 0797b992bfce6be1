"""Textual's driver for Unix terminals, waiting for keys instead of asking for them ten times a second.

The stock driver's input thread sleeps up to 100 ms at a time, so it wakes an idle program for nothing, and leaving
takes up to 200 ms until it has noticed. This one sleeps until there is a key, a pending escape sequence runs out, or it
is told to end.
"""

from __future__ import annotations

import os
import selectors
import signal
from codecs import getincrementaldecoder
from dataclasses import dataclass
from time import monotonic
from typing import Final, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

READ_SIZE: Final = 4096
TERMINAL_LOST: Final = 128 + signal.SIGHUP
"""The exit code when there is no terminal any more."""


class Terminal(LinuxDriver):
    """The driver of the workbench where the terminal is a Unix one."""

    _woken = _wake = -1
    """The ends of a pipe that ends the input thread; closed while there is none."""

    def start_application_mode(self) -> None:
        _know_alt_digits()
        self._woken, self._wake = os.pipe()
        super().start_application_mode()

    def disable_input(self) -> None:
        # Called more than once on the way out; only the first time there is a thread to end.
        if self._wake == -1:
            return
        os.write(self._wake, b"\0")
        super().disable_input()
        os.close(self._woken)
        os.close(self._wake)
        self._woken = self._wake = -1

    def run_input_thread(self) -> None:
        """Hand on what the terminal sends, until told to end or the terminal is gone."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(_patience(parser))}
                if self._woken in ready:
                    return
                messages = parser.tick()
                if self.fileno in ready:
                    received = self._received()
                    if not received:
                        self._app.call_later(self._app.exit, TERMINAL_LOST, TERMINAL_LOST)
                        return
                    text = decode(received)
                    messages = parser.feed(text) if text else ()
                for message in messages:
                    self.process_message(message)

    def _received(self) -> bytes:
        try:
            return os.read(self.fileno, READ_SIZE)
        except OSError:
            return b""


@dataclass(frozen=True, slots=True)
class _Key:
    """A key as Textual's table of sequences has them: its name is its `value`."""

    value: str


def _know_alt_digits() -> None:
    """Let Alt with a digit be a key; Textual takes it for the character that Option gives with the digit on a Mac."""
    known = cast("dict[str, object]", ANSI_SEQUENCES_KEYS)
    known.update((f"\x1b{digit}", (_Key(f"alt+{digit}"),)) for digit in "0123456789")


def _patience(parser: XTermParser) -> float | None:
    """Seconds until the parser gives up waiting for the rest of an escape sequence, None where it waits for nothing."""
    runs_out = parser._timeout_time  # pyright: ignore[reportPrivateUsage] - the stock driver polls instead
    return None if runs_out is None else max(0.0, runs_out - monotonic())
