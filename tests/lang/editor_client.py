"""An editor without a screen: pygls' client, speaking with `halo lsp` as a process."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate

from lsprotocol import types
from pygls.lsp.client import LanguageClient

HALO = (sys.executable, "-m", "halo_runtime.cli.main", "lsp")
CODECS = {"utf-8": (1, "utf-8"), "utf-16": (2, "utf-16-le"), "utf-32": (4, "utf-32-le")}
"""Bytes of a unit, and Python's name of an encoding."""
PATIENCE = 60.0
"""Seconds after which something that is waited for will never come."""


class Editor(LanguageClient):
    """Keeps what the server tells, and waits for it."""

    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.logged: asyncio.Queue[str] = asyncio.Queue()
        self.legend: Sequence[str] = ()
        """The types of semantic tokens, by their numbers."""
        self._opened = 0

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def diagnostics(params: types.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(params)

        @self.feature(types.WINDOW_LOG_MESSAGE)
        def log(params: types.LogMessageParams) -> None:
            self.logged.put_nowait(params.message)

    def open(self, text: str) -> types.TextDocumentIdentifier:
        """Open a new document of version 1."""
        self._opened += 1
        uri = f"untitled:{self._opened}.halo"
        item = types.TextDocumentItem(uri, "halo", 1, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return types.TextDocumentIdentifier(uri)

    def change(
        self, document: types.TextDocumentIdentifier, version: int, *edits: types.TextDocumentContentChangeEvent
    ) -> None:
        """Send the edits of a version."""
        identifier = types.VersionedTextDocumentIdentifier(version, document.uri)
        self.text_document_did_change(types.DidChangeTextDocumentParams(identifier, edits))

    async def diagnostics(
        self, document: types.TextDocumentIdentifier, version: int | None = 1
    ) -> Sequence[types.Diagnostic]:
        """What is told about a version of a document, as soon as it is."""
        while True:
            told = await asyncio.wait_for(self.told.get(), PATIENCE)
            if (told.uri, told.version) == (document.uri, version):
                return told.diagnostics

    async def codes(self, document: types.TextDocumentIdentifier, version: int = 1) -> list[str]:
        """The codes of those diagnostics."""
        return [str(diagnostic.code) for diagnostic in await self.diagnostics(document, version)]


@asynccontextmanager
async def editor(
    *encodings: str, command: Sequence[str] = HALO, abilities: types.TextDocumentClientCapabilities | None = None
) -> AsyncIterator[Editor]:
    """An editor whose server is ready; both have ended behind the block."""
    client = Editor()
    await client.start_io(*command)
    general = types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(one) for one in encodings])
    capabilities = types.ClientCapabilities(text_document=abilities, general=general if encodings else None)
    answer = await client.initialize_async(types.InitializeParams(capabilities))
    assert answer.capabilities.semantic_tokens_provider
    client.legend = answer.capabilities.semantic_tokens_provider.legend.token_types
    client.initialized(types.InitializedParams())
    try:
        yield client
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()


def at(text: str, part: str, encoding: str = "utf-16", shift: int = 0) -> types.Position:
    """The position of a part of a text, counted by Python's own codecs."""
    before = text[: text.index(part) + shift]
    line = before.rpartition("\n")[2]
    width, codec = CODECS[encoding]
    return types.Position(before.count("\n"), len(line.encode(codec)) // width)


def range_of(text: str, part: str, encoding: str = "utf-16") -> types.Range:
    """The range of a part of a text."""
    return types.Range(at(text, part, encoding), at(text, part, encoding, len(part)))


def replace(range_: types.Range, text: str) -> types.TextDocumentContentChangePartial:
    """An edit as the client sends it."""
    return types.TextDocumentContentChangePartial(range_, text)


def applied(text: str, edits: Sequence[types.TextEdit], encoding: str = "utf-16") -> str:
    """A text after edits that the server has sent."""
    lines = re.findall(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+", text)
    starts = list(accumulate(map(len, lines), initial=0))

    def offset(position: types.Position) -> int:
        line = lines[position.line] if position.line < len(lines) else ""
        width, codec = CODECS[encoding]
        return starts[min(position.line, len(lines))] + len(
            line.encode(codec)[: width * position.character].decode(codec)
        )

    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text
