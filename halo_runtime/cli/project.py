"""Where a project keeps its runs, and how they are named.

They lie in `.halo` in the folder of its `halo.toml`, else in the current one (spec 12.6), or where that file says.
"""

from __future__ import annotations

from pathlib import Path

from halo_runtime.configuration import STORE, configuration
from halo_runtime.store.files import FileRunStore


def run_store(folder: Path | None = None, *, within: str | None = None) -> FileRunStore:
    """The project's runs, or those of a folder; `within` as FileRunStore takes it."""
    if folder is not None:
        return FileRunStore(folder / STORE, within=within)
    project = configuration()
    return FileRunStore(project.store or project.folder / STORE, within=within)


def store_of(reference: str) -> FileRunStore:
    """The runs among which one is that is named by its journal's path: those of its own project. Else the project's."""
    path = Path(reference).absolute()
    folder = path.parent.parent
    inside = path.parent.name == "checkpoints" and folder.name == STORE and path.suffix == ".jsonl"
    return FileRunStore(folder) if inside else run_store()


def split_reference(text: str) -> tuple[str, int | None]:
    """A run (its id, or its journal's path) and an entry of its trace, from `RUN` or `RUN@SEQ`."""
    reference, mark, seq = text.rpartition("@")
    return (reference, int(seq)) if mark and seq.isdigit() else (text, None)
