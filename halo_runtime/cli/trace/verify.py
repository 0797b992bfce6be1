"""`halo trace verify`: whether the ledger is what was logged."""

from __future__ import annotations

import re
from pathlib import Path

import click

from halo_runtime.cli.trace.options import db_option, open_ledger


def _expected(_ctx: click.Context, _option: click.Parameter, text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    found = re.fullmatch(r"e([1-9][0-9]{0,17}):([0-9a-f]{64})", text)
    if found is None:
        raise click.BadParameter("it must be an event and its hash, such as e12:9f2c…, as verify once told it")
    return int(found[1]), found[2]


@click.command("verify", short_help="Check that the ledger is what was logged.")
@db_option
@click.option("--expect", metavar="ID:HASH", callback=_expected, help="An event that must still have this hash.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of lines.")
def command(db: Path | None, expect: tuple[int, str] | None, as_json: bool) -> int:
    """Check every event, hash and link, the ledger's end and its triggers.

    The hash of the last event binds all before it. Keep it elsewhere and give it to --expect later: then also a ledger
    that somebody wrote anew as a whole is found out.

    Exit code 0; 1 where something is found.
    """
    from halo_lang.excerpt import visible
    from halo_runtime.cli.output import plural, tell, tell_json

    with open_ledger(db) as ledger:
        found = ledger.verify(expect)
    if as_json:
        tell_json(found.to_json())
    else:
        head = f", e{found.events}:{found.head}" if found.events else ""
        tell(f"{'valid' if found.valid else 'broken'}, {plural(found.events, 'event')}{head if found.valid else ''}")
        for problem in found.problems:
            tell(f"  {visible(problem, keep='')}")
    return 0 if found.valid else 1
