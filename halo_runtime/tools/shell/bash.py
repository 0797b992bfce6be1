"""`Bash(allow, cwd, timeout, env, sandbox)`: commands of this machine (spec 5 and 12.5, decision 28).

Who wrote a command decides how it is run. What the program wrote goes to bash, with the values in it kept apart. What
an agent chose runs without a shell, and only where `allow` names it; `"*"` gives agents bash itself.
"""

from __future__ import annotations

import errno
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from halo_lang.catalog.signature import duration_seconds
from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.templates import WrittenText
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.shell.bubblewrap import SEALED, Bubblewrap
from halo_runtime.tools.shell.processes import GRACE_SECONDS, Finished, run_process
from halo_runtime.tools.shell.quoting import fill_script

DEFAULT_TIMEOUT: Final = "60s"
ANY: Final = "*"
"""In `allow`: agents may run whatever they like, through bash."""

_PLAIN: Final = re.compile(r"""(?: [^\r\n'"\\;&|<>()`] | \\. | '[^']*' | "(?:[^"\\]|\\.)*" )*""", re.X | re.S)
"""What words and quotes can say without a shell."""


@record
class Command:
    """What is to be started: its words and the variables that it sees beside the tool's own."""

    argv: tuple[str, ...]
    variables: Mapping[str, str]


class Shell:
    """One declared shell. `timeout` and `grace` are seconds; each call starts processes of its own."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        allow: Sequence[str] = (),
        timeout: float = 60.0,
        env: Mapping[str, str] | None = None,
        sandbox: bool = False,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._name = name
        self._folder = folder
        self._allow = allow
        self._timeout = timeout
        self._env = env or {}
        self._sandbox = _sandbox(folder, self._env.get("PATH")) if sandbox else None
        self._grace = grace

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do `run`. A command that fails or runs out of time is a result; one that cannot run raises ToolError."""
        if method != "run":
            raise ToolError(f"{self._name} has no method `{method}`; a Bash tool has run")
        try:
            finished = await self._run(self._command(args["command"]))
        except ToolError as error:
            raise ToolError(f"{self._name}.run: {error.message}") from None
        return {
            "exitCode": finished.exit_code,
            "stdout": finished.stdout,
            "stderr": finished.stderr,
            "timedOut": finished.timed_out,
        }

    async def probe(self) -> str:
        """Run nothing but `true`, and look for the commands that agents may choose. Raises ToolError."""
        search = self._env.get("PATH")
        absent = [name for name in self._allow if name != ANY and shutil.which(name, path=search) is None]
        if absent:
            missing = ", ".join(absent)
            raise ToolError(f"{self._name}: not on the PATH: {missing}; install them, or take them out of allow:")
        try:
            finished = await self._run(Command(self._bash("true"), {}))
        except ToolError as error:
            raise ToolError(f"{self._name}: {error.message}") from None
        if finished.exit_code != 0:
            raise ToolError(f"{self._name}: bash does not work here: {finished.stderr.strip()[:300]}")
        return f"bash works{'' if self._sandbox is None else ' in its sandbox'}, in {self._folder}"

    async def close(self) -> None:
        """Nothing to free: no process outlives its call."""

    def _command(self, text: str) -> Command:
        _check_text(text)
        if not isinstance(text, WrittenText):
            return self._chosen(text)
        if text.is_value:
            return Command(self._bash(text), {})
        script = fill_script(text.written, text.filled)
        return Command(self._bash(script.text), script.variables)

    def _chosen(self, text: str) -> Command:
        """A command that an agent chose."""
        if not self._allow:
            raise ToolError(
                'an agent may not choose commands of this tool; its declaration needs allow: ["…"] for that'
            )
        if ANY in self._allow:
            return Command(self._bash(text), {})
        words = _split(text)
        if words[0] not in self._allow:
            raise ToolError(f"an agent may run {', '.join(self._allow)} with this tool, not {words[0]}")
        return Command(tuple(words), {})

    def _bash(self, script: str) -> tuple[str, ...]:
        bash = shutil.which("bash", path=self._env.get("PATH")) or shutil.which("/bin/bash")
        if bash is None:
            raise ToolError("bash is not installed on this machine; install it, or put it on the PATH")
        return (bash, "--noprofile", "--norc", "-c", "--", script)

    async def _run(self, command: Command) -> Finished:
        if not self._folder.is_dir():
            raise ToolError(f"there is no folder {self._folder}; change cwd: in the declaration")
        argv = command.argv
        if self._sandbox is not None:
            argv = await self._sandbox.around(argv, lambda trial: self._start(trial, {}))
        return await self._start(argv, command.variables)

    async def _start(self, argv: tuple[str, ...], variables: Mapping[str, str]) -> Finished:
        env = {**self._env, **variables}
        try:
            return await run_process(argv, folder=self._folder, env=env, timeout=self._timeout, grace=self._grace)
        except OSError as error:
            reason = _REASONS.get(error.errno or 0, "cannot be started ({error})")
            raise ToolError(f"{argv[0]} {reason.format(error=error.strerror)}") from None


_VISIBLE: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/group", "/etc/ld.so.cache", "/etc/localtime",
    "/etc/nsswitch.conf", "/etc/passwd", "/etc/ssl",
)  # fmt: skip
"""What commands in the sandbox may read of the machine, where it is there."""

_CONFINEMENT: Final = (
    *SEALED,
    *(word for path in _VISIBLE for word in ("--ro-bind-try", path, path)),
    "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--setenv", "HOME", "/tmp",
)  # fmt: skip


def _sandbox(folder: Path, search: str | None) -> Bubblewrap:
    """Commands see the system read-only, can change their folder only, and have no network."""
    own = str(folder.resolve())
    return Bubblewrap((*_CONFINEMENT, "--bind", own, own, "--chdir", own), ("true",), search)


_REASONS: Final = {
    errno.ENOENT: "is not installed on this machine, or not on the PATH",
    errno.EACCES: "may not be executed",
    errno.E2BIG: "cannot take that much: the command or a value in it is too long (often 128 KiB each); write it to a "
    "file and give the file's name",
}


def open_shell(config: ToolConfig) -> Shell:
    """The shell that a declaration describes."""
    settings = config.settings
    return Shell(
        config.name,
        config.folder / (settings.get("cwd") or "."),
        allow=settings.get("allow") or (),
        timeout=duration_seconds(settings.get("timeout") or DEFAULT_TIMEOUT) or 60.0,
        env=config.env,
        sandbox=bool(settings.get("sandbox")),
    )


def _check_text(text: str) -> None:
    """Refuse what no command can be given. Raises ToolError."""
    if not text.strip():
        raise ToolError("the command is empty")
    if "\0" in text:
        raise ToolError("the command or a value in it holds a NUL character, which no command can be given")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ToolError("the command must be valid Unicode text; it holds half a surrogate pair")


def _split(text: str) -> list[str]:
    """The words of a command that no shell reads. Raises ToolError for what only a shell could do."""
    rest = _PLAIN.sub("", text.strip(), count=1)
    if rest[:1] in ("'", '"', "\\"):
        raise ToolError(f"the command has a {rest[0]} that is not closed")
    if rest:
        shown = {"\n": "a line break", "\r": "a line break"}.get(rest[0], f"`{rest[0]}`")
        raise ToolError(f"no shell reads this command, so it cannot use {shown}; run one command, or quote it")
    return shlex.split(text)
