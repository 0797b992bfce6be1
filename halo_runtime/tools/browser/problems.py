"""What Playwright says of a failure, in words that say what to do. Pure functions of its messages."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from halo_lang.records import record
from halo_runtime.tools.web.client import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.async_api import Error

MAX_CANDIDATES: Final = 5

_NET_ERROR: Final = re.compile(r"net::(ERR_\w+)")
_NET: Final = {
    "ERR_NAME_NOT_RESOLVED": "its name leads nowhere",
    "ERR_CONNECTION_REFUSED": "refuses the connection",
    "ERR_CONNECTION_RESET": "broke the connection",
    "ERR_CONNECTION_CLOSED": "broke the connection",
    "ERR_EMPTY_RESPONSE": "answered nothing",
    "ERR_INCOMPLETE_CHUNKED_ENCODING": "broke the connection",
    "ERR_TUNNEL_CONNECTION_FAILED": "cannot be reached",
    "ERR_PROXY_CONNECTION_FAILED": "cannot be reached: the browser must run on the same machine as Halo, as all its "
    "connections go through Halo",
    "ERR_TOO_MANY_REDIRECTS": "redirects in a circle",
    "ERR_INVALID_RESPONSE": "sent what is no page",
    "ERR_INVALID_AUTH_CREDENTIALS": "wants a user and a password",
    "ERR_SSL_PROTOCOL_ERROR": "does not speak TLS; is it meant to be http://?",
    "ERR_CERT_AUTHORITY_INVALID": "has a certificate of nobody that browsers trust",
    "ERR_CERT_COMMON_NAME_INVALID": "has a certificate for another name",
    "ERR_CERT_DATE_INVALID": "has a certificate that has run out",
    "ERR_UNSAFE_PORT": "is at a port that browsers do not go to",
    "ERR_UNKNOWN_URL_SCHEME": "is of a kind that a browser cannot show",
    "ERR_ABORTED": "is no page that a browser shows (a download, or an answer without a body), or went elsewhere",
}
_PASSING: Final = frozenset(
    ("ERR_NAME_NOT_RESOLVED", "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_CONNECTION_CLOSED",
     "ERR_EMPTY_RESPONSE", "ERR_TUNNEL_CONNECTION_FAILED", "ERR_INCOMPLETE_CHUNKED_ENCODING")
)  # fmt: skip
_GONE: Final = (
    "Target crashed",
    "Page crashed",
    "Target page, context or browser has been closed",
    "Connection closed",
)
_HINDRANCES: Final = (
    (re.compile(r"(<[^>]{1,200}>)[^\n]{0,200} intercepts pointer events"), "it is covered by {0}"),
    (re.compile(r"element is not visible"), "it is not visible"),
    (re.compile(r"element is not enabled"), "it is disabled"),
    (re.compile(r"element is not editable"), "it is read-only"),
    (re.compile(r"element is not stable"), "it does not stop moving"),
    (re.compile(r"element is outside of the viewport"), "it lies outside the page"),
    (re.compile(r"did not find some options"), "it has no such option"),
    (re.compile(r"element was detached"), "it was taken away meanwhile"),
)
_STARTING: Final = (
    ("Chromium sandboxing failed", "Chromium's sandbox does not work on this machine, and without it pages are not "
     "opened; install the package chromium-sandbox, or allow unprivileged user namespaces"),
    ("Missing X server", "there is no display to show a window on; leave out headless: false"),
    ("ECONNREFUSED", "nothing listens there; start Chrome with --remote-debugging-port=9222 --user-data-dir=FOLDER"),
    ("Executable doesn't exist", "the browser is not there any more"),
)  # fmt: skip


@record
class Candidate:
    """An element that can be acted on: how to name it, and what stands on it."""

    selector: str
    text: str

    def __str__(self) -> str:
        return f"`{self.selector}`" if self.text in self.selector else f"`{self.selector}` ({self.text})"


def told(error: Error) -> str:
    """A failure in one line, without Playwright's logs and method names."""
    message = error.message
    for sign, words in _STARTING:
        if sign in message:
            return words
    head = message.partition("Call log:")[0].partition("Browser logs:")[0]
    return clean(re.sub(r"^\w+\.\w+: ", "", head)) or type(error).__name__


def is_gone(error: Error) -> bool:
    """Whether the page or its browser is there no more."""
    return any(sign in error.message for sign in _GONE)


def network_problem(error: Error) -> tuple[str, bool] | None:
    """Why a page could not be gone to, as words after its address, and whether that may pass; None for another kind."""
    found = _NET_ERROR.search(error.message)
    if found is None:
        return ("begins a download, which is refused", False) if "Download is starting" in error.message else None
    code = found[1]
    return f"{_NET.get(code, 'cannot be shown')} ({code})", code in _PASSING


def hindrance(error: Error) -> str | None:
    """Why an element that is there could not be acted on, by Playwright's log of its tries; None where it says none."""
    for pattern, words in _HINDRANCES:
        found = pattern.findall(error.message)
        if found:
            return words.format(clean(found[-1]))
    return None


def closest(selector: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that are most like what was asked for; any, where none is."""
    wanted = _words(selector)

    def likeness(one: Candidate) -> float:
        parts = (_words(one.text), _words(one.selector))
        return max(SequenceMatcher(None, wanted, part).ratio() + 0.5 * _shared(wanted, part) for part in parts)

    ranked = sorted(candidates, key=likeness, reverse=True)
    return ranked[:MAX_CANDIDATES]


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _shared(one: str, other: str) -> float:
    """The share of the words of `one` that stand in `other`."""
    words = set(one.split())
    return len(words & set(other.split())) / len(words) if words else 0.0
