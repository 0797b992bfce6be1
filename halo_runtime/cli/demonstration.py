"""What `halo demo` does: open the packaged program in the workbench, or run it here step by step."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Awaitable
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final

from halo_lang.excerpt import visible
from halo_lang.records import record
from halo_runtime.cli.execution import load
from halo_runtime.cli.exit_codes import ExitCode, of_status
from halo_runtime.cli.output import error_block, is_terminal, say, tell
from halo_runtime.cli.performing import StoppedError, perform
from halo_runtime.cli.progress import PlainLines
from halo_runtime.engine.events import InterruptAnswered, InterruptOpened, ModelResponded, RunEvent
from halo_runtime.extras import install_line, is_installed
from halo_runtime.json_types import Json
from halo_runtime.models.scripted import ScriptedModel
from halo_runtime.results import Interrupt, RunResult
from halo_runtime.runtime import Runtime
from halo_runtime.values import text_of
from halo_runtime.version import __version__

if TYPE_CHECKING:
    import click

PACKAGED: Final = Path(__file__).with_name("demo_program")
PROGRAM: Final = PACKAGED / "first_hour.halo"
REPLIES: Final = PACKAGED / "replies.json"
QUESTION: Final = "How do I keep my roses fresh for longer?"
ANSWER: Final = "yes"
NAMES: Final = ("draft", "verdict", "reply")
"""The program's `as` names."""
EMBEDDED: Final = "local/smollm2"
MAX_COPIES: Final = 99
"""Changed copies that are kept in the user's data folder; after that each new one is a temporary folder."""


@record
class DemoOptions:
    """The command's arguments; with neither of them the embedded model where it is installed, else packaged replies."""

    replies: str | None = None
    model: str | None = None

    @property
    def replies_file(self) -> str | None:
        """The file that answers: the packaged one where nothing else does."""
        return self.replies or (None if self.model else str(REPLIES))


def show(options: DemoOptions) -> int:
    """Show the demo; the exit code."""
    if options.replies is None and options.model is None and is_installed("local"):
        options = DemoOptions(model=EMBEDDED)
    workbench = list(entry_points(group="halo.commands", name="edit")) if _on_terminal() else []
    return _open(workbench[0].load(), options) if workbench else _run_here(options)


def working_copy(folder: Path) -> Path:
    """The program as it is packaged, its replies beside it, in `folder`.

    A copy that its owner changed is theirs: it stays as it is, and the new one goes to `<folder>-2`, `-3` and so on.
    """
    names = (folder.name, *(f"{folder.name}-{number}" for number in range(2, MAX_COPIES + 1)))
    place = next((place for name in names if _unchanged(place := folder.with_name(name))), None)
    if place is None:
        raise FileExistsError(f"{folder} and {MAX_COPIES - 1} more hold changed copies")
    place.mkdir(parents=True, exist_ok=True)
    for packaged in (PROGRAM, REPLIES):
        if not (place / packaged.name).exists():
            shutil.copyfile(packaged, place / packaged.name)
    return place / PROGRAM.name


def data_folder() -> Path:
    """The user's own folder for the demo of this version."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "halo" / f"demo-{__version__}"


class Steps(PlainLines):
    """Plain lines that also tell what models and people said."""

    def show(self, event: RunEvent) -> None:
        """Say what the event says, and what was said in it."""
        super().show(event)
        if isinstance(event, ModelResponded) and event.reply is not None:
            tell(_indented(event.reply))
        elif isinstance(event, InterruptOpened):
            tell(_indented(text_of(event.interrupt["message"])))
        elif isinstance(event, InterruptAnswered):
            tell(f"    nobody is asked here, so the demo answers: {visible(text_of(event.answer))}")


def _unchanged(folder: Path) -> bool:
    """Whether what a folder holds of the demo, if anything, is as it was packaged."""
    try:
        return all(
            not os.path.lexists(copy := folder / packaged.name) or copy.read_bytes() == packaged.read_bytes()
            for packaged in (PROGRAM, REPLIES)
        )
    except OSError:
        return False


def _on_terminal() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stdout) and os.environ.get("TERM", "dumb") != "dumb"


def _open(edit: click.Command, options: DemoOptions) -> int:
    """The workbench, on a copy that is the person's to change."""
    try:
        program = working_copy(data_folder())
    except OSError:
        program = working_copy(Path(tempfile.mkdtemp(prefix="halo-demo-")))
    answering = _answering(options.replies, options.model)
    code = edit.main(
        args=[str(program), "--project", str(program.parent), "--run", "-i", f"question={QUESTION}", *answering],
        prog_name="halo edit",
        standalone_mode=False,
    )
    say(f"Your copy of the program: {program}\nOpen it again: {_command('edit', program, *answering)}")
    return code or ExitCode.COMPLETED


def _run_here(options: DemoOptions) -> int:
    analysis = load(str(PROGRAM))
    program = analysis.program
    tell(_introduction(program.source.text, options))
    replies = None if options.replies_file is None else ScriptedModel(options.replies_file)
    pipeline = program.pipelines[0].name.text
    runtime = Runtime(env=os.environ, model=options.model, replies=replies)
    progress = Steps(sys.stdout)

    def work(runtime: Runtime) -> Awaitable[RunResult]:
        return runtime.run(analysis, pipeline, {"question": QUESTION})

    try:
        result = asyncio.run(perform(runtime, work, progress, _answer_for_a_person))
    except StoppedError:
        say(progress.summary("interrupted"))
        return ExitCode.INTERRUPTED
    tell(progress.summary(result.status))
    if result.error is not None:
        say(error_block(result.error, program.source))
    elif result.status == "completed":
        tell(_ending(result, options))
    return of_status(result.status)


async def _answer_for_a_person(_interrupt: Interrupt) -> Json:
    return ANSWER


def _introduction(text: str, options: DemoOptions) -> str:
    numbered = "\n".join(f"  {number:>2}  {line}" for number, line in enumerate(text.splitlines(), start=1))
    source = f"the model {options.model}" if options.model else f"the replies in {options.replies_file}"
    more = (
        ""
        if options.model or is_installed("local")
        else f"\n(for a model that runs in this process: {install_line('local')})"
    )
    return f"A Halo program:\n\n{numbered}\n\nIt runs now on {source}.{more}\nThe question: {QUESTION}\n"


def _ending(result: RunResult, options: DemoOptions) -> str:
    kept = "\n".join(f"  {name}: {_short(result.context.data[name])}" for name in NAMES)
    given = ["-i", "question=How often should I water a cactus?", "--answer", "verdict=shorter"]
    run = _command("run", PROGRAM, *given, *_answering(options.replies_file, options.model))
    return (
        f"\nThe output:\n{_indented(text_of(result.output))}\n\nKept in context.data:\n{kept}\n\n"
        f"Next:\n  halo demo    on a terminal opens this program in the workbench\n  {run}\n"
        f"  halo run --help"
    )


def _answering(replies: str | None, model: str | None) -> list[str]:
    named = (("--replies", replies), ("--model", model))
    return [part for name, value in named if value is not None for part in (name, value)]


def _command(*words: str | Path) -> str:
    return shlex.join(["halo", *map(str, words)])


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in visible(text, keep="\t\n").splitlines())


def _short(value: Json) -> str:
    text = visible(text_of(value))
    return text if len(text) <= 90 else text[:89] + "…"
