"""What the marks of a run's journal stand for (see policies/edge.py), for as long as the run can go on."""

from __future__ import annotations

import json
from pathlib import Path

from halo_runtime.errors import StoreError
from halo_runtime.json_types import JsonObject, is_object
from halo_runtime.store.atomic import write_atomically


class VaultFile:
    """A file for its owner alone, beside the journals and not among them: whoever shares a journal shares nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> JsonObject | None:
        """What is kept; None where nothing is. Raises StoreError."""
        try:
            document: object = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as problem:
            raise StoreError(f"{self.path} cannot be read: {problem}") from None
        if not is_object(document):
            raise StoreError(f"{self.path} is not what a run has kept")
        return document

    def save(self, document: JsonObject) -> None:
        """Keep it, in one piece. Raises StoreError."""
        try:
            write_atomically(self.path, json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        except OSError as failure:
            raise StoreError(f"{self.path} cannot be written: {failure.strerror}; make room") from None

    def remove(self) -> None:
        """Forget it. Raises StoreError."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as failure:
            raise StoreError(f"{self.path} cannot be removed: {failure.strerror}; remove it by hand") from None
