"""From a request to its answer: the document as it was when the request came, a worker, and a border for failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError

from halo_lang import assist
from halo_lang.analysis import Analysis
from halo_lang.server.features import OF_ANALYSIS, OF_TEXT, OPTIONS, OfAnalysis, OfText, workspace_symbols
from halo_lang.server.session import Session

Handler: TypeAlias = Callable[[Any], Awaitable[object]]

_REFUSED = types.LSPErrorCodes.RequestFailed.value


def register(session: Session) -> None:
    """Tell a session all features."""
    handlers = {
        **{method: _with_analysis(session, answer) for method, answer in OF_ANALYSIS.items()},
        **{method: _with_text(session, answer) for method, answer in OF_TEXT.items()},
        types.WORKSPACE_SYMBOL: _over_documents(session),
    }
    for method, handler in handlers.items():
        session.feature(method, OPTIONS.get(method))(_guarded(session, method, handler))


def _with_analysis(session: Session, answer: OfAnalysis) -> Handler:
    async def handle(params: Any) -> object:
        document = session.opened(params.text_document.uri)
        view = session.view(document)
        analysis = await document.analysis()
        return await session.workers.run(lambda: answer(view, analysis, params))

    return handle


def _with_text(session: Session, answer: OfText) -> Handler:
    async def handle(params: Any) -> object:
        view = session.view(session.opened(params.text_document.uri))
        return await session.workers.run(lambda: answer(view, params))

    return handle


def _over_documents(session: Session) -> Handler:
    async def handle(params: types.WorkspaceSymbolParams) -> object:
        documents = list(session.documents.values())
        views = [session.view(document) for document in documents]
        checks = await asyncio.gather(*(document.analysis() for document in documents), return_exceptions=True)
        # A document whose check failed has no symbols; its diagnostics tell of the failure.
        known = [(view, found) for view, found in zip(views, checks, strict=True) if isinstance(found, Analysis)]
        return await session.workers.run(lambda: workspace_symbols(known, params))

    return handle


def _guarded(session: Session, method: str, handle: Handler) -> Handler:
    """The border of a request: a refusal says why, and a failure of ours is reported and answered as one."""

    async def guarded(params: Any) -> object:
        try:
            return await handle(params)
        except JsonRpcException:
            raise
        except assist.RenameRefused as refusal:
            raise JsonRpcException(str(refusal), code=_REFUSED) from None
        except Exception as failure:
            session.report(method, failure)
            raise JsonRpcInternalError(f"{method} failed: {type(failure).__name__}: {failure}") from None

    return guarded
