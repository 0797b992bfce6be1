"""`halo providers`: what tools and stores can be declared, and what each of them can do."""

from __future__ import annotations

import click


@click.command(short_help="List what tools and stores there are, or what one can do.")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of text.")
def providers(name: str | None, as_json: bool) -> int:
    """List the providers that `tool` and `store` declarations can name, those of installed packages included.

    With NAME: its settings and its methods, with what they take, give and do to the world.
    """
    from halo_runtime.cli.catalogue import list_providers, show_provider  # the catalogue is not needed for the help

    return list_providers(as_json=as_json) if name is None else show_provider(name, as_json=as_json)
