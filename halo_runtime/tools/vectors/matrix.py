"""Unit vectors side by side in memory, and which of them are closest to one: brute force, which numpy does fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]
"""Rows of float32."""
Numbers: TypeAlias = npt.NDArray[np.int64]

_FIRST: Final = 256
"""How many of the best are put in order at first."""
_DIGITS: Final = 6
"""Of a score; beyond them it depends on where in the matrix a row stands."""


def unit(rows: Sequence[Sequence[float]] | Vectors) -> Vectors:
    """The rows as float32 of length 1; a row of zeros stays one."""
    matrix = np.asarray(rows, dtype=np.float32)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    norms[norms == 0] = 1
    return np.ascontiguousarray(matrix / norms, dtype=np.float32)


class Matrix:
    """Rows by their sequence numbers: a row that comes later has a larger one. `room` is for how many rows at first."""

    def __init__(self, dimension: int, room: int = 0) -> None:
        self._rows: Vectors = np.empty((room, dimension), dtype=np.float32)
        self._seqs: Numbers = np.empty(room, dtype=np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def last(self) -> int:
        """The largest sequence number, 0 without rows."""
        return int(self._seqs[self._size - 1]) if self._size else 0

    def add(self, seqs: Sequence[int], rows: Vectors) -> None:
        """Rows whose numbers come after all that are there."""
        self._make_room(len(seqs))
        end = self._size + len(seqs)
        self._rows[self._size : end] = rows
        self._seqs[self._size : end] = seqs
        self._size = end

    def keep(self, seqs: Sequence[int]) -> None:
        """Forget every row but those with these numbers."""
        kept = np.isin(self._seqs[: self._size], np.asarray(seqs, dtype=np.int64))
        self._rows, self._seqs = self._rows[: self._size][kept], self._seqs[: self._size][kept]
        self._size = len(self._seqs)

    def ranked(self, query: Vectors) -> Iterator[tuple[int, float]]:
        """All rows by their cosine with a unit vector, best first, then in order of their numbers."""
        scores: Vectors = self._rows[: self._size] @ query
        seen: Numbers = np.empty(0, dtype=np.int64)
        if self._size > _FIRST:
            least = np.partition(scores, -_FIRST)[-_FIRST]
            seen = np.flatnonzero(scores >= least - 10**-_DIGITS)  # with all that share a place in the order
            yield from self._in_order(seen, scores)
        rest = np.setdiff1d(np.arange(self._size), seen, assume_unique=True)
        yield from self._in_order(rest, scores)

    def _in_order(self, places: Numbers, scores: Vectors) -> Iterator[tuple[int, float]]:
        rounded = np.round(scores[places].astype(np.float64), _DIGITS)
        seqs = self._seqs[places]
        order = np.lexsort((seqs, -rounded))
        return zip(seqs[order].tolist(), rounded[order].tolist(), strict=True)

    def _make_room(self, more: int) -> None:
        """Room for rows, twice as much each time, so that adding one by one copies little."""
        needed = self._size + more
        if needed <= len(self._seqs):
            return
        room = max(needed, 2 * len(self._seqs))
        rows = np.empty((room, self._rows.shape[1]), dtype=np.float32)
        seqs = np.empty(room, dtype=np.int64)
        rows[: self._size], seqs[: self._size] = self._rows[: self._size], self._seqs[: self._size]
        self._rows, self._seqs = rows, seqs
