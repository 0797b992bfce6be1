"""`halo signal`: answer a question of a run, or bring it an event."""

from __future__ import annotations

import click

from halo_runtime.cli.settings import Settings, run_options
from halo_runtime.json_types import Json


@click.command(short_help="Answer a question of a run, or bring it an event.")
@click.argument("run_id", metavar="RUN")
@click.argument("value")
@click.option("--interrupt", metavar="ID", help="Which question, where several are open.")
@click.option("--event", metavar="SOURCE.EVENT", help="Bring an event; one that comes early is kept for its listen.")
@click.option("--no-run", is_flag=True, help="Only leave it: the run takes it when it goes on.")
@run_options
def signal(run_id: str, value: str, interrupt: str | None, event: str | None, no_run: bool, **given: Json) -> int:
    """Answer the open question of the run RUN with VALUE (JSON if it parses, else text), and go on with the run.

    A run that is at work in another process takes the value when it asks for it.

    Exit codes: as `halo run`; 1 where the answer is refused, which leaves the run as it was.
    """
    from halo_runtime.cli.going_on import answer_value, leave  # no engine is needed for the help

    settings = Settings.taken_from(given)
    if no_run:
        return leave(settings, run_id, value, interrupt=interrupt, event=event)
    return answer_value(settings, run_id, value, interrupt=interrupt, event=event, wait=False)
