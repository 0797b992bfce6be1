"""`halo run`: run a pipeline of a program, or continue a run with the program as it is now."""

from __future__ import annotations

import click

from halo_lang.records import record
from halo_runtime.cli.settings import Settings, run_options
from halo_runtime.json_types import Json


@record
class RunOptions:
    """The command's own arguments as they were given."""

    file: str
    pipeline: str | None
    inputs: tuple[str, ...]
    input_json: str | None
    answers: tuple[str, ...]
    timeout: str | None
    max_spend: str | None
    on_limit: str | None
    keep: bool
    checkpoint: str | None
    strict: bool
    plan: bool
    reuse_answers: bool


@click.command()
@click.argument("file")
@click.argument("pipeline", required=False)
@click.option(
    "-i", "--input", "inputs", metavar="NAME=VALUE", multiple=True,
    help="An argument, read by its parameter's type. @FILE reads a file, @@ stands for a leading @.",
)  # fmt: skip
@click.option("--input-json", metavar="FILE|-", help="All arguments as one JSON object; -i wins over it.")
@click.option(
    "--answer", "answers", metavar="NAME=VALUE", multiple=True,
    help="Answer a question ahead, by its `as` name; JSON if it parses, else text. In order for repeated questions.",
)  # fmt: skip
@click.option("--timeout", metavar="DURATION", help="A limit for the whole run, such as 30s or 5m.")
@click.option("--max-spend", metavar="USD", help="What the models of the whole run may cost, such as 0.50.")
@click.option(
    "--on-limit", type=click.Choice(["fail", "ask"]),
    help="What happens where --max-spend is used up: the run fails (so if left out), or asks for more.",
)  # fmt: skip
@click.option("--keep", is_flag=True, help="Keep the run on disk also without @checkpoint.")
@click.option(
    "--checkpoint", metavar="RUN[@SEQ]",
    help="Continue a run (its id, or its journal's path) as a new one: what did not change is not done again. "
    "@SEQ goes back to that entry of its trace first.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="With --checkpoint: refuse where a stage differs.")
@click.option("--plan", is_flag=True, help="With --checkpoint: say what would be reused, and run nothing.")
@click.option("--reuse-answers", is_flag=True, help="With --checkpoint: do not ask questions again.")
@run_options
def run(**given: Json) -> int:
    """Run a pipeline of the program FILE. PIPELINE may be left out when there is one.

    The output alone goes to stdout, everything else to stderr. Questions are asked at the terminal; without one the
    run pauses, and `halo resume` goes on with it.

    Exit codes: 0 completed · 1 failed or refused · 2 not started · 3 halted by a gate · 4 paused · 130 interrupted.
    """
    # Imported here: `halo --help` reads this module for its help line, and needs no engine for that.
    from halo_runtime.cli.execution import execute

    settings = Settings.taken_from(given)
    return execute(RunOptions(**given), settings)
