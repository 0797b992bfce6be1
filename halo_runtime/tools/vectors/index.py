"""An open vector store: its file, the vectors of its namespace in memory, and the model that makes new ones.

Imports numpy, so it is imported when a store is first used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json
from halo_runtime.tools.threads import Stop
from halo_runtime.tools.vectors.entries import Entry, fits
from halo_runtime.tools.vectors.matrix import Matrix, Vectors
from halo_runtime.tools.vectors.table import Space, Table

MEMORY: Final = ":memory:"
"""The path of a store that ends with its run."""
_AT_ONCE: Final = 64
"""Candidates that are read from the file together."""


@record
class Match:
    """An entry and how close it is: the cosine of both vectors, 1 for the same direction."""

    entry: Entry
    score: float


@record
class Wanted:
    """What is looked for: the vector of the query, how many, how close at least, and with which fields."""

    query: Vectors
    k: int
    min_score: float | None
    filter: Mapping[str, Json]


class Index:
    """One namespace of one file. Blocking; belongs to the thread that uses it first. Raises sqlite3.Error, ToolError.

    `shown` is the file as the declaration has it. A file that is not there is made by what writes, and is empty for
    what reads.
    """

    def __init__(self, path: Path | str, namespace: str, model: str, shown: str) -> None:
        self._path = path
        self._namespace = namespace
        self._model = model
        self._shown = shown
        self._table: Table | None = None
        self._file: tuple[int, int] | None = None
        self._matrix = Matrix(0)
        self._known: Space | None = None

    def close(self) -> None:
        """Close the file."""
        if self._table is not None:
            self._table.close()
            self._table = None

    # --- reading --------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """How many entries there are."""
        table = self._opened(make=False)
        return 0 if table is None else table.count()

    def get(self, id_: str) -> Entry | None:
        """The entry with an id."""
        table = self._opened(make=False)
        return None if table is None else table.get(id_)

    def vectors_of(self, source: str) -> dict[str, bytes]:
        """The vectors of what was taken from a file, by its texts."""
        table = self._opened(make=False)
        return {} if table is None else {entry.text: vector for entry, vector in table.of_source(source)}

    def sources(self) -> list[str]:
        """The files that entries were taken from."""
        table = self._opened(make=False)
        return [] if table is None else table.sources()

    def check(self) -> bool:
        """Whether there are entries, which the store's model can be compared with. ToolError for another's."""
        table = self._opened(make=False)
        if table is None:
            return False
        with table.reading():
            return self._check_space(table, None) is not None

    def search(self, wanted: Wanted, stop: Stop) -> list[Match]:
        """The closest entries, best first."""
        table = self._opened(make=False)
        if table is None:
            return []
        with table.reading():
            space = self._check_space(table, len(wanted.query))
            if space is None:
                return []
            self._follow(table, space)
            return self._matches(table, wanted, stop)

    def _matches(self, table: Table, wanted: Wanted, stop: Stop) -> list[Match]:
        matches: list[Match] = []
        candidates: list[tuple[int, float]] = []

        def take() -> None:
            entries = table.entries([seq for seq, _ in candidates])
            matches.extend(
                Match(entries[seq], score) for seq, score in candidates if fits(entries[seq].metadata, wanted.filter)
            )
            candidates.clear()

        for seq, score in self._matrix.ranked(wanted.query):
            if wanted.min_score is not None and score < wanted.min_score:
                break
            candidates.append((seq, score))
            if len(candidates) == (_AT_ONCE if wanted.filter else wanted.k):
                stop.check()
                take()
                if len(matches) >= wanted.k:
                    break
        take()
        return matches[: wanted.k]

    def _follow(self, table: Table, space: Space) -> None:
        """Bring the vectors in memory to where the file is."""
        known = self._known
        if known is None or (known.model, known.dimension) != (space.model, space.dimension):
            self._matrix = Matrix(space.dimension, room=table.count())
        elif known.removals != space.removals:
            self._matrix.keep(table.numbers())
        for seqs, blob in table.later_than(self._matrix.last):
            self._matrix.add(seqs, np.frombuffer(blob, dtype="<f4").reshape(len(seqs), space.dimension))
        self._known = space

    # --- writing --------------------------------------------------------------------------------------------------

    def put(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add entries in place of those with their ids, all or none."""
        table = self._opened(make=True)
        assert table is not None, "it is made where there is none"
        with table.writing():
            self._begin(table, vectors)
            table.put(entries, _blobs(vectors))

    def replace(self, source: str, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Put entries in the place of all that was taken from a file."""
        table = self._opened(make=True)
        assert table is not None, "it is made where there is none"
        with table.writing():
            if entries:
                self._begin(table, vectors)
            table.remove_sources([source])
            table.put(entries, _blobs(vectors) if entries else ())

    def remove(self, id_: str) -> bool:
        """Whether there was an entry with that id."""
        table = self._opened(make=False)
        if table is None:
            return False
        with table.writing():
            return table.remove(id_)

    def forget(self, sources: Sequence[str]) -> int:
        """Remove all that was taken from files; how many entries that was."""
        table = self._opened(make=False)
        if table is None or not sources:
            return 0
        with table.writing():
            return table.remove_sources(sources)

    def _begin(self, table: Table, vectors: Vectors) -> None:
        """Note whose vectors are about to be written."""
        self._check_space(table, vectors.shape[1])
        table.note(self._model, vectors.shape[1])

    def _check_space(self, table: Table, dimension: int | None) -> Space | None:
        """What the namespace notes, None while it has no entries. ToolError where its vectors are of another model."""
        space = table.space()
        if space is None or table.is_empty():
            return None
        if space.model == self._model and dimension in (None, space.dimension):
            return space
        own = f"{self._model}" if dimension is None else f"{self._model} ({dimension} numbers)"
        raise ToolError(
            f'the entries of namespace "{self._namespace}" in {self._shown} were embedded by {space.model}'
            f" ({space.dimension} numbers) and cannot be compared with those of {own}; declare that model,"
            " or add the texts anew under another namespace or path"
        )

    def _opened(self, *, make: bool) -> Table | None:
        """The file, opened anew where another has taken its place."""
        if self._path == MEMORY:
            self._table = self._table or Table(MEMORY, self._namespace)
            return self._table
        path = Path(self._path)
        if self._table is not None and _file(path) != self._file:
            self.close()
            self._known = None
        if self._table is None and (make or path.exists()):
            self._table = Table(path, self._namespace)
            self._file = _file(path)
        return self._table


def _file(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _blobs(vectors: Vectors) -> list[bytes]:
    return [row.astype("<f4").tobytes() for row in vectors]
