"""A piece of work in a process of its own, which may die of it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module

from halo_runtime.json_types import JsonObject


class ChildError(Exception):
    """A process ended otherwise than it should; the text says how."""


def in_a_process(work: Callable[[], JsonObject]) -> JsonObject | None:
    """What the work gives, done by a copy of this process; None where it was killed. Raises ChildError.

    The copy has imported what this process has, so it costs milliseconds. This process may have no other threads.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work_and_exit(work, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
        _, ended = os.waitpid(child, 0)
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise
    if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGKILL:
        return None
    document = json.loads(told) if told else {"failure": f"it ended with {os.waitstatus_to_exitcode(ended)}"}
    if "failure" in document:
        raise ChildError(document["failure"])
    return document


def imported() -> list[str]:
    """The modules that this process has."""
    return list(sys.modules)


def import_ahead(names: Iterable[str]) -> None:
    """Import what processes to come will need, so that not each of them has to."""
    for name in names:
        if name not in sys.modules:
            with suppress(ImportError):  # such as what a module has put there by itself
                import_module(name)


def _work_and_exit(work: Callable[[], JsonObject], writing: int) -> None:
    """Never comes back: what stands above this in the stack is the parent's business."""
    try:
        document = work()
    except BaseException as failure:  # the parent is told of everything that kept the work from its end
        document = {"failure": f"{type(failure).__name__}: {failure}"}
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(json.dumps(document).encode("utf-8", "surrogatepass"))
    os._exit(0)
