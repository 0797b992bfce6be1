"""`halo lsp`: the language server, for editors."""

from __future__ import annotations

import sys

import click

from halo_runtime.cli.output import is_terminal, say
from halo_runtime.cli.usage import UsageError
from halo_runtime.extras import install_line
from halo_runtime.version import __version__


@click.command()
@click.option("--stdio", is_flag=True, help="What is done anyway; some editors say it.")
def lsp(stdio: bool) -> int:
    """Serve an editor over the Language Server Protocol.

    The editor starts it and speaks with it over stdin and stdout; messages for people go to stderr.
    """
    try:
        from halo_lang.server import Knowledge, serve
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("pygls", "lsprotocol", "cattrs", "attrs"):
            raise
        raise UsageError("the language server is not installed", hint=install_line("lsp")) from None
    if is_terminal(sys.stdin):
        say(f"halo lsp {__version__} waits for an editor to speak the Language Server Protocol; Ctrl-C ends it")
    from halo_runtime.cli.sources import is_priced
    from halo_runtime.models.pricing import known_models

    return serve(__version__, Knowledge(known_models, is_priced))
