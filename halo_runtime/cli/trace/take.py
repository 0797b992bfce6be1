"""`halo trace import`: events from JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import click

from halo_runtime.cli.trace.options import db_option, ledger_path


@click.command("import", short_help="Take events from JSON lines into the ledger.")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@db_option
@click.option("--partial", is_flag=True, help="Store the lines that break no rule.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of lines.")
def command(file: IO[bytes], db: Path | None, partial: bool, as_json: bool) -> int:
    """Take events from FILE (- for stdin) as `halo trace export` writes them.

    They get new ids, and links are mapped to them; times stay. Where a line breaks a rule it is named, and nothing is
    stored. Links may only name events of the same agent on earlier lines.

    Exit code 0; 1 where a line was refused, also with --partial.
    """
    from halo_runtime.cli.output import plural, say, tell_json
    from halo_runtime.ledger import Ledger

    with Ledger.open(ledger_path(db)) as ledger:
        found = ledger.take(file, partial=partial)
    if as_json:
        refused = [{"line": line, "problems": list(problems)} for line, problems in found.refused]
        tell_json({"stored": found.stored, "refused": refused})
    else:
        for line, problems in found.refused:
            say(f"line {line}: {'; '.join(problems)}")
        say(
            f"{plural(found.stored, 'event')} stored"
            + (f", {plural(len(found.refused), 'line')} refused" if found.refused else "")
        )
    return 1 if found.refused else 0
