"""What services write into the bodies of their refusals: their own message, their codes, and how long to wait."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_list, is_object

QUOTA_OF_THE_DAY: Final = "QUOTA_OF_THE_DAY"
"""Our code for Google's refusals that hold until tomorrow, or until the account is allowed any request at all."""

CONTEXT_FULL: Final = "CONTEXT_FULL"
"""Our code for refusals of more than a model can read at once."""

_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_TOLD_SECONDS: Final = re.compile(r"(?:available|resets) in ~?(\d{1,9}(?:\.\d{1,9})?) ?s")
_NOTHING_ALLOWED: Final = re.compile(r"\blimit: 0\b")
_TOO_LONG: Final = re.compile(
    r"maximum context length|context (?:window|limit|size)|prompt is too long|exceeds? the maximum number of tokens",
    re.IGNORECASE,
)


@record
class Complaint:
    """A service's refusal in its own words. `retry_after`: seconds that it asks to wait, where the body says so."""

    message: str = ""
    codes: frozenset[str] = frozenset()
    retry_after: float | None = None


def read_complaint(content: bytes) -> Complaint:
    """What an error body says. Bodies that are not JSON (a proxy's HTML) say nothing."""
    try:
        document: Json = json.loads(content)
    except (ValueError, RecursionError):
        return Complaint()
    if is_list(document) and document:  # a stream that broke before it began
        document = document[0]
    error: Json = document.get("error", document) if is_object(document) else None
    if isinstance(error, str):  # Ollama's way
        error = {"message": error}
    elif error is True:  # Figma's, beside `{"err": message}`
        error = document
    return _read_error(error) if is_object(error) else Complaint()


def _read_error(error: JsonObject) -> Complaint:
    told = (error.get(name) for name in ("message", "detail", "title", "err"))
    text = next((text for text in told if isinstance(text, str) and text), "") + _behind(error.get("metadata"))
    details: Json = error.get("details")
    single = details.get("error_code") if is_object(details) else None
    listed = [detail for detail in details if is_object(detail)] if is_list(details) else []
    codes = {str(code) for code in (error.get("type"), error.get("code"), single, *_reasons(listed))}
    if _NOTHING_ALLOWED.search(text) or any("PerDay" in quota for quota in _quotas(listed)):
        codes.add(QUOTA_OF_THE_DAY)
    if _TOO_LONG.search(text) or "context_length_exceeded" in codes:
        codes.add(CONTEXT_FULL)
    return Complaint(text, frozenset(codes), next(_delays(listed), _told_delay(text)))


def _behind(metadata: Json) -> str:
    """What OpenRouter adds: who behind it failed and how, or what its moderation found."""
    if not is_object(metadata):
        return ""
    reasons: Json = metadata.get("reasons")
    named = ", ".join(str(reason) for reason in reasons) if is_list(reasons) else ""
    told = (metadata.get("provider_name"), metadata.get("raw"), named)
    said = ": ".join(text for text in told if isinstance(text, str) and text)
    return f" ({said})" if said else ""


def _reasons(details: list[JsonObject]) -> Iterator[str]:
    return (reason for detail in details if isinstance(reason := detail.get("reason"), str))


def _quotas(details: list[JsonObject]) -> Iterator[str]:
    """The ids of the quotas that Google says are used up."""
    for detail in details:
        violations: Json = detail.get("violations")
        for violation in violations if is_list(violations) else ():
            if is_object(violation):
                yield str(violation.get("quotaId"))


def _delays(details: list[JsonObject]) -> Iterator[float]:
    """Google's RetryInfo: seconds as text, such as `36s` and `45.83s`."""
    for detail in details:
        delay: Json = detail.get("retryDelay")
        found = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
        if found is not None:
            yield float(found[1])


def _told_delay(text: str) -> float | None:
    """Replicate's way: "Expected available in 1 second", "resets in ~30s"."""
    found = _TOLD_SECONDS.search(text)
    return float(found[1]) if found is not None else None
