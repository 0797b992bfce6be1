"""The open documents: their text as the client has it, and what the language knows about it.

Text changes at once, in the order of the messages. An analysis is made when a request or the diagnostics want one,
from the analysis before it, and serves everybody who asks about the same text.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

import halo_lang
from halo_lang.server.colours import Colours
from halo_lang.server.places import Places
from halo_lang.server.workers import Workers
from halo_lang.source import BOM, Source

if TYPE_CHECKING:
    from halo_lang.analysis import Analysis
    from halo_lang.assist.positions import Encoding
    from halo_lang.checks.whole import PriceLookup


class Document:
    """One open document. Its `places` are those of the present text; every version of the text has its own."""

    def __init__(self, item: types.TextDocumentItem, encoding: Encoding, checker: Checker) -> None:
        self.uri = item.uri
        self.version = item.version
        self.places = Places(Source(item.text, item.uri), encoding)
        self.colours = Colours()
        self.publishing: asyncio.Task[None] | None = None
        """Tells the client the diagnostics soon; None or done when there is nothing new to tell."""
        self._checker = checker
        self._known: Analysis | None = None
        self._check: asyncio.Task[Analysis] | None = None
        self._checked: Places | None = None

    def change(self, version: int, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """Apply the edits of one message in their order, each to the text that the one before has made.

        A range outside the text is moved into it and one whose ends are swapped is turned, as editors' own libraries
        do. The version is taken as it is told: messages arrive in the order in which they were sent.
        """
        for change in changes:
            self.places = Places(Source(_edited(self.places, change), self.uri), self.places.encoding)
        self.version = version

    def analysis(self) -> Awaitable[Analysis]:
        """What is known about the text as it is now, whatever is typed until that is ready."""
        if self._check is None or self._checked is not self.places:
            self._checked = self.places
            self._check = asyncio.create_task(self._advance(self._check, self.places.source))
        return asyncio.shield(self._check)

    async def _advance(self, running: asyncio.Task[Analysis] | None, source: Source) -> Analysis:
        if running is not None:
            await asyncio.wait([running])
        self._known = await self._checker.check(source, self._known)
        return self._known


class Checker:
    """Checks texts on the workers."""

    def __init__(self, workers: Workers, is_priced: PriceLookup | None) -> None:
        self._workers = workers
        self._is_priced = is_priced

    async def check(self, source: Source, previous: Analysis | None) -> Analysis:
        """The analysis of a text, at the cost of what differs from the `previous` one."""
        return await self._workers.run(lambda: self._checked(source, previous))

    def _checked(self, source: Source, previous: Analysis | None) -> Analysis:
        if source.text.startswith(BOM):
            # Most editors keep a byte order mark to themselves. To Halo it is nothing, but it takes a place.
            source = Source(" " + source.text[1:], source.path)
        program = halo_lang.parse(source, previous.program if previous else None)
        analysis = halo_lang.check(program, previous, is_priced=self._is_priced)
        if previous is None:
            # Nodes hold no cycles. Looking through those of a large document now and then for garbage takes longer
            # than all that is done at a keystroke.
            gc.collect(1)
            gc.freeze()
        return analysis


def _edited(places: Places, change: types.TextDocumentContentChangeEvent) -> str:
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return change.text
    text, (start, end) = places.source.text, places.span(change.range)
    return text[:start] + change.text + text[end:]
