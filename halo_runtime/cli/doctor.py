"""`halo doctor`: whether this installation, and what programs declare, could work here."""

from __future__ import annotations

import click


@click.command(short_help="Try what programs need, without doing harm.")
@click.argument("files", metavar="[FILE]…", nargs=-1)
@click.option("--timeout", metavar="DURATION", default="10s", help="How long each tool may take (default 10s).")
@click.option("--env-file", metavar="FILE", help="Variables (NAME=value lines) for keys and addresses.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of lines.")
def doctor(files: tuple[str, ...], timeout: str, env_file: str | None, as_json: bool) -> int:
    """Say whether this installation, and what the programs in FILEs declare, could work here.

    Of the installation: its extras, halo.toml, and the folder where runs are kept. Of each program: the keys of its
    models, and each tool and store, which is reached with its own settings and asked for something harmless. Nothing is
    changed, and nothing is sent to a model; `halo models --check` asks the services of models.

    Exit codes: 0 nothing is wrong · 1 something is · 2 a program has errors.
    """
    from halo_runtime.cli.examining import examine  # neither runtime nor checks are needed for the help

    return examine(files, timeout, env_file, as_json=as_json)
