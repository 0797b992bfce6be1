"""Where a project keeps its runs, and how they are named.

They lie in `.halo` in the folder of its `halo.toml`, else in the current one (spec 12.6).
"""

from __future__ import annotations

from pathlib import Path

from halo_runtime.store.files import FileRunStore

CONFIGURATION = "halo.toml"
FOLDER = ".halo"


def project_folder(start: Path | None = None) -> Path:
    """The nearest folder upwards with a configuration file; without one the folder itself."""
    here = (start or Path()).absolute()
    return next((folder for folder in (here, *here.parents) if (folder / CONFIGURATION).is_file()), here)


def run_store(folder: Path | None = None, *, within: str | None = None) -> FileRunStore:
    """The project's runs, or those of a folder; `within` as FileRunStore takes it."""
    return FileRunStore((folder or project_folder()) / FOLDER, within=within)


def store_of(reference: str) -> FileRunStore:
    """The runs among which one is that is named by its journal's path: those of its own project. Else the project's."""
    path = Path(reference).absolute()
    inside = path.parent.name == "checkpoints" and path.parent.parent.name == FOLDER
    return run_store(path.parent.parent.parent) if inside and path.suffix == ".jsonl" else run_store()


def split_reference(text: str) -> tuple[str, int | None]:
    """A run (its id, or its journal's path) and an entry of its trace, from `RUN` or `RUN@SEQ`."""
    reference, mark, seq = text.rpartition("@")
    return (reference, int(seq)) if mark and seq.isdigit() else (text, None)
