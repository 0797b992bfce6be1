"""Headers that programs, declarations and agents give to requests. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from halo_runtime.json_types import Json, is_list, is_object
from halo_runtime.values import text_of

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OURS: Final = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
     "accept-encoding", "proxy-authorization", "proxy-connection")
)  # fmt: skip
"""Headers that say how a message is sent: another value would let one request pass for two."""

HEADERS: Final = 'an object, or a list of "Name: value" and ["Name", value]'


class HeaderProblem(ValueError):
    """Headers that cannot be sent; the text says why, without their values."""


def read_headers(given: Json) -> dict[str, str]:
    """Headers by name in lower case. Raises HeaderProblem for what is none, and what could break out of its header."""
    headers: dict[str, str] = {}
    for name, value in _pairs(given):
        name, text = name.strip().lower(), text_of(value).strip()
        if not _NAME.fullmatch(name):
            raise HeaderProblem("a header's name has only letters, digits and -")
        if name in _OURS:
            raise HeaderProblem(f"the header {name} is for the connection to say; leave it out")
        if not _VALUE.fullmatch(text):
            raise HeaderProblem(f"the header {name} holds a line break or characters that no header can have")
        if text.startswith("Env."):
            raise HeaderProblem(f'the header {name} reads no variable inside a text; write ["{name}", {text}]')
        headers[name] = text
    return headers


def _pairs(given: Json) -> Iterator[tuple[str, Json]]:
    if is_object(given):
        yield from given.items()
        return
    for item in given if is_list(given) else [given]:
        if isinstance(item, str) and ":" in item:
            name, _, value = item.partition(":")
            yield name, value
        elif is_list(item) and len(item) == 2 and isinstance(item[0], str):
            yield item[0], item[1]
        elif item is not None:
            raise HeaderProblem(f"headers takes {HEADERS}")
