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

from cattrs import ClassValidationError, transform_error
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

_TOO_EARLY: Final = ("initialize comes first", types.ErrorCodes.ServerNotInitialized.value)


class Protocol(LanguageServerProtocol):
    """pygls' protocol, with documents of ours and an answer to every request."""

    def __init__(self, server: Session, converter: Converter) -> None:
        super().__init__(server, converter)
        self._session = server
        # In place of pygls' own: its workspace ends lines by other rules, and joins all of a document at each change.
        for method, handler in (
            (types.TEXT_DOCUMENT_DID_OPEN, server.open),
            (types.TEXT_DOCUMENT_DID_CHANGE, server.change),
            (types.TEXT_DOCUMENT_DID_CLOSE, server.close),
        ):
            self.fm.add_builtin_feature(method, handler)

    def receive(self, body: bytes | Malformed) -> None:
        """Take one message. Raises SystemExit for `exit`, nothing else."""
        number = method = None
        try:
            data = _parsed(body)
            number, method = data.get("id"), data.get("method")
            if isinstance(method, str):
                self._admit(method, is_request="id" in data)
            message: Any = self.structure_message(data)
            self.handle_message(message)
        except _IgnoredError:
            pass
        except Exception as failure:  # the border of a message
            self._refuse(number, method, failure)

    def _admit(self, method: str, *, is_request: bool) -> None:
        """Raise what a message is refused with because of its time or its method."""
        if method == types.EXIT:
            return
        if self._shutdown:
            raise JsonRpcInvalidRequest("the server is shutting down")
        greeted = self._session.client is not None
        if greeted == (method == types.INITIALIZE):
            raise JsonRpcInvalidRequest("initialized already") if greeted else JsonRpcException(*_TOO_EARLY)
        known = method in self.fm.features or method in self.fm.builtin_features or method == types.CANCEL_REQUEST
        if not known:
            raise JsonRpcMethodNotFound.of(method) if is_request else _IgnoredError

    def _refuse(self, number: object, method: object, failure: Exception) -> None:
        """Say why a message is not taken: to the client where it waits for an answer, else to the log alone."""
        if not isinstance(failure, JsonRpcException):
            self._session.report(f"a message of the method {method}", failure)
            failure = JsonRpcInvalidRequest(f"{type(failure).__name__}: {failure}")
        reason = failure.message
        if isinstance(failure.__cause__, ClassValidationError):
            reason = f"{reason}: {'; '.join(transform_error(failure.__cause__, path='params'))}"
        log.warning("%s: %s", method or "a message", reason)
        if number is not None or method is None:
            # Not by `_send_response`, which leaves an id of null away.
            error = {"code": failure.code, "message": reason}
            self._send_data({"jsonrpc": self.VERSION, "id": number, "error": error})


class _IgnoredError(Exception):
    """A notification that means nothing to us, which the protocol allows."""


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
