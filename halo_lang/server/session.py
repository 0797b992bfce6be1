"""One conversation with an editor: the open documents, their diagnostics, and what is known about the client."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from halo_lang.assist.positions import Encoding
from halo_lang.server import findings
from halo_lang.server.documents import Checker, Document
from halo_lang.server.knowledge import Knowledge
from halo_lang.server.protocol import Protocol
from halo_lang.server.view import Client, View
from halo_lang.server.workers import Workers

DELAY: Final = 0.05
"""Seconds from a change to the check behind the diagnostics; all that is typed meanwhile is checked at once."""

WORKERS: Final = 2
"""Threads that answer requests. Checks have one of their own, so that they keep no answer waiting that needs none."""

log = logging.getLogger("halo_lang.server")


class Session(LanguageServer):
    """The state of a conversation; there is one in a process."""

    protocol: Protocol  # pyright: ignore[reportIncompatibleVariableOverride] - it is made below

    def __init__(self, version: str, knowledge: Knowledge) -> None:
        super().__init__("halo", version, protocol_cls=Protocol)  # pyright: ignore[reportUnknownMemberType]
        self.knowledge = knowledge
        self.workers = Workers(WORKERS)
        self.documents: dict[str, Document] = {}
        self.client: Client | None = None
        """What the client can do; None until it has greeted."""
        self._checker = Checker(Workers(1), knowledge.is_priced)

        @self.feature(types.INITIALIZE)
        def meet(params: types.InitializeParams) -> None:  # pyright: ignore[reportUnusedFunction]
            self.client = Client.of(params.capabilities)

    def opened(self, uri: str) -> Document:
        """The open document of that name. JsonRpcInvalidParams where there is none."""
        if uri not in self.documents:
            raise JsonRpcInvalidParams(f"not open: {uri}")
        return self.documents[uri]

    def view(self, document: Document) -> View:
        """The document as it is now, for work that goes on while it is edited."""
        client = self.client or Client()
        return View(document.uri, document.version, document.places, client, self.knowledge, document.colours)

    def open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take a document; one of that name that is open already is replaced."""
        item = params.text_document
        self._forget(item.uri)
        document = self.documents[item.uri] = Document(item, self.encoding, self._checker)
        document.publishing = asyncio.create_task(self._publish(document, after=0))

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply edits to an open document, and tell its diagnostics soon."""
        document = self.documents.get(params.text_document.uri)
        if document is None:
            log.warning("changed without being open: %s", params.text_document.uri)
            return
        document.change(params.text_document.version, params.content_changes)
        if document.publishing is None or document.publishing.done():
            document.publishing = asyncio.create_task(self._publish(document, after=DELAY))

    def close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document and take its diagnostics away."""
        uri = params.text_document.uri
        self._forget(uri)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @property
    def encoding(self) -> Encoding:
        """What columns count in, as negotiated."""
        return Encoding(self.server_capabilities.position_encoding or Encoding.UTF16)

    def report(self, what: str, failure: BaseException) -> None:
        """Tell a failure to whoever reads the log; the traceback goes to stderr alone."""
        log.error("%s failed", what, exc_info=failure)
        message = f"halo lsp: {what} failed: {type(failure).__name__}: {failure}"
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    def report_server_error(self, error: Exception, source: object) -> None:
        """What pygls has nobody to answer with; told like every other failure instead of in a dialogue."""
        if source is not FeatureRequestError:
            self.report("a notification", error)

    def _forget(self, uri: str) -> None:
        document = self.documents.pop(uri, None)
        if document is not None and document.publishing is not None:
            document.publishing.cancel()

    async def _publish(self, document: Document, after: float) -> None:
        """Tell the diagnostics of the present text; when it changes meanwhile, only those of the newer one."""
        await asyncio.sleep(after)
        view = found = None
        while view is None or view.places is not document.places:
            view = self.view(document)
            found = await self._found(document, view)
        if found is not None:
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(view.uri, found, view.version))

    async def _found(self, document: Document, view: View) -> list[types.Diagnostic] | None:
        """The diagnostics of a document as it is now; None where the check failed, which the next need not."""
        try:
            analysis = await document.analysis()
            return await self.workers.run(lambda: findings.diagnostics(view, analysis))
        except Exception as failure:  # the border of a check
            self.report(f"checking {document.uri}", failure)
            return None
