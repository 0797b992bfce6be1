"""`halo run`: run a pipeline of a program."""

from __future__ import annotations

import click

from halo_lang.records import record
from halo_runtime.json_types import Json


@record
class RunOptions:
    """The command's arguments as they were given."""

    file: str
    pipeline: str | None
    inputs: tuple[str, ...]
    input_json: str | None
    replies: str | None
    model: str | None
    answers: tuple[str, ...]
    no_input: bool
    as_json: bool
    events: bool
    quiet: bool
    timeout: str | None
    env_file: str | None


@click.command()
@click.argument("file")
@click.argument("pipeline", required=False)
@click.option(
    "-i", "--input", "inputs", metavar="NAME=VALUE", multiple=True,
    help="An argument, read by its parameter's type. @FILE reads a file, @@ stands for a leading @.",
)  # fmt: skip
@click.option("--input-json", metavar="FILE|-", help="All arguments as one JSON object; -i wins over it.")
@click.option("--replies", metavar="FILE", help="Answer every agent from a replies file instead of its model.")
@click.option("--model", metavar="ID", help="Use this model for every agent.")
@click.option(
    "--answer", "answers", metavar="NAME=VALUE", multiple=True,
    help="Answer a question ahead, by its `as` name; JSON if it parses, else text. In order for repeated questions.",
)  # fmt: skip
@click.option("--no-input", is_flag=True, help="Never ask at the terminal: pause instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of the output alone.")
@click.option("--events", is_flag=True, help="Every event as a line of JSON on stderr instead of progress.")
@click.option("--quiet", is_flag=True, help="No progress on stderr, only errors and open questions.")
@click.option("--timeout", metavar="DURATION", help="A limit for the whole run, such as 30s or 5m.")
@click.option("--env-file", metavar="FILE", help="Variables (NAME=value lines) for Env and the models' keys.")
def run(**given: Json) -> int:
    """Run a pipeline of the program FILE. PIPELINE may be left out when there is one.

    The output alone goes to stdout, everything else to stderr. Questions are asked at the terminal; without one the
    run pauses. This version keeps no journal on disk: a paused or interrupted run cannot be continued by a later
    command, so answer ahead with --answer.

    Exit codes: 0 completed · 1 failed · 2 not started · 3 halted by a gate · 4 paused · 130 interrupted.
    """
    # Imported here: `halo --help` reads this module for its help line, and needs no engine for that.
    from halo_runtime.cli.execution import execute

    return execute(RunOptions(**given))
