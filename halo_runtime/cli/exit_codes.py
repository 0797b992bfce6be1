"""What the exit code of `halo` says (spec 08)."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halo_runtime.errors import HaloError
    from halo_runtime.results import Status


class ExitCode(IntEnum):
    """The only codes that `halo` ends with."""

    COMPLETED = 0
    """The run completed; the check found no error; nothing to report."""

    FAILED = 1
    """The run failed by its own rules, a run that exists cannot be continued or read as asked, `verify` or
    `fmt --check` found something, or `halo` has a bug."""

    REFUSED = 2
    """Nothing has started: wrong usage, a program with errors, a wrong input, a missing key or file."""

    HALTED = 3
    """A gate closed. Not an error."""

    PAUSED = 4
    """A question waits for its answer."""

    INTERRUPTED = 130
    """Stopped from outside (Ctrl-C)."""


_BY_STATUS: dict[Status, ExitCode] = {
    "completed": ExitCode.COMPLETED,
    "failed": ExitCode.FAILED,
    "halted": ExitCode.HALTED,
    "paused": ExitCode.PAUSED,
    "interrupted": ExitCode.INTERRUPTED,
}


def of_status(status: Status) -> ExitCode:
    """The code that a run's status ends with."""
    return _BY_STATUS[status]


def of_refusal(error: HaloError) -> ExitCode:
    """The code for what was not done: 1 where it concerns a run that is there or was meant, 2 where nothing began."""
    from halo_runtime.errors import RunRefused, SignalError, StoreError

    refused = isinstance(error, RunRefused | SignalError | StoreError)
    return ExitCode.FAILED if refused else ExitCode.REFUSED
