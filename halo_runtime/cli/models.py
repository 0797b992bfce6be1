"""`halo models`: the services that models come from, and whether they can be used here."""

from __future__ import annotations

import click


@click.command(short_help="List the services of models, and try them.")
@click.option("--check", is_flag=True, help="Ask each service that is configured for its models.")
@click.option("--timeout", metavar="DURATION", default="10s", help="How long each may take to answer (default 10s).")
@click.option("--env-file", metavar="FILE", help="Variables (NAME=value lines) for keys and addresses.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a table.")
def models(check: bool, timeout: str, env_file: str | None, as_json: bool) -> int:
    """List the services that models come from: how their ids begin, which key they need and whether it is set, where
    they are asked. Keys are never shown.

    With --check each one that is configured is asked for its models, which costs nothing.

    Exit codes: 0 all that are configured answered · 1 one did not.
    """
    from halo_runtime.cli.modelling import check_services, list_services  # no provider is needed for the help

    return check_services(timeout, env_file, as_json=as_json) if check else list_services(env_file, as_json=as_json)
