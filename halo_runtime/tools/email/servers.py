"""Which servers a declaration of `Email` names, how they are reached, and as whom. Nothing is connected to here."""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from dataclasses import field
from typing import Final, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.tools.web.client import clean

Protocol: TypeAlias = Literal["smtp", "imap"]
Security: TypeAlias = Literal["tls", "starttls", "local"]
"""TLS from the start; STARTTLS, which must be there; a server on this machine, where it is used if there."""

_PORTS: Final[dict[Protocol, int]] = {"smtp": 587, "imap": 993}
_TLS_PORTS: Final[dict[Protocol, int]] = {"smtp": 465, "imap": 993}
_WRITTEN: Final = re.compile(
    r"(?:(?P<scheme>[a-z]+)://)?(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?/?"
)
_LOCAL: Final = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1", re.IGNORECASE)


@record
class Server:
    """A server and who asks there; without a `user` nobody logs in."""

    protocol: Protocol
    host: str
    port: int
    security: Security
    user: str | None = None
    password: str = field(repr=False, default="")

    @property
    def shown(self) -> str:
        """As messages name it."""
        return f"{self.host}:{self.port}"


def read_server(protocol: Protocol, text: str, port: str | float | None) -> Server:
    """The server of a setting: `host`, `host:port`, `smtps://host` or `imaps://host`. Raises ConfigError."""
    found = _WRITTEN.fullmatch(text.strip())
    schemes = (None, protocol, f"{protocol}s")
    if found is None or found["scheme"] not in schemes:
        raise ConfigError(f"{protocol}: is no server; write it like {protocol}.example.org or {protocol}s://host:port")
    tls = found["scheme"] == f"{protocol}s"
    chosen = _port(protocol, found["port"] or port, _TLS_PORTS[protocol] if tls else _PORTS[protocol])
    host = found["host"].strip("[]")
    if tls or (chosen == _TLS_PORTS[protocol] and found["scheme"] is None):
        return Server(protocol, host, chosen, "tls")
    return Server(protocol, host, chosen, "local" if _LOCAL.fullmatch(host) else "starttls")


def _port(protocol: Protocol, given: str | float | None, usual: int) -> int:
    if given is None:
        return usual
    try:
        port = int(given)
    except ValueError:
        port = 0
    if not 0 < port < 65536:
        raise ConfigError(f"the port of {protocol}: is a whole number from 1 to 65535")
    return port


def trust() -> ssl.SSLContext:
    """Certificates that are trusted: the system's, or those of SSL_CERT_FILE."""
    return ssl.create_default_context()


def failure(server: Server, problem: str, *, retryable: bool = False, status: int | None = None) -> ToolError:
    """A ToolError that names the server before `problem`. What the server repeats of the password is taken out."""
    for secret in _secrets(server):
        problem = problem.replace(secret, "[REDACTED]")
    return ToolError(f"{server.shown} {problem}", retryable=retryable, status=status)


def unreachable(server: Server, error: BaseException) -> ToolError:
    """The ToolError for a connection that could not be made, by what lies behind `error`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            problem = f"shows a certificate that is not trusted: {cause.verify_message}"
            advice = "use the name that is in it; name the file of a private authority in SSL_CERT_FILE"
            return failure(server, f"{problem}; {advice}")
        if isinstance(cause, ssl.SSLError):
            return failure(
                server, f"speaks no TLS that can be used: {cause.reason or clean(str(cause))}; {_port_advice(server)}"
            )
        cause = cause.__cause__ or cause.__context__
    return failure(server, f"cannot be reached: {reason(error)}; is the address right?", retryable=True)


def reason(error: BaseException) -> str:
    """The system's own words: libraries wrap them in sentences that name the address again."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return clean(error.strerror)
    cause = error.__cause__
    return reason(cause) if isinstance(cause, OSError) else clean(str(error)) or type(error).__name__


def _port_advice(server: Server) -> str:
    port = _TLS_PORTS[server.protocol]
    return f"is the port right? {server.protocol}s:// (usually {port}) begins with TLS, other ports with STARTTLS"


def _secrets(server: Server) -> list[str]:
    """The password in every form in which it goes over the wire, longest first."""
    if not server.password:
        return []
    raw, user = server.password.encode(), (server.user or "").encode()
    forms = {b64encode(raw), b64encode(b"\0" + user + b"\0" + raw), raw}
    return sorted((form.decode() for form in forms), key=len, reverse=True)
