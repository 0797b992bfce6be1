"""`halo trace events`: the logged steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from halo_runtime.cli.trace.options import db_option, open_ledger, time_options

if TYPE_CHECKING:
    from halo_runtime.ledger import Event
    from halo_runtime.ledger.events import Kind, Module

_KINDS = ("observe", "outcome", "remember", "recall", "act", "revise")


@click.command("events", short_help="List the logged steps, or follow links from one.")
@db_option
@click.option("--agent", metavar="NAME", help="Of one agent.")
@click.option("--session", metavar="LABEL", help="Of one session.")
@click.option("--kind", type=click.Choice(_KINDS), help="Of one kind.")
@click.option("--module", type=click.Choice(["S", "M", "A"]), help="Of Sensing, Memory or Action.")
@time_options
@click.option("--ancestors", metavar="ID", help="What this event rests on, directly or not, the latest first.")
@click.option("--descendants", metavar="ID", help="What rests on this event, directly or not.")
@click.option("--after", metavar="ID", help="Behind this one in the order of the list: the next page.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, help="At most so many (default: 50).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of lines.")
def command(
    db: Path | None,
    agent: str | None,
    session: str | None,
    kind: Kind | None,
    module: Module | None,
    since: str | None,
    until: str | None,
    ancestors: str | None,
    descendants: str | None,
    after: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """List the events of the ledger in the order in which they were logged.

    Exit code 0; 2 for an id that there is not.
    """
    from halo_runtime.cli.output import say, tell, tell_json
    from halo_runtime.ledger import Query

    if ancestors is not None and descendants is not None:
        raise click.UsageError("--ancestors and --descendants exclude each other")
    query = Query(
        agent=agent, session=session, kind=kind, module=module, since=since, until=until, ancestors_of=ancestors,
        descendants_of=descendants, after=after, limit=limit,
    )  # fmt: skip
    with open_ledger(db) as ledger:
        page = ledger.events(query)
    if as_json:
        tell_json(page.to_json())
        return 0
    for event in page.events:
        tell(_line(event))
    if page.next is not None:
        say(f"there are more: --after {page.next}")
    return 0


def _line(event: Event) -> str:
    from halo_lang.excerpt import visible
    from halo_runtime.ledger.events import event_id

    told = [value for value in (event.trigger, event.form, event.made_by, event.governance) if value]
    links = [*map(event_id, event.uses), *([f"about {event_id(event.about)}"] if event.about else [])]
    parts = [
        event.id, event.time, event.agent, event.session or "-", " ".join([event.kind, *told]),
        *([event.target] if event.target else []), event.summary, *([f"← {', '.join(links)}"] if links else []),
    ]  # fmt: skip
    return "  ".join(visible(part, keep="") for part in parts)
