"""`halo verify`: whether a run's journal is what was written."""

from __future__ import annotations

import click


@click.command(short_help="Check that a journal is what was written.")
@click.argument("reference", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a line.")
def verify(reference: str, as_json: bool) -> int:
    """Check the journal of the run RUN (its id, or the journal's path).

    It is valid (whole and ended), open (whole, and the run is not over), torn (half a line at its end), cut at N
    (entries from N on are missing) or broken at N (entry N is not what was written).

    Exit code 0 for valid and open, 1 where something is found.
    """
    from halo_runtime.cli.viewing import verify_run  # no engine is needed for the help

    return verify_run(reference, as_json=as_json)
