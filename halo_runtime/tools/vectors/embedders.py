"""What turns texts into vectors: a small model that ships in a package, or a model service's."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

import numpy as np

from halo_runtime.errors import ModelError, ToolError
from halo_runtime.models.embeddings import Embeddings, Purpose
from halo_runtime.models.surrogates import valid_text
from halo_runtime.tools.threads import Workers
from halo_runtime.tools.vectors.matrix import Vectors, unit

OFFLINE_MODEL: Final = "wordllama/l2_supercat_256"
"""What an index says of the vectors that the offline model has made."""
_BATCH: Final = 64
"""Texts between two looks at whether somebody still waits."""
_LOADING: Final = Lock()


class Embedder(Protocol):
    """Makes vectors. `model` tells whose they are: vectors of two models cannot be compared."""

    @property
    def model(self) -> str: ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """A unit vector for each text. Raises ToolError; cancelling stops the work."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


class OfflineEmbedder:
    """Wordllama: the mean of its tokens' vectors, 256 numbers a text, from a table that ships in its package."""

    model = OFFLINE_MODEL

    def __init__(self, name: str) -> None:
        self._workers = Workers(f"{name}-embed")

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """The vectors; the same text has the same one, whatever stands beside it."""
        given = [valid_text(text) for text in texts]
        parts: list[Vectors] = []

        for start in range(0, len(given), _BATCH):
            batch = given[start : start + _BATCH]
            parts.append(await self._workers.do(lambda stop, batch=batch: _loaded().embed(batch)))
        return unit(np.concatenate(parts)) if parts else np.empty((0, 0), dtype=np.float32)

    def close(self) -> None:
        """End the threads; the model stays for the next store."""
        self._workers.close()


class ServiceEmbedder:
    """A model service's embeddings."""

    def __init__(self, model: str, service: Embeddings) -> None:
        self._model = model
        self._service = service

    @property
    def model(self) -> str:
        """The declared id with its prefix."""
        return self._model

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """The vectors, after as many requests as it takes."""
        try:
            vectors = await self._service.embed(self._model, texts, purpose)
        except ModelError as error:
            advice = "" if error.hint is None else f"; {error.hint}"
            raise ToolError(f"{error.message}{advice}", retryable=error.retryable, status=error.status) from None
        if len({len(vector) for vector in vectors}) > 1:
            raise ToolError(f"{self._model} answered with embeddings of different lengths")
        return unit(vectors) if vectors else np.empty((0, 0), dtype=np.float32)

    def close(self) -> None:
        """The connections are the runtime's."""


def _loaded() -> Any:
    """The model, once a process; several threads may be the first to need it."""
    with _LOADING:
        return _load()


@lru_cache(maxsize=1)
def _load() -> Any:
    """The model from its package's own files: asked as it is by default, it would look for them on the network.

    Importing it sets up logging for the whole process, which is not its business; that is taken back.
    """
    root = logging.getLogger()
    level, handlers = root.level, [*root.handlers]
    try:
        import wordllama
    finally:
        root.setLevel(level)
        for handler in [one for one in root.handlers if one not in handlers]:
            root.removeHandler(handler)
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
