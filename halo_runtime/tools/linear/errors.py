"""Linear's refusals in words. They come as `errors`, with status 200 or 400 (reference 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.retry import retry_after
from halo_runtime.tools.web.client import WebAnswer, WebRequest, clean, problem_at

LIMIT_SECONDS: Final = 60.0
"""The wait after a limit that names no end."""

_ADVICE: Final = {
    "authentication error": "check the key: in the declaration, or in LINEAR_API_KEY",
    "forbidden": "the key may not do this",
    "feature not accessible": "the workspace's plan does not have this",
    "usage limit exceeded": "the workspace's plan is used up",
}
_CODES: Final = {"AUTHENTICATION_ERROR": "authentication error", "FORBIDDEN": "forbidden", "RATELIMITED": "ratelimited"}
_STATUSES: Final = {401: "authentication error", 403: "forbidden", 429: "ratelimited"}
_PASSING: Final = ("internal error", "network error", "lock timeout", "bootstrap error")
"""Failures of Linear's own, after which something may have been done."""
_LIMITS: Final = ("complexity", "endpoint-requests", "requests")


def errors_of(document: Json) -> list[JsonObject]:
    """The errors of an answer; each of them makes it a failure, whatever `data` holds."""
    errors: Json = document.get("errors") if is_object(document) else None
    if is_list(errors):
        return [error if is_object(error) else {"message": str(error)} for error in errors]
    return []


def explain(request: WebRequest, answer: WebAnswer, errors: list[JsonObject], now: float) -> ToolError:
    """The error for an answer with `errors`. `now` in seconds since 1970."""
    kind = _kind(answer, errors[0])
    told = "; ".join(dict.fromkeys(part for error in errors[:3] for part in _told(error)))
    said = told.removesuffix(".")
    if kind == "ratelimited":
        return _limited(request, answer, said, now)
    advice = _ADVICE.get(kind, "")
    if "complex" in said.lower():
        advice = "ask for less: first:, limit:, or a filter:"
    elif "not found" in said.lower():
        advice = "there is no such thing, or the key may not see it"
    problem = "; ".join(part for part in (f"refused: {said or kind or 'without a reason'}", advice) if part)
    # A failure that names neither kind nor status is Linear's own too.
    passing = kind in _PASSING or answer.status >= 500
    error = problem_at(request, problem, retryable=passing and request.repeatable)
    error.detail = said or None
    error.status = answer.status if answer.status != 200 else None
    return error


def _limited(request: WebRequest, answer: WebAnswer, said: str, now: float) -> ToolError:
    """The error for a rate limit, of requests or of complexity. Nothing was done, so it may pass."""
    asked, reset = retry_after(answer.headers), _reset(answer.headers)
    until = f"; the limit ends {datetime.fromtimestamp(reset, UTC):%H:%M:%S} UTC" if reset is not None else ""
    error = problem_at(request, f"asks for fewer requests: {said or 'the limit is used up'}{until}", retryable=True)
    wait = LIMIT_SECONDS if reset is None else max(0.0, reset - now)
    error.retry_after = wait if asked is None else asked
    error.detail, error.status = said or None, answer.status
    return error


def _reset(headers: Mapping[str, str]) -> float | None:
    """When the limit that is used up ends, in seconds since 1970; Linear says it in milliseconds."""
    ends = {name: headers.get(f"x-ratelimit-{name}-reset", "") for name in _LIMITS}
    known = {name: int(end) / 1000 for name, end in ends.items() if end.isascii() and end.isdigit() and len(end) < 15}
    used_up = [end for name, end in known.items() if headers.get(f"x-ratelimit-{name}-remaining") == "0"]
    return max(used_up) if used_up else known.get("requests")


def _kind(answer: WebAnswer, error: JsonObject) -> str:
    """What kind of error it is, in the words of Linear's `type`."""
    extensions: Json = error.get("extensions")
    code, kind = (extensions.get("code"), extensions.get("type")) if is_object(extensions) else (None, None)
    if isinstance(code, str) and code in _CODES:
        return _CODES[code]
    if kind in (None, "unknown", "other"):
        return "internal error" if code == "INTERNAL_SERVER_ERROR" else _STATUSES.get(answer.status, "")
    return str(kind).lower()


def _told(error: JsonObject) -> list[str]:
    """An error's message, and what is said to people where that is not the same."""
    extensions: Json = error.get("extensions")
    shown: Json = extensions.get("userPresentableMessage") if is_object(extensions) else None
    said = [clean(text) for text in (error.get("message"), shown) if isinstance(text, str) and text]
    return list(dict.fromkeys(said))
