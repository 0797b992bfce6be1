"""Which part of a request a service refused because the model or the server does not have it at all. Pure.

What is found is left out of this request and all further ones to the model, so that it costs one request at most.
"""

from __future__ import annotations

import re
from typing import Final

from halo_runtime.errors import ModelError
from halo_runtime.json_types import JsonObject
from halo_runtime.models.openai_wire import CHAT, RESPONSES, SAMPLING

_REFUSALS: Final = frozenset({400, 404, 422, 501})
_NOT_TAKEN: Final = re.compile(
    r"deprecated|not (be )?support|unsupported|not permitted|unrecognized|unknown|extra inputs|requested parameters"
    r"|must be verified|not implemented",
    re.IGNORECASE,
)
_NAMED: Final = {
    "stream_options": re.compile(r"stream_options"),
    "stream": re.compile(r"\bstream(ing|ed)?\b", re.IGNORECASE),
    "response_format": re.compile(r"(?<!schema for )response_format|requested parameters"),
    "text": re.compile(r"\btext\.format\b"),
    "include": re.compile(r"\binclude\b|encrypted content", re.IGNORECASE),
    **{name: re.compile(rf"\b{name}\b") for name in (*SAMPLING, "max_tokens", "max_completion_tokens")},
}
"""Part of a body that can be done without → how a refusal names it."""

_USE_RESPONSES: Final = re.compile(r"\bv1/responses\b|\bresponses api\b", re.IGNORECASE)
_NO_SUCH_ADDRESS: Final = frozenset({404, 405, 501})
_OF_ITS_CONTENT: Final = re.compile(r"\b(models?|items?|responses? with id)\b", re.IGNORECASE)
"""In a 404 that speaks of what was asked, and not of the address that it was asked at."""


def refused_part(error: ModelError, api: str, body: JsonObject) -> str | None:
    """The name of a part of `body`, or of the API itself, that `error` refuses; None where it is about anything else.

    `api` is the one that was asked.
    """
    detail = error.detail or ""
    if api == RESPONSES and error.status in _NO_SUCH_ADDRESS and not _OF_ITS_CONTENT.search(detail):
        return RESPONSES
    if error.status not in _REFUSALS:
        return None
    if api == CHAT and _USE_RESPONSES.search(detail):
        return CHAT
    if not _NOT_TAKEN.search(detail):
        return None
    return next((name for name, pattern in _NAMED.items() if name in body and pattern.search(detail)), None)
