"""`halo prompt`: what an agent call would send, without sending it."""

from __future__ import annotations

import click

from halo_lang.records import record
from halo_runtime.json_types import Json


@record
class PromptOptions:
    """The command's arguments as they were given."""

    file: str
    call: str
    inputs: tuple[str, ...]
    input_json: str | None
    data: str | None
    line: int | None
    model: str | None
    as_json: bool


@click.command(short_help="Show what an agent call would send, without sending it.")
@click.argument("file")
@click.argument("call", metavar="AGENT[.METHOD]")
@click.option(
    "-i", "--input", "inputs", metavar="NAME=VALUE", multiple=True,
    help="A value: an argument as for `halo run`, a result by its name (summary, Writer.summarize), the item of an "
    "`each`, or `current`, the flowing value.",
)  # fmt: skip
@click.option("--input-json", metavar="FILE|-", help="Arguments as one JSON object; -i wins over it.")
@click.option("--data", metavar="JSON|@FILE", help="Results of earlier stages, an object shaped like context.data.")
@click.option("--line", type=int, metavar="N", help="Only the call at this line, where there are several.")
@click.option("--model", metavar="ID", help="Show the request as it would go to this model.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def prompt(**given: Json) -> int:
    """Show what the calls of AGENT.METHOD in the program FILE would send: messages, settings, functions, schema.

    Nothing is sent, no tool is called, and no key is needed. A value that is not there yet, such as the result of an
    earlier stage, stays visible as its placeholder, and a note says how to give it.

    Exit codes: 0 shown · 2 not shown (usage, program, values).
    """
    from halo_runtime.cli.prompting import show  # no engine is needed for the help

    return show(PromptOptions(**given))
