"""`halo trace report`: channels, evidence steps and level."""

from __future__ import annotations

from pathlib import Path

import click

from halo_runtime.cli.trace.options import db_option, open_ledger, time_options


@click.command("report", short_help="Channels, evidence steps and level of each agent, with the events behind them.")
@db_option
@click.option("--agent", metavar="NAME", help="Of one agent.")
@click.option("--session", metavar="LABEL", help="What the events of one session show.")
@time_options
@click.option("--all", "every", is_flag=True, help="All events of each row instead of the first ten.")
@click.option(
    "--format", "form", type=click.Choice(["table", "md", "html", "json"]), default="table", help="Default: table."
)
@click.option("--json", "as_json", is_flag=True, help="As --format json: one JSON object on stdout.")
def command(
    db: Path | None,
    agent: str | None,
    session: str | None,
    since: str | None,
    until: str | None,
    every: bool,
    form: str,
    as_json: bool,
) -> int:
    """Show which channels and evidence steps the trace of each agent shows, and its level.

    What no link shows is "not observed"; that is not the same as absent.

    Exit code 0.
    """
    from halo_runtime.cli.output import tell, tell_json
    from halo_runtime.ledger.rendering import as_html, as_markdown, as_text
    from halo_runtime.ledger.report import IDS

    with open_ledger(db) as ledger:
        report = ledger.report(agent, session=session, since=since, until=until, ids=None if every else IDS)
    if as_json or form == "json":
        tell_json(report.to_json())
    else:
        tell({"table": as_text, "md": as_markdown, "html": as_html}[form](report))
    return 0
