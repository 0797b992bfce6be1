"""What tests of vector stores share: a store whose vectors are those of words, and the way a run calls its methods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from halo_lang import catalog
from halo_runtime.models.embeddings import Purpose
from halo_runtime.tools.vectors.matrix import Vectors, unit
from halo_runtime.tools.vectors.provider import Settings, VectorStore
from tests.fakes.embeddings import vector

SPEC = catalog.provider("VectorStore")
assert SPEC is not None


class Words:
    """An embedder: texts with the same words are close. `asked` is what it was given; `gate` is waited for."""

    def __init__(self, model: str = "words", length: int = 64, gate: asyncio.Event | None = None) -> None:
        self.model = model
        self.asked: list[str] = []
        self.waiting = asyncio.Event()
        self._length = length
        self._gate = gate

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        self.asked += texts
        self.waiting.set()
        if self._gate is not None:
            await self._gate.wait()
        return unit([vector(text, self._length) for text in texts])

    def close(self) -> None:
        """Nothing is open."""


def opened(folder: Path, embedder: Words | None = None, *, path: str = "v.db", **more: Any) -> VectorStore:
    """A store in `folder`."""
    settings = Settings(path=folder / path, shown=path, namespace=more.pop("namespace", "docs"), **more)
    words = embedder or Words()
    return VectorStore("Docs", settings, folder, lambda: words)


@asynccontextmanager
async def store(folder: Path, embedder: Words | None = None, **more: Any) -> AsyncGenerator[VectorStore]:
    """A store in `folder`, closed in the end."""
    made = opened(folder, embedder, **more)
    try:
        yield made
    finally:
        await made.close()


async def call(tool: VectorStore, method: str, **args: Any) -> Any:
    """Call a method as a run does: through its signature, with its defaults."""
    entry = SPEC.method(method)
    assert entry is not None
    bound = entry.signature.bind((), args)
    assert not bound.problems
    assert not bound.wrong_values()
    return await tool.call(method, dict(bound.values()))


async def ask(folder: Path, method: str, /, **args: Any) -> Any:
    """One call of a store of its own."""
    async with store(folder) as tool:
        return await call(tool, method, **args)


def files(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def ids(found: Any) -> list[str]:
    """The ids of matches."""
    return [one["id"] for one in found]
