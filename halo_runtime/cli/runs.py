"""`halo runs`: the runs of the project."""

from __future__ import annotations

import click


@click.command(short_help="List the kept runs, or those at work now.")
@click.option("--live", is_flag=True, help="Those that are at work now, kept or not.")
@click.option("--status", metavar="STATUS", help="Those of a status: paused, failed, interrupted, …")
@click.option("--pipeline", metavar="NAME", help="Those of a pipeline.")
@click.option("--limit", type=click.IntRange(1), default=None, help="The latest N.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a table.")
def runs(live: bool, status: str | None, pipeline: str | None, limit: int | None, as_json: bool) -> int:
    """List the runs that are kept in .halo, the latest first; paused ones wait for `halo resume`.

    Looking changes nothing. Exit code 0.
    """
    from halo_runtime.cli.listing import list_live, list_runs  # no engine is needed for the help

    return list_live(as_json=as_json) if live else list_runs(status, pipeline, limit, as_json=as_json)
