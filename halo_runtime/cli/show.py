"""`halo show`: a run as its journal tells it, now or at any entry of its trace."""

from __future__ import annotations

import click


@click.command(short_help="Show a run, now or at any stage.")
@click.argument("reference", metavar="RUN[@SEQ]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, in the shape of `halo run --json`.")
def show(reference: str, as_json: bool) -> int:
    """Show the run RUN (its id, or its journal's path); with @SEQ as it was after that entry of its trace.

    Nothing is changed by looking. Exit code 0; 1 where there is no such run, or its journal cannot be read.
    """
    from halo_runtime.cli.viewing import show_run  # no engine is needed for the help

    return show_run(reference, as_json=as_json)
