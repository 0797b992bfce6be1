"""`Documents(root)`: pdf, docx, xlsx, pptx, html, md, csv and txt of one folder as text (spec 5).

Documents come from anybody, so each is taken apart in a process of its own, with bounds on memory and time, that is
killed when nobody waits for it. The file is opened here, inside the root as in a workspace; the process gets it open.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from stat import S_ISDIR
from typing import Final, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.prompts import cut
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.documents.text import chunks_of, find_passages
from halo_runtime.tools.threads import Stop, Workers
from halo_runtime.tools.workspace.paths import Closed, Globs, Parts, parse_path, show
from halo_runtime.tools.workspace.root import Root
from halo_runtime.tools.workspace.search import Tree

SECONDS: Final = 60.0
"""How long a document may take."""
MAX_FILE_BYTES: Final = 64 * 1024 * 1024
MAX_CHARS: Final = 1_000_000
MAX_PASSAGES: Final = 50
MAX_SEARCHED: Final = 1_000

FORMATS: Final = {
    "pdf": "pdf", "docx": "docx", "xlsx": "xlsx", "pptx": "pptx", "html": "html", "htm": "html", "md": "text",
    "markdown": "text", "txt": "text", "csv": "csv", "tsv": "csv",
}  # fmt: skip
"""The ending of a name → how the file is read."""

_KEPT: Final = 32
_AT_ONCE: Final = 2
_CLEAN_ENV: Final = {"PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}


@record
class Page:
    """A page, a slide, a sheet; the whole of a document that has none. `number` counts from 1."""

    number: int
    text: str


@record
class Document:
    """A document taken apart. `metadata` has what it says of itself, `tables` lists of rows."""

    pages: tuple[Page, ...]
    metadata: JsonObject
    tables: tuple[Json, ...]

    @property
    def text(self) -> str:
        """All of it as Markdown."""
        return "\n\n".join(page.text for page in self.pages if page.text)


Key: TypeAlias = tuple[int, int, int, int, bool]
"""Which file it is, how large and how old, and whether its tables were looked for."""


class Documents:
    """One declared folder. What was read is remembered as long as the file does not change."""

    def __init__(self, name: str, root: Path, shown: str = "", *, seconds: float = SECONDS) -> None:
        self._name = name
        self._root = root
        self._shown = shown or str(root)
        self._seconds = seconds
        self._closed = Closed()
        self._workers = Workers(name)
        self._known: dict[Key, Document] = {}

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError."""
        try:
            if method == "search":
                return await self._search(args["query"], args.get("glob"))
            operation = _OPERATIONS.get(method)
            if operation is None:
                raise ToolError(f"there is no such method; there are {', '.join((*_OPERATIONS, 'search'))}")
            document = await self.document(parse_path(args["path"]), tables=method == "tables")
            return await self._workers.do(lambda stop: operation(document, args))
        except ToolError as error:
            raise ToolError(f"{self._name}.{method}: {error.message}") from None
        except OSError as error:
            raise ToolError(f"{self._name}.{method}: {error.strerror} (`{args.get('path', self._shown)}`)") from None

    async def close(self) -> None:
        """End the threads; no process outlives its call."""
        self._workers.close()

    async def document(self, parts: Parts, *, tables: bool = False) -> Document:
        """A document taken apart. Raises ToolError, OSError."""
        descriptor, key = await self._workers.do(lambda stop: self._open(parts, tables, stop))
        try:
            if key not in self._known:
                kind = FORMATS[ending(parts)]
                taken = await take_apart(descriptor, kind, show(parts), tables=tables, seconds=self._seconds)
                self._known[key] = taken
                while len(self._known) > _KEPT:
                    del self._known[next(iter(self._known))]
            return self._known[key]
        finally:
            os.close(descriptor)

    async def files(self, parts: Parts) -> tuple[bool, list[Parts]]:
        """Whether a path is a folder, and the documents in it, else the file itself. Raises ToolError, OSError."""
        return await self._workers.do(lambda stop: self._files(parts, stop))

    def _files(self, parts: Parts, stop: Stop) -> tuple[bool, list[Parts]]:
        with self._opened() as root:
            with root.at(parts) as spot:
                status = spot.status()
                if status is not None and not S_ISDIR(status.st_mode):
                    return False, [spot.parts]
            with root.folder(parts) as (folder, here):
                files = (found.parts for found, _ in Tree(root, self._closed, stop).files_of(folder, here))
                return True, [found for found in files if ending(found) in FORMATS]

    def _open(self, parts: Parts, tables: bool, stop: Stop) -> tuple[int, Key]:
        """The file, open, and what tells it from others. Raises ToolError."""
        with self._opened() as root, root.file(parts) as (descriptor, _):
            if ending(parts) not in FORMATS:
                raise ToolError(f"`{show(parts)}` is of no kind that can be read: {', '.join(FORMATS)}")
            status = os.fstat(descriptor)
            if status.st_size > MAX_FILE_BYTES:
                raise ToolError(f"`{show(parts)}` is larger than {MAX_FILE_BYTES >> 20} MB")
            stop.check()
            return os.dup(descriptor), (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, tables)

    async def probe(self) -> str:
        """Count the documents. Raises ToolError."""
        paths = await self._workers.do(lambda stop: self._paths(None, stop))
        return f"the folder {self._shown}: {len(paths)} documents"

    def _opened(self):
        if not self._root.is_dir():
            raise ToolError(f"there is no folder {self._shown}; create it, or change the declaration")
        return Root.open(self._root, self._closed)

    # --- searching ----------------------------------------------------------------------------------------------

    async def _search(self, query: str, glob: str | None) -> Json:
        """Passages that have the words, those with most of them first; what cannot be read is named at the end."""
        words = tuple(dict.fromkeys(re.findall(r"\w+", query.casefold())))
        if not words:
            raise ToolError("the query has no word to look for")
        paths = await self._workers.do(lambda stop: self._paths(glob, stop))
        limit = asyncio.Semaphore(_AT_ONCE)

        async def read(parts: Parts) -> Document | ToolError:
            async with limit:
                try:
                    return await self.document(parts)
                except ToolError as error:
                    return error

        documents = await asyncio.gather(*map(read, paths))
        return await self._workers.do(lambda stop: _best(list(zip(paths, documents, strict=True)), words, stop))

    def _paths(self, glob: str | None, stop: Stop) -> list[Parts]:
        globs = None if glob is None else Globs([glob])
        with self._opened() as root:
            files = (spot.parts for spot, _ in Tree(root, self._closed, stop).files())
            paths = [p for p in files if ending(p) in FORMATS and (globs is None or globs.match(p))]
        if len(paths) > MAX_SEARCHED:
            raise ToolError(f"there are {len(paths):,} documents, over {MAX_SEARCHED:,}; name some of them with glob:")
        return paths


def open_documents(config: ToolConfig) -> Documents:
    """The documents that a declaration describes."""
    shown = config.settings["root"]
    return Documents(config.name, config.folder / shown, shown)


async def take_apart(descriptor: int, kind: str, name: str, *, tables: bool, seconds: float) -> Document:
    """Read an open file in a process of its own. Raises ToolError; cancelled, the process is killed."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "halo_runtime.tools.documents.reading", kind, "tables" if tables else "text",
        stdin=descriptor, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=_CLEAN_ENV,
    )  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    except TimeoutError:
        raise ToolError(f"`{name}` took longer than {seconds:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        answer: JsonObject = json.loads(output)
    except ValueError:  # it was ended by a limit, or a library brought it down
        raise ToolError(f"`{name}` cannot be read: it takes too much memory or time, or is damaged") from None
    if "error" in answer:
        raise ToolError(f"`{name}` {answer['error']}")
    pages = tuple(Page(number, text) for number, text in enumerate(answer["pages"], 1))
    return Document(pages, answer["metadata"], tuple(answer["tables"]))


def _best(found: list[tuple[Parts, Document | ToolError]], words: tuple[str, ...], stop: Stop) -> Json:
    """The best passages of some documents, with a note for each that could not be read."""
    scored: list[tuple[float, Json]] = []
    notes: list[Json] = []
    for parts, document in found:
        if isinstance(document, ToolError):
            notes.append(_note(show(parts), f"[not searched: {document.message}]"))
            continue
        for page in document.pages:
            stop.check()
            for passage in find_passages(page.text, words):
                scored.append((passage.score, {"path": show(parts), "page": page.number, "text": passage.text}))
    scored.sort(key=lambda one: -one[0])
    best = [passage for _, passage in scored[:MAX_PASSAGES]]
    if len(scored) > MAX_PASSAGES:
        notes.insert(0, _note(None, f"[… {len(scored) - MAX_PASSAGES} more passages; use more words or a glob]"))
    return [*best, *notes]


def _read(document: Document, args: JsonObject) -> Json:
    return {"text": cut(document.text, MAX_CHARS), "metadata": document.metadata}


def _pages(document: Document, args: JsonObject) -> Json:
    start, end = int(args.get("start") or 1), args.get("end")
    count = len(document.pages)
    if end is not None and end < start:
        raise ToolError(f"page {int(end)} (end) comes before page {start} (start)")
    if start > count:
        raise ToolError(f"the document has only {count} pages; start is {start}")
    chosen = document.pages[start - 1 : None if end is None else int(end)]
    size, shown = 0, list[Json]()
    for page in chosen:
        if shown and size + len(page.text) > MAX_CHARS:
            note = f"[… {len(chosen) - len(shown)} more pages cut; read on with start: {page.number}]"
            return [*shown, {"page": page.number, "text": note}]
        shown.append({"page": page.number, "text": cut(page.text, MAX_CHARS)})
        size += len(page.text)
    return shown


def _chunks(document: Document, args: JsonObject) -> Json:
    size, overlap = int(args.get("size") or 1000), args.get("overlap")
    return [*chunks_of(document.text, size, min(100, size // 2) if overlap is None else int(overlap))]


def _tables(document: Document, args: JsonObject) -> Json:
    return [*document.tables]


_OPERATIONS: Final[dict[str, Callable[[Document, JsonObject], Json]]] = {
    "read": _read,
    "pages": _pages,
    "chunks": _chunks,
    "tables": _tables,
}


def _note(path: str | None, text: str) -> Json:
    return {"path": path, "page": None, "text": text}


def ending(parts: Parts) -> str:
    """The ending of a document's name, in lower case."""
    return parts[-1].rpartition(".")[2].lower() if parts and "." in parts[-1] else ""
