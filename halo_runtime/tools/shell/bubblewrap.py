"""Processes inside bubblewrap: they see what they are given of the machine and have no network (reference 2.12).

Where bubblewrap is missing or the system forbids namespaces nothing is run: there is no weaker sandbox to fall back to.
"""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from halo_runtime.errors import ToolError
from halo_runtime.tools.shell.processes import Finished

SEALED: Final = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
"""Namespaces of its own for everything, and no rights in them.

Root keeps all capabilities otherwise, and with those what is mounted read-only can be mounted anew to be written.
"""

Start: TypeAlias = Callable[[tuple[str, ...]], Awaitable[Finished]]
"""Runs a command as the one in the sandbox is going to be run."""


class Bubblewrap:
    """One way of confining commands: `words` are bubblewrap's arguments, `search` is the PATH to find it on.

    It is tried once, before the first command, with `trial`: one that cannot fail.
    """

    def __init__(self, words: tuple[str, ...], trial: tuple[str, ...], search: str | None = None) -> None:
        self._words = words
        self._trial = trial
        self._search = search
        self._works = False

    async def around(self, argv: tuple[str, ...], start: Start) -> tuple[str, ...]:
        """The command inside bubblewrap. Raises ToolError where that cannot be."""
        prefix = (self._found(), *self._words, "--")
        if not self._works:
            # Where the system forbids namespaces bubblewrap fails as a command in it would.
            probe = await start((*prefix, *self._trial))
            if probe.exit_code != 0:
                said = probe.stderr.strip()[:300] or f"exit code {probe.exit_code}"
                raise ToolError(f"bubblewrap does not work on this machine, so nothing was run: {said}")
            self._works = True
        return (*prefix, *argv)

    def _found(self) -> str:
        found = shutil.which("bwrap", path=self._search)
        if found is None:
            raise ToolError("the sandbox needs bubblewrap; install it (the command bwrap: `apt install bubblewrap`)")
        return found
