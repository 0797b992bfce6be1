"""`halo stop`: stop a run that is at work in another process."""

from __future__ import annotations

import click


@click.command(short_help="Stop a run that is at work.")
@click.argument("reference", metavar="RUN")
@click.option("--force", is_flag=True, help="End a process that has not stopped by then, at once.")
@click.option("--wait", metavar="DURATION", default="10s", help="How long it may take to stop (default 10s).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a line.")
def stop(reference: str, force: bool, wait: str, as_json: bool) -> int:
    """Stop the run RUN (its id, or its journal's path) as Ctrl-C would, and wait until it has stopped.

    The run is kept and can go on later. A process is only signalled when it is the one that began the run: its id and
    start time must match. All runs of that process stop.

    Exit codes: 0 stopped · 1 refused, or it has not stopped.
    """
    from halo_runtime.cli.ending import stop_run  # no engine is needed for the help

    return stop_run(reference, force=force, wait=wait, as_json=as_json)
