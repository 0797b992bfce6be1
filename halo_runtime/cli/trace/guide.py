"""`halo trace guide`: how to log."""

from __future__ import annotations

import click


@click.command("guide", short_help="How to log: the six tools, their fields, what to link, and the levels.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of the text.")
def command(as_json: bool) -> int:
    """Print all that an agent needs to log its loop well, in Markdown.

    Exit code 0.
    """
    from halo_runtime.cli.output import tell, tell_json
    from halo_runtime.ledger.guide import guide

    text = guide().rstrip("\n")
    if as_json:
        tell_json({"guide": text})
    else:
        tell(text)
    return 0
