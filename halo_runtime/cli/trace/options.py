"""What the commands of `halo trace` share: which ledger, and which part of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from halo_runtime.cli.usage import UsageError

if TYPE_CHECKING:
    from halo_runtime.ledger import Ledger

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = "ledger.db"


def db_option(command: Command) -> Command:
    """`--db`, which ledger."""
    return click.option(
        "--db", type=click.Path(path_type=Path), metavar="PATH", help="The ledger (default: .halo/ledger.db)."
    )(command)


def time_options(command: Command) -> Command:
    """`--since` and `--until`, moments in ISO 8601."""
    command = click.option("--until", metavar="TIME", callback=_moment, help="Up to this moment, without it.")(command)
    return click.option(
        "--since", metavar="TIME", callback=_moment, help="From this moment on, such as 2026-11-30T10:00:00Z."
    )(command)


def ledger_path(db: Path | None) -> Path:
    """The ledger that is meant: that of `--db`, else the project's."""
    if db is not None:
        return db
    from halo_runtime.configuration import STORE, configuration

    project = configuration()
    return (project.store or project.folder / STORE) / FILE


def open_ledger(db: Path | None) -> Ledger:
    """The ledger to look at; an empty one where the project has none, as looking makes no file.

    Raises UsageError where there is none at `--db`, StoreError where it cannot be read.
    """
    from halo_runtime.ledger import Ledger

    path = ledger_path(db)
    if path.exists():
        return Ledger.open(path)
    if db is not None:
        raise UsageError(f"there is no ledger {db}", hint="`halo trace import` makes one, and so does logging")
    return Ledger.in_memory()


def _moment(_ctx: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    from halo_runtime.ledger.events import read_time

    moment = read_time(text)
    if text is not None and moment is None:
        raise click.BadParameter(f"{text!r} is no moment in ISO 8601, such as 2026-11-30T10:00:00Z")
    return moment
