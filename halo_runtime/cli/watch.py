"""`halo watch`: follow a run that is at work, here or in another process."""

from __future__ import annotations

import click


@click.command(short_help="Follow a run that is at work.")
@click.argument("reference", metavar="RUN")
@click.option("--from-now", is_flag=True, help="Leave out what has happened already.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line on stdout, for programs.")
def watch(reference: str, from_now: bool, as_json: bool) -> int:
    """Follow the run RUN (its id, or its journal's path) until it stops; nothing is changed by that.

    What a run that is not kept does cannot be seen from outside; its end is waited for. Ctrl-C ends the watching, the
    run goes on.

    Exit codes: as `halo run`, by how the run stopped; 0 where that is not known; 1 where there is no such run.
    """
    from halo_runtime.cli.following import watch_run  # no engine is needed for the help

    return watch_run(reference, from_now=from_now, as_json=as_json)
