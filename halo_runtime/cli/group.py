"""The `halo` command: a group that imports a command's module when the command is invoked, and no sooner."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import choose_colours, emit, is_terminal
from halo_runtime.cli.usage import UsageError, did_you_mean
from halo_runtime.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN = (
    "run", "resume", "signal", "runs", "watch", "stop", "inbox", "show", "diff", "verify", "prune", "checkpoints",
    "crashtest", "trace", "prompt", "check", "fmt", "ast", "explain", "providers", "models", "doctor", "demo", "lsp",
)  # fmt: skip
"""Each is the function of that name in the module of that name beside this one."""

PLUGINS = "halo.commands"
"""Entry point group of commands that live above the runtime, such as the workbench."""


def _color_option(default: str | None) -> click.Option:
    """`--color`, of the group and of each of its commands; without a default it leaves what the group was told."""

    def choose(_ctx: click.Context, _option: click.Parameter, when: str | None) -> None:
        if when is not None:
            choose_colours(when)

    return click.Option(
        ["--color"],
        type=click.Choice(["auto", "always", "never"]),
        metavar="WHEN",
        default=default,
        expose_value=False,
        callback=choose,
        help="Colours: auto (on a terminal, unless NO_COLOR is set), always or never.",
    )


class LazyGroup(click.Group):
    """Finds commands by name: those beside this module, then those of the entry point group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help."""
        return [*BUILT_IN, *sorted(_plugins())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None where there is none."""
        if cmd_name in BUILT_IN:
            return with_color(getattr(import_module(f"halo_runtime.cli.{cmd_name}"), cmd_name))
        entry = _plugins().get(cmd_name)
        return None if entry is None else _loaded(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it. UsageError for an unknown command names what was probably meant."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise UsageError(f"no such command: {name}", hint=self._meant(ctx, name))
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> str | None:
        if name.endswith(".halo"):
            return f"to run a program: halo run {name}"
        return did_you_mean(name, self.list_commands(ctx))


@click.group(
    cls=LazyGroup,
    params=[_color_option("auto")],
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="halo", message="%(prog)s %(version)s")
@click.pass_context
def halo(ctx: click.Context) -> int | None:
    """Run, check and write Halo programs: pipelines of LLM agents.

    Without a command on a terminal: the workbench in the current folder.

    Exit codes: 0 completed · 1 failed · 2 not started (usage, program, input, key) · 3 halted by a gate ·
    4 paused at a question · 130 interrupted.
    """
    if ctx.invoked_subcommand is not None:
        return None
    edit = halo.get_command(ctx, "edit") if is_terminal(sys.stdin) and is_terminal(sys.stdout) else None
    if edit is not None:
        return edit.main(args=[], prog_name="halo edit", standalone_mode=False)
    emit(sys.stderr, ctx.get_help() + "\n")
    return ExitCode.REFUSED


def with_color(command: click.Command) -> click.Command:
    """The command with the option that all of them have."""
    if all(known.name != "color" for known in command.params):
        command.params.append(_color_option(None))
    return command


def _plugins() -> dict[str, EntryPoint]:
    # Imported here: reading the installed packages' metadata costs as much as all the rest of a small command.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=PLUGINS) if entry.name not in BUILT_IN}


def _loaded(entry: EntryPoint) -> click.Command:
    """The plugin's command; one that cannot be imported says so when it is invoked, and harms no other."""
    try:
        return entry.load()
    except (ImportError, AttributeError) as failure:
        reason = f"the command {entry.name} ({entry.value}) cannot be loaded: {failure}"

        def broken() -> None:
            raise UsageError(reason)

        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        return click.Command(entry.name, callback=broken, context_settings=settings, short_help="(cannot be loaded)")
