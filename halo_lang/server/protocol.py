# pygls types the parts used here only in part
# pyright: reportUnknownMemberType=false
"""JSON-RPC as pygls does it, with what it leaves to chance settled.

Every request is answered, whatever it holds and whenever it comes: what is no JSON, no message, too early, too late,
of an unknown method or with parameters of another shape is refused with the protocol's code for it.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
)
from pygls.protocol import LanguageServerProtocol

from halo_lang.server.transport import Malformed

if TYPE_CHECKING:
    from cattrs import Converter

    from halo_lang.server.session import Session

log = logging.getLogger("halo_lang.server")

_NOT_INITIALIZED: Final = types.ErrorCodes.ServerNotInitialized.value


class Protocol(LanguageServerProtocol):
    """pygls' protocol, with documents of ours and an answer to every request."""

    def __init__(self, server: Session, converter: Converter) -> None:
        super().__init__(server, converter)
        self._session = server
        self._initialized = False
        # In place of pygls' own: its workspace ends lines by other rules, and joins all of a document at each change.
        for method, handler in (
            (types.TEXT_DOCUMENT_DID_OPEN, server.open),
            (types.TEXT_DOCUMENT_DID_CHANGE, server.change),
            (types.TEXT_DOCUMENT_DID_CLOSE, server.close),
        ):
            self.fm.add_builtin_feature(method, handler)

    def receive(self, body: bytes | Malformed) -> None:
        """Take one message. Raises SystemExit for `exit`, nothing else."""
        try:
            data = _parsed(body)
        except JsonRpcException as refusal:
            log.warning("%s", refusal.message)
            self._send_response(cast("str", None), error=refusal.to_response_error())
            return
        method, number = data.get("method"), data.get("id")
        try:
            if isinstance(method, str):
                self._admit(method, is_request="id" in data)
            message: Any = self.structure_message(data)
            self.handle_message(message)
        except Exception as failure:  # the border of a message
            self._refuse(failure, method, cast("str | None", number) if isinstance(number, str | int) else None)

    def _admit(self, method: str, *, is_request: bool) -> None:
        """Raise what a message is refused with, because of its time or its method."""
        if method == types.EXIT:
            return
        if self._shutdown:
            raise JsonRpcInvalidRequest("the server is shutting down")
        if not self._initialized and method != types.INITIALIZE:
            raise JsonRpcException("initialize comes first", code=_NOT_INITIALIZED)
        if self._initialized and method == types.INITIALIZE:
            raise JsonRpcInvalidRequest("already initialized")
        known = method in self.fm.features or method in self.fm.builtin_features or method == types.CANCEL_REQUEST
        if not known:
            raise JsonRpcMethodNotFound.of(method) if is_request else _Ignored(method)
        self._initialized = True

    def _refuse(self, failure: Exception, method: object, number: str | None) -> None:
        if isinstance(failure, _Ignored):
            log.info("ignored: %s", failure)
            return
        if not isinstance(failure, JsonRpcException):
            self._session.report(f"the message {method}", failure)
            failure = JsonRpcInvalidRequest(f"{type(failure).__name__}: {failure}")
        log.warning("%s: %s", method, failure.message)
        if number is not None:
            self._send_response(number, error=failure.to_response_error())


class _Ignored(Exception):
    """A notification that means nothing to us, as the protocol allows."""


def _parsed(body: bytes | Malformed) -> dict[str, object]:
    """A message as JSON. JsonRpcParseError, JsonRpcInvalidRequest."""
    if isinstance(body, Malformed):
        raise JsonRpcInvalidRequest(f"not a message: {body}")
    try:
        data: object = json.loads(body)
    except (ValueError, RecursionError) as failure:
        raise JsonRpcParseError(f"not JSON: {failure}") from None
    if not isinstance(data, dict):
        raise JsonRpcInvalidRequest("not a JSON-RPC message: no object")
    message = cast("dict[str, object]", data)
    if message.get("jsonrpc") != "2.0":
        raise JsonRpcInvalidRequest('not a JSON-RPC message: "jsonrpc" is not "2.0"')
    return message
