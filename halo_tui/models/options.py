"""What `halo edit` was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halo_runtime.store.files import FileRunStore


def project_store(folder: Path | None = None) -> FileRunStore:
    """The store of a project's folder; without one of the project that the current folder belongs to."""
    # Imported here: the editor opens before the modules of the store are needed.
    from halo_runtime.cli.project import run_store

    return run_store(folder, within="workbench")


@dataclass(frozen=True, slots=True)
class Options:
    """`inputs` are texts by parameter name, as `-i` takes them; `run` starts a run as soon as the program is open.

    `open_store` opens the store in which runs are kept.
    """

    replies: Path | None = None
    model: str | None = None
    inputs: dict[str, str] = field(default_factory=dict[str, str])
    run: bool = False
    open_store: Callable[[], FileRunStore] = project_store
