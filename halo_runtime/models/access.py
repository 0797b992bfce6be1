"""Whether a key may be sent to an address, asked before anything is sent."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from halo_runtime.models.http import Endpoint, is_loopback

_HEADER_VALUE: Final = re.compile(r"[!-~]+")
_NOT_IN_ADDRESSES: Final = re.compile(r"[\s\x00-\x1f\x7f]")


def access_problem(endpoint: Endpoint, key: str, usual: str, *, key_needed: bool = True) -> str | None:
    """Why no request with this key must or can be sent to the endpoint, and what to do; None where it may.

    `usual` is the service's own address, shown as an example of one. A server on this machine needs no key.
    """
    variable = endpoint.url_variable
    try:
        parts = urlsplit(endpoint.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f"{variable} is no address; write it like {usual}"
    if _NOT_IN_ADDRESSES.search(endpoint.url):
        return f"{variable} holds white space or characters that no address has; write it like {usual}"
    if not usable or parts.query or parts.fragment or parts.username or parts.password:
        return f"{variable} is no plain http or https address; write it like {usual}"
    if key and not _HEADER_VALUE.fullmatch(key):
        return f"{endpoint.key_variable} holds white space or characters that no key has; set it again"
    if is_loopback(parts):
        return None
    if not key and key_needed:
        return f"{endpoint.key_variable} is not set; {WITHOUT_KEY}"
    if key and parts.scheme == "http":
        advice = f"where {endpoint.key_variable} could be read on the way; use https"
        return f"{variable} is plain http to another machine, {advice}"
    return None


WITHOUT_KEY: Final = "set it, or run without a key: --replies FILE, or --model local/smollm2"
"""What to do where a key is missing."""
