"""`halo demo`: the packaged program, in the workbench on a terminal, step by step without one."""

from __future__ import annotations

import click

from halo_runtime.json_types import Json


@click.command()
@click.option("--replies", metavar="FILE", help="Answer from this replies file, not from the embedded model.")
@click.option("--model", metavar="ID", help="Run on this model.")
def demo(**given: Json) -> int:
    """See Halo at work: no key, no network, no file of your own.

    A program that drafts an answer and asks a person before it is sent. On a terminal it opens in the workbench, as a
    copy that is yours to change, and runs to its question; without one it runs here, tells each step and answers the
    question itself. It runs on the embedded model where the extra `local` is installed, else on prepared replies.
    """
    # Imported here: `halo --help` reads this module for its help line, and needs no engine for that.
    from halo_runtime.cli.demonstration import DemoOptions, show

    return show(DemoOptions(**given))
