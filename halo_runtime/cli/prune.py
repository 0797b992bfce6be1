"""`halo prune`: delete old runs."""

from __future__ import annotations

import click


@click.command(short_help="Delete old runs.")
@click.option("--older", metavar="DURATION", required=True, help="Runs that nothing has happened to for so long: 30d.")
@click.option(
    "--status", "statuses", metavar="STATUS", multiple=True,
    help="Only runs of a status, also paused or damaged ones; may be given several times.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Delete nothing; say what would be deleted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of text.")
def prune(older: str, statuses: tuple[str, ...], dry_run: bool, as_json: bool) -> int:
    """Delete old runs from .halo, with all that belongs to them.

    Without --status: those that are completed, halted, failed or interrupted. Paused ones wait for an answer and stay,
    those at work stay in any case.

    Exit code 0.
    """
    from halo_runtime.cli.pruning import prune_runs  # no engine is needed for the help

    return prune_runs(older, frozenset(statuses), dry_run=dry_run, as_json=as_json)
