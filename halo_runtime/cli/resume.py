"""`halo resume`: go on with a paused or interrupted run, with its own program."""

from __future__ import annotations

import click

from halo_runtime.cli.settings import Settings, run_options
from halo_runtime.json_types import Json


@click.command(short_help="Go on with a paused or interrupted run.")
@click.argument("run_id", metavar="RUN")
@click.option("--answer", metavar="VALUE", help="The answer to the open question: JSON if it parses, else text.")
@click.option("--interrupt", metavar="ID", help="Which question, where several are open.")
@run_options
def resume(run_id: str, answer: str | None, interrupt: str | None, **given: Json) -> int:
    """Go on with the run RUN (its id, or its journal's path), with the program it was started with.

    Without --answer the open questions are asked at the terminal; without one they are listed. The models, replies and
    variables are those of the run's start where no option says otherwise.

    Exit codes: as `halo run`; 1 where the run cannot go on like that, which leaves it as it was.
    """
    from halo_runtime.cli.going_on import answer_value, go_on  # no engine is needed for the help

    settings = Settings.taken_from(given)
    if answer is None:
        return go_on(settings, run_id, interrupt)
    return answer_value(settings, run_id, answer, interrupt=interrupt)
