"""`halo inbox`: the open questions of all paused runs."""

from __future__ import annotations

import click


@click.command(short_help="List the open questions of all runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of text.")
def inbox(as_json: bool) -> int:
    """List every open question of the project's runs, with the command that answers it.

    Looking answers nothing. Exit code 0.
    """
    from halo_runtime.cli.listing import list_inbox  # no engine is needed for the help

    return list_inbox(as_json=as_json)
