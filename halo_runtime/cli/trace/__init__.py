"""`halo trace`: the loop ledger. A group that imports a command's module when the command is invoked."""

from __future__ import annotations

from importlib import import_module

import click

from halo_runtime.cli.usage import UsageError, did_you_mean

COMMANDS = ("report", "events", "verify", "export", "import", "guide")
"""Each is `command` in the module beside this one that is called as it is, `import` in `take`."""


class TraceGroup(click.Group):
    """Finds the commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        from halo_runtime.cli.group import with_color

        module = import_module(f"halo_runtime.cli.trace.{'take' if cmd_name == 'import' else cmd_name}")
        return with_color(module.command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it. UsageError for an unknown command names what was probably meant."""
        if not args[0].startswith("-") and args[0] not in COMMANDS:
            raise UsageError(f"no such command: trace {args[0]}", hint=did_you_mean(args[0], COMMANDS))
        return super().resolve_command(ctx, args)


@click.group(cls=TraceGroup, short_help="What the loop ledger shows, and whether it is what was logged.")
def trace() -> None:
    """The loop ledger: what agents logged of their loop, and what the links between the steps show.

    It is .halo/ledger.db of the project, or the file that --db names.
    """
