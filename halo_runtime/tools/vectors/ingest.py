"""Documents of the program's folder as entries: read, cut into pieces, named after their files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.extras import install_line, is_installed
from halo_runtime.json_types import JsonObject
from halo_runtime.tools.documents.provider import Document, Documents, ending
from halo_runtime.tools.documents.text import chunks_of
from halo_runtime.tools.vectors.entries import Entry
from halo_runtime.tools.workspace.paths import Parts, parse_path, show

CHUNK: Final = 1000
OVERLAP: Final = 100
"""Characters; as `Documents.chunks` cuts where nothing else is said."""
MAX_FILES: Final = 1_000
"""Of one call."""

_NEED_PACKAGES: Final = ("pdf", "docx", "xlsx", "pptx")


class Library:
    """The documents that a store may take in: those of the program's folder, and nothing outside it."""

    def __init__(self, name: str, folder: Path) -> None:
        self._documents = Documents(name, folder, "of the program")

    async def files(self, path: str) -> tuple[bool, str, list[Parts]]:
        """Whether a path is a folder, how it is written without detours, and the documents there. Raises ToolError."""
        parts = parse_path(path)
        is_folder, found = await self._documents.files(parts)
        if len(found) > MAX_FILES:
            raise ToolError(f"`{path}` has {len(found):,} documents, over {MAX_FILES:,}; ingest its folders one by one")
        return is_folder, show(parts), found

    async def entries(self, parts: Parts) -> list[Entry]:
        """The pieces of a document. Raises ToolError for one that cannot be read."""
        if ending(parts) in _NEED_PACKAGES and not is_installed("documents"):
            raise ToolError(f"`{show(parts)}` needs the extra `documents` to be read: {install_line('documents')}")
        return list(_entries(await self._documents.document(parts), show(parts)))

    async def close(self) -> None:
        """End the threads."""
        await self._documents.close()


def is_below(source: str, folder: str) -> bool:
    """Whether a file lies in a folder, as both are shown; "." is the root."""
    return folder == "." or source.startswith(f"{folder}/")


def _entries(document: Document, source: str) -> Iterator[Entry]:
    number = 0
    for page in document.pages:
        fields: JsonObject = {"source": source} | ({"page": page.number} if len(document.pages) > 1 else {})
        for piece in chunks_of(page.text, CHUNK, OVERLAP):
            if piece.strip():
                number += 1
                yield Entry(f"{source}#{number}", piece.strip(), fields, source)
