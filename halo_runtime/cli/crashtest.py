"""`halo crashtest`: proof that a program's runs survive a crash anywhere."""

from __future__ import annotations

import click


@click.command(short_help="Kill a run at every boundary, go on, compare.")
@click.argument("file")
@click.argument("pipeline", required=False)
@click.option(
    "-i", "--input", "inputs", metavar="NAME=VALUE", multiple=True,
    help="An argument, as for `halo run`.",
)  # fmt: skip
@click.option("--input-json", metavar="FILE|-", help="All arguments as one JSON object; -i wins over it.")
@click.option("--answer", "answers", metavar="NAME=VALUE", multiple=True, help="Answer a question, as for `halo run`.")
@click.option("--replies", metavar="FILE", help="The replies of the program's agents. Needed where it has any.")
@click.option("--env-file", metavar="FILE", help="Variables (NAME=value lines) for Env.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a table.")
def crashtest(
    file: str,
    pipeline: str | None,
    inputs: tuple[str, ...],
    input_json: str | None,
    answers: tuple[str, ...],
    replies: str | None,
    env_file: str | None,
    as_json: bool,
) -> int:
    """Kill a run of the program FILE at every boundary, go on with it, and compare.

    The boundaries: before each effect (a request, a tool call, an answer), after it and before its record, after its
    record, after each stage, and around the end. At each the process dies by SIGKILL and another one resumes the run.
    Status, output, data, cost and hash chain must come out as in a run that nobody kills, and nothing that was recorded
    may be done again. Each run works on a copy of the program's folder; tools are used for real.

    Exit codes: 0 every boundary holds · 1 one does not · 2 not started.
    """
    from halo_runtime.cli.crashing import Asked, crash_everywhere  # no engine is needed for the help

    return crash_everywhere(Asked(file, pipeline, inputs, input_json, answers, replies, env_file), as_json=as_json)
