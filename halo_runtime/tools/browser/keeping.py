"""Pictures and PDFs of pages, kept as files in the program's folder and nowhere else."""

from __future__ import annotations

from pathlib import Path

from halo_runtime.errors import ToolError
from halo_runtime.json_types import JsonObject
from halo_runtime.tools.threads import Stop, Workers
from halo_runtime.tools.workspace.files import exclusive, write_bytes
from halo_runtime.tools.workspace.paths import Closed, Parts, parse_path, show
from halo_runtime.tools.workspace.root import Root


class Keeper:
    """Writes files of a tool. Who names them may be a model, so paths are walked as in a workspace."""

    def __init__(self, name: str, folder: Path) -> None:
        self._folder = folder
        self._closed = Closed()
        self._workers = Workers(name)

    def path(self, text: str, endings: tuple[str, ...]) -> Parts:
        """Where to keep a file. Raises ToolError for other endings: a picture takes the place of no program."""
        parts = parse_path(text)
        if not parts or parts[-1].rpartition(".")[2].lower() not in endings or "." not in parts[-1]:
            raise ToolError(f"`{show(parts)}` must end with {' or '.join(f'.{ending}' for ending in endings)}")
        self._closed.check(parts)
        return parts

    async def keep(self, parts: Parts, data: bytes) -> JsonObject:
        """Write a file whole: `{path, bytes}`. Raises ToolError, and OSError where the system refuses."""
        return await self._workers.do(lambda stop: self._write(parts, data, stop))

    def close(self) -> None:
        """End the threads."""
        self._workers.close()

    def _write(self, parts: Parts, data: bytes, stop: Stop) -> JsonObject:
        with Root.open(self._folder, self._closed) as root, exclusive(root, stop):
            with root.at(parts, make=True) as spot:
                write_bytes(spot, data, stop)
            return {"path": show(spot.parts), "bytes": len(data)}
