"""What an exchange died of that brought no answer: said in words, with what to do, and whether another try may help.

Pure: it looks at the errors of the HTTP library by their names, and so need not import it.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from halo_lang.records import record

if TYPE_CHECKING:
    from halo_runtime.models.connections import Proxy


@record
class Trouble:
    """`problem` and `advice` stand before and behind what the system said; `advice` may name `{url}` and `{key}`.

    `retryable`: another try may help. `sent`: the request may have arrived, and been done.
    """

    problem: str
    retryable: bool = True
    sent: bool = True
    advice: str = ""


_IS_IT_RIGHT: Final = "; is {url} right?"
_KINDS: Final = {
    "ConnectTimeout": Trouble("cannot be reached in time", sent=False, advice=_IS_IT_RIGHT),
    "ConnectError": Trouble("cannot be reached", sent=False, advice=_IS_IT_RIGHT),
    "ProxyError": Trouble("cannot be reached through the proxy", sent=False),
    "TimeoutException": Trouble("stopped answering"),
    "NetworkError": Trouble("broke the connection"),
    "RemoteProtocolError": Trouble("ended the connection before its answer was complete"),
    "error": Trouble("sent an answer that cannot be unpacked", retryable=False),  # zlib's
    "Exception": Trouble("cannot be asked", retryable=False, sent=False, advice=_IS_IT_RIGHT),
}
"""Name of an error or of its nearest base → what it means."""

_UNKNOWN: Final = Trouble("has no address", sent=False, advice="; is {url} right, and this machine online?")
_UNTRUSTED: Final = Trouble(
    "shows a certificate that is not trusted", retryable=False, sent=False,
    advice="; if {url} is right, SSL_CERT_FILE can name a file with the certificates to trust",
)  # fmt: skip
_NO_TLS: Final = Trouble(
    "cannot be spoken to over TLS", retryable=False, sent=False, advice="; is {url} right, is it an https address?"
)


def trouble_of(error: Exception) -> tuple[str, Trouble]:
    """What an error means, and the name under which a service may have advice of its own."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLError):
        return "TLS", _UNTRUSTED if isinstance(cause, ssl.SSLCertVerificationError) else _NO_TLS
    name = next(base.__name__ for base in type(error).__mro__ if base.__name__ in _KINDS)
    if isinstance(cause, socket.gaierror):
        return name, _UNKNOWN
    if name == "ProxyError" and str(error)[:1] == "4":  # it refuses us: a status and its words
        return name, replace(_KINDS[name], retryable=False)
    return name, _KINDS[name]


def detail_of(error: Exception) -> str:
    """What the system said."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    if isinstance(cause, ssl.SSLError):
        return cause.reason or str(cause)
    if isinstance(cause, socket.gaierror):
        return cause.strerror or str(cause)
    return str(error) or type(error).__name__


def is_the_proxys(name: str) -> bool:
    """Whether a trouble of this name, met by a request that went through a proxy, is one of reaching the proxy."""
    return name in ("ConnectTimeout", "ConnectError", "ProxyError")


def through(proxy: Proxy, trouble: Trouble) -> Trouble:
    """The trouble of not getting past a proxy, which is named."""
    advice = f"; the proxy is {proxy.shown}, from {proxy.variable}: is that right?"
    return Trouble("cannot be reached through the proxy", trouble.retryable, trouble.sent, advice)
