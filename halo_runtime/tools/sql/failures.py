"""PostgreSQL's errors in words: what it said, whether to try again, what to do (SQLSTATE: its manual, appendix A)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from halo_runtime.errors import ToolError

if TYPE_CHECKING:
    from psycopg import Error

_MAX_CHARS: Final = 400

_ADVICE: Final = {
    "25006": "the tool only reads",
    "42501": "the role lacks the right to do that",
    "42703": "schema() lists the columns",
    "42P01": "schema() lists the tables",
    "42P18": "give the placeholder a type, as in %s::text",
    "55P03": "another transaction holds a lock on it; try again",
    "57014": "it took longer than {seconds:g} s; ask for less, or raise timeout: in the declaration",
}
_PASSING: Final = frozenset(["40001", "40P01", "53300", "55P03", "57P01", "57P02", "57P03"])
"""Nothing was done, and it may pass: conflicts, no connection left, a lock, a server that stops or starts."""

_CONNECTING: Final[tuple[tuple[str, str, bool], ...]] = (
    (r"password authentication failed|no password supplied", "check user and password in the url", False),
    (r'database ".*" does not exist', "check the database's name in the url", False),
    (r'role ".*" does not exist', "check the user in the url", False),
    (r"no pg_hba\.conf entry.*no encryption", "the server wants TLS: add ?sslmode=require to the url", False),
    (r"no pg_hba\.conf entry", "the server does not let this user in from here; see its pg_hba.conf", False),
    (r"server does not support SSL", "it has no TLS: take sslmode out of the url, or set it up there", False),
    (r"certificate|SSL error|root\.crt", "its certificate is not accepted; see sslmode and sslrootcert", False),
    (r"unsupported startup parameter", "a pooler is between; let it ignore_startup_parameters = options", False),
    (r"too many (clients|connections)|remaining connection slots", "it has no connection left; try again", True),
    (r"starting up|shutting down|in recovery", "try again in a moment", True),
    (r"[Rr]efused|No such file", "is the server running, and are host and port right?", True),
    (r"resolve|translate host|Name or service|nodename", "is the host's name right?", True),
    (r"timeout|timed out", "no answer; are host and port right, and is it reachable from here?", True),
)
"""What stands in the message → what to do, and whether it may pass."""


def cannot_connect(error: Exception) -> ToolError:
    """The ToolError for a server that cannot be reached or lets nobody in."""
    # Where it was tried in several ways, each says the same.
    told = _shortened("\n".join(dict.fromkeys(str(error).replace("connection failed: ", "").splitlines())))
    for pattern, advice, passing in _CONNECTING:
        if re.search(pattern, told):
            return ToolError(f"cannot connect to PostgreSQL: {told}; {advice}", retryable=passing)
    return ToolError(f"cannot connect to PostgreSQL: {told}", retryable=True)


def refused(error: Error, seconds: float) -> ToolError:
    """The ToolError for a statement that the server refused; it has had no effect."""
    state = error.sqlstate or ""
    told = error.diag.message_primary or str(error)
    more = [text for text in (error.diag.message_detail, error.diag.message_hint) if text]
    advice = _ADVICE.get(state, "").format(seconds=seconds)
    sentence = "; ".join([_shortened(told), *map(_shortened, more), *filter(None, [advice])])
    return ToolError(sentence, retryable=state in _PASSING)


def broken(error: Exception, *, wrote: bool) -> ToolError:
    """The ToolError for a connection that was lost during a statement."""
    told = f"the connection to PostgreSQL was lost: {_shortened(str(error))}"
    if wrote:
        return ToolError(f"{told}; whether the statement took effect is not known: look before doing it again")
    return ToolError(told, retryable=True)


def _shortened(text: str) -> str:
    """On one line, and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"
