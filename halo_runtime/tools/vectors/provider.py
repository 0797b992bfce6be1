"""`VectorStore(namespace, path, k, minScore, model)`: texts found by meaning, in one SQLite file.

Spec 5, reference 2.8. The file may be shared: several runs and processes can use it at once, each change is one
transaction, and each search sees what others have changed before it. Making a store imports neither numpy nor the
model: its first call does.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from halo_lang.records import record
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.sqlite_files import explained, patiently
from halo_runtime.tools.threads import Stop, Workers
from halo_runtime.tools.vectors.entries import Entry, read_entries, read_entry, read_fields, read_id
from halo_runtime.tools.vectors.ingest import Library, is_below
from halo_runtime.tools.workspace.paths import Parts, show

if TYPE_CHECKING:
    from halo_runtime.models.embeddings import Embeddings
    from halo_runtime.tools.vectors.embedders import Embedder
    from halo_runtime.tools.vectors.index import Index, Match

DEFAULT_PATH: Final = "vectors.db"
DEFAULT_K: Final = 5
MAX_QUERY: Final = 6_000
"""Code points of a query that are looked at: what an agent's input is about is told by then."""

_MAX_SKIPPED: Final = 100
_MEMORY: Final = ":memory:"

T = TypeVar("T")
MakeEmbedder: TypeAlias = "Callable[[], Embedder]"


@record
class Settings:
    """Where the entries are, and what a search gives where it does not say it."""

    path: Path
    shown: str
    namespace: str
    k: int = DEFAULT_K
    min_score: float | None = None


class VectorStore:
    """One declared store. All work on its file is done in one thread of its own."""

    def __init__(self, name: str, settings: Settings, folder: Path, make_embedder: MakeEmbedder) -> None:
        self._name = name
        self._settings = settings
        self._make_embedder = make_embedder
        self._workers = Workers(name, threads=1)
        self._library = Library(name, folder)
        self._opening = asyncio.Lock()
        self._embedder: Embedder | None = None
        self._index: Index | None = None

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError."""
        operation = _OPERATIONS.get(method)
        if operation is None:
            raise ToolError(f"{self._name} has no method `{method}`; a VectorStore has {', '.join(_OPERATIONS)}")
        try:
            return await operation(self, args)
        except ToolError as error:
            raise ToolError(
                f"{self._name}.{method}: {error.message}", retryable=error.retryable, status=error.status
            ) from None
        except OSError as error:
            raise ToolError(f"{self._name}.{method}: {error.strerror} (`{args.get('path', '')}`)") from None

    async def probe(self) -> str:
        """Count the entries, and hold their model against the declared one. Raises ToolError."""
        embedder = await self._opened()
        await self._do(lambda index, stop: index.check())
        count = await self._do(lambda index, stop: index.count())
        return f"{count} entries in {self._settings.shown}, embedded by {embedder.model}"

    async def close(self) -> None:
        """Close the file and end the threads, after whatever a cancelled call has left them doing."""
        index, self._index = self._index, None
        if index is not None:
            await self._workers.do(lambda stop: index.close())
        if self._embedder is not None:
            self._embedder.close()
        self._workers.close()
        await self._library.close()

    # --- methods --------------------------------------------------------------------------------------------------

    async def add(self, args: JsonObject) -> Json:
        """Gives the id."""
        fields = {name: value for name, value in args.items() if value is not None}
        return (await self._add([read_entry(fields)]))[0]

    async def add_many(self, args: JsonObject) -> Json:
        """Gives the ids, in the order of the items."""
        return [*await self._add(read_entries(args["items"]))]

    async def search(self, args: JsonObject) -> Json:
        """Gives `[{id, text, score, metadata}]`, best first."""
        query = args["query"][:MAX_QUERY].strip()
        if not query:
            raise ToolError("the query is empty; say what to look for")
        filter_ = read_fields(args.get("filter"), "filter")
        embedder = await self._opened()
        if not await self._do(lambda index, stop: index.check()):
            return []
        vectors = await embedder.embed([query], "query")
        from halo_runtime.tools.vectors.index import Wanted  # with numpy, which a bare start shall not pay

        settings = self._settings
        wanted = Wanted(vectors[0], int(args.get("k") or settings.k), settings.min_score, filter_)
        matches = await self._do(lambda index, stop: index.search(wanted, stop))
        return [_shown(found) for found in matches]

    async def get(self, args: JsonObject) -> Json:
        """Gives `{id, text, metadata}`, null where there is none."""
        id_ = read_id(args["id"])
        entry = await self._do(lambda index, stop: index.get(id_))
        return None if entry is None else entry.to_json()

    async def delete(self, args: JsonObject) -> Json:
        """Gives whether there was one."""
        id_ = read_id(args["id"])
        return await self._do(lambda index, stop: index.remove(id_))

    async def count(self, args: JsonObject) -> Json:
        """Gives how many entries there are."""
        return await self._do(lambda index, stop: index.count())

    async def ingest(self, args: JsonObject) -> Json:
        """Gives `{files, entries, removed, skipped}`. Each file is one transaction; what is gone is removed."""
        is_folder, path, files = await self._library.files(args["path"])
        skipped: list[Json] = []
        entries = done = 0
        for parts in files:
            try:
                entries += await self._ingest_file(parts)
                done += 1
            except ToolError as error:
                if not is_folder or error.retryable or not isinstance(error, _Unreadable):
                    raise
                skipped.append({"path": show(parts), "reason": error.message})
        removed = await self._forget(path, {show(parts) for parts in files}) if is_folder else 0
        if len(skipped) > _MAX_SKIPPED:
            note = f"[… {len(skipped) - _MAX_SKIPPED} more could not be read]"
            skipped = [*skipped[:_MAX_SKIPPED], {"path": None, "reason": note}]
        return {"files": done, "entries": entries, "removed": removed, "skipped": skipped}

    async def _ingest_file(self, parts: Parts) -> int:
        """Put a document in the place of its former version; texts that were there keep their vectors."""
        try:
            entries = await self._library.entries(parts)
        except ToolError as error:
            raise _Unreadable(error.message) from None
        source = show(parts)
        await self._do(lambda index, stop: index.check())
        known = await self._do(lambda index, stop: index.vectors_of(source))
        vectors = await self._vectors([entry.text for entry in entries], known)
        await self._do(lambda index, stop: index.replace(source, entries, vectors))
        return len(entries)

    async def _forget(self, folder: str, present: set[str]) -> int:
        """Remove what was taken from files of a folder that are there no more."""

        def work(index: Index, stop: Stop) -> int:
            gone = [one for one in index.sources() if is_below(one, folder) and one not in present]
            return index.forget(gone)

        return await self._do(work)

    # --- work -----------------------------------------------------------------------------------------------------

    async def _add(self, entries: Sequence[Entry]) -> list[str]:
        distinct = [*{entry.id: entry for entry in entries}.values()]
        if distinct:
            embedder = await self._opened()
            await self._do(lambda index, stop: index.check())  # before anything is paid for
            vectors = await embedder.embed([entry.text for entry in distinct], "entry")
            await self._do(lambda index, stop: index.put(distinct, vectors))
        return [entry.id for entry in entries]

    async def _vectors(self, texts: Sequence[str], known: dict[str, bytes]):
        """The vectors of texts, those that are known as they are."""
        import numpy as np

        embedder = await self._opened()
        new = [text for text in dict.fromkeys(texts) if text not in known]
        made = dict(zip(new, await embedder.embed(new, "entry"), strict=True)) if new else {}
        rows = [made[text] if text in made else np.frombuffer(known[text], dtype="<f4") for text in texts]
        return np.stack(rows) if rows else np.empty((0, 0), dtype=np.float32)

    async def _opened(self) -> Embedder:
        """The model, and the index that it fills. Importing takes time, so it is done in the store's thread."""
        async with self._opening:
            if self._embedder is None:
                self._embedder = await self._workers.do(lambda stop: self._make_embedder())
            embedder = self._embedder
            if self._index is None:
                self._index = await self._workers.do(lambda stop: self._make_index(embedder.model))
            return embedder

    def _make_index(self, model: str) -> Index:
        from halo_runtime.tools.vectors.index import Index

        settings = self._settings
        path = _MEMORY if settings.shown == _MEMORY else settings.path
        return Index(path, settings.namespace, model, settings.shown)

    async def _do(self, work: Callable[[Index, Stop], T]) -> T:
        """Work on the index, after waiting for a lock that another process holds. Cancelled, it changes nothing."""
        await self._opened()
        index = self._index
        assert index is not None, "opened together"

        def careful(stop: Stop) -> T:
            stop.check()
            return work(index, stop)

        try:
            return await patiently(lambda: self._workers.do(careful))
        except sqlite3.Error as error:
            raise explained(error, self._name, "vector store", self._settings.path) from None


def _shown(found: Match) -> JsonObject:
    """A match as programs see it; the score in as many digits as are the same on every machine."""
    entry = found.entry
    return {"id": entry.id, "text": entry.text, "score": round(found.score, 4), "metadata": entry.metadata}


class _Unreadable(ToolError):
    """A document cannot be read; inside an ingest only."""


_OPERATIONS: Final[dict[str, Callable[[VectorStore, JsonObject], Awaitable[Json]]]] = {
    "add": VectorStore.add,
    "addMany": VectorStore.add_many,
    "search": VectorStore.search,
    "get": VectorStore.get,
    "delete": VectorStore.delete,
    "count": VectorStore.count,
    "ingest": VectorStore.ingest,
}


def open_vectors(config: ToolConfig) -> VectorStore:
    """The store that a declaration describes; nothing is opened yet. Raises ConfigError."""
    given = config.settings
    shown = given.get("path") or DEFAULT_PATH
    settings = Settings(
        path=config.folder / shown,
        shown=shown,
        namespace=given.get("namespace") or "default",
        k=int(given.get("k") or DEFAULT_K),
        min_score=given.get("minScore"),
    )
    model = given.get("model")
    if model is not None:
        if config.embeddings is None:
            raise ConfigError(f"{config.name}: no model service can be asked here, so leave `model:` out")
        config.embeddings.require(model)
    return VectorStore(config.name, settings, config.folder, _embedder(config.name, model, config.embeddings))


def _embedder(name: str, model: str | None, service: Embeddings | None) -> MakeEmbedder:
    """What makes the model that embeds, with the packages that it needs."""

    def make() -> Embedder:
        from halo_runtime.tools.vectors.embedders import OfflineEmbedder, ServiceEmbedder

        return OfflineEmbedder(name) if model is None or service is None else ServiceEmbedder(model, service)

    return make
