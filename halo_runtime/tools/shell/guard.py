"""The end of commands whose Halo is gone: killed, out of memory, its machine's session closed.

A small process of its own reads from a pipe which commands are running. The pipe ends with this process, however that
ends; what is running then is asked to end, and killed two seconds later. So no run that goes on finds its last command
still at work. One guard serves the whole process. It is started with the first command, and is nobody's child.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Final

MARK: Final = "HALO_COMMAND"
"""The variable that marks the processes of one command: each command has a value of its own."""

_SCRIPT: Final = """
exec 3<&0
(
  live=
  while read -r sign mark group; do
    case $sign in
      +) live="$live $mark:$group" ;;
      -) kept=
         for one in $live; do case $one in $mark:*) ;; *) kept="$kept $one" ;; esac; done
         live=$kept ;;
    esac
  done
  tell() {
    for one in $live; do
      [ -z "${one#*:}" ] || kill -s "$1" -- "-${one#*:}"
      for file in /proc/[0-9]*/environ; do
        if grep -qsaF "MARK=${one%:*}" "$file"; then
          process=${file#/proc/}
          kill -s "$1" "${process%/environ}"
        fi
      done
    done
  }
  [ -z "$live" ] || { tell TERM; sleep 2; tell KILL; }
) <&3 3<&- &
""".replace("MARK", MARK)
"""Lines of the pipe: `+ MARK GROUP` for a command that runs, its group empty where it only begins; `- MARK`."""


class Guard:
    """Which commands of this process are running, as its guard knows it."""

    def __init__(self) -> None:
        self._pipe = -1
        self._starting = Lock()

    @contextmanager
    def over(self, mark: str) -> Generator[Callable[[int], None]]:
        """While the processes with `mark` may be there; what it gives is told their group as soon as there is one.

        Raises OSError where no guard can be started: then no command could be, either.
        """
        self._tell(f"+ {mark} ")
        try:
            yield lambda group: self._tell(f"+ {mark} {group}")
        finally:
            self._tell(f"- {mark}")

    def _tell(self, line: str) -> None:
        with self._starting:
            if self._pipe < 0:
                self._pipe = _started()
        with suppress(BrokenPipeError):  # somebody has ended it; commands go on without
            os.write(self._pipe, f"{line}\n".encode())


def _started() -> int:
    """Start a guard: the end of the pipe that it is told through, which no command inherits."""
    reading, writing = os.pipe()
    try:
        started = subprocess.run(
            ["/bin/sh", "-c", _SCRIPT], stdin=reading, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath}, cwd="/", start_new_session=True, check=False,
        )  # fmt: skip
        if started.returncode != 0:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return writing


GUARD: Final = Guard()
