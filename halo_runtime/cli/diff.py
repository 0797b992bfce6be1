"""`halo diff`: two runs, or two moments of one, side by side."""

from __future__ import annotations

import click


@click.command(short_help="Compare two runs.")
@click.argument("left", metavar="RUN[@SEQ]")
@click.argument("right", metavar="RUN[@SEQ]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of text.")
def diff(left: str, right: str, as_json: bool) -> int:
    """Compare two runs (ids, or journals' paths), or one at two entries of its trace.

    It shows the route that each took, the values that differ, the calls that differ, and the cost of both.

    Exit code 0, also where they differ; 1 where there is no such run, or its journal cannot be read.
    """
    from halo_runtime.cli.differing import diff_runs  # no engine is needed for the help

    return diff_runs(left, right, as_json=as_json)
