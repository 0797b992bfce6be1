"""`halo checkpoints`: house-keeping of journals."""

from __future__ import annotations

import click


@click.group()
def checkpoints() -> None:
    """Keep journals in order."""


@checkpoints.command()
@click.argument("reference", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a line.")
def repair(reference: str, as_json: bool) -> int:
    """Keep the intact beginning of a damaged journal, so that the run can be continued from there.

    The damaged file stays beside it, as `.damaged`. Exit code 0; 1 where nothing of it can be read.
    """
    from halo_runtime.cli.output import plural, tell, tell_json
    from halo_runtime.cli.project import store_of

    path, kept, lost = store_of(reference).repair(reference)
    if as_json:
        tell_json({"path": str(path), "kept": kept, "leftOut": lost})
        return 0
    done = f"{plural(lost, 'line')} left out, {path}.damaged keeps all of it" if lost else "it is intact"
    tell(f"{path}: {plural(kept, 'line')} kept, {done}")
    return 0
