"""`halo explain`: what a diagnostic's code means."""

from __future__ import annotations

import click

from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import tell
from halo_runtime.cli.usage import UsageError, did_you_mean


@click.command(short_help="Explain a diagnostic code.")
@click.argument("code")
def explain(code: str) -> int:
    """Explain a diagnostic CODE such as HL405, with a wrong and a right example."""
    from halo_lang.catalog import codes

    text = codes.explain(code)
    if text is None:
        raise UsageError(f"no such code: {code}", hint=did_you_mean(code, [known.name for known in codes.CODES]))
    tell(text.rstrip())
    return ExitCode.COMPLETED
