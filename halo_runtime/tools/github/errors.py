"""GitHub's refusals in words: what it said, whether to try again and when, what to do (reference 2.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.retry import retry_after
from halo_runtime.tools.web.client import WebAnswer, WebRequest, refusal

SECONDARY_SECONDS: Final = 60.0
"""The least wait after a secondary limit that names none."""

_ADVICE: Final = {
    301: "the repository or issue has moved; use its new name",
    401: "check the token: in the declaration, or in GITHUB_TOKEN",
    404: "there is no such thing in {repo}, or the token may not see it",
    405: "it cannot be merged as it is: look at its mergeable_state, its checks and its reviews",
    409: "it has changed meanwhile, or its branch has a conflict; read it again",
    410: "it was deleted, or the repository has it switched off",
    422: "change the arguments",
}


def explain(request: WebRequest, answer: WebAnswer, repo: str, now: float) -> ToolError:
    """The ToolError for an answer that is no success. `now` in seconds since 1970."""
    document = _document(answer)
    if answer.status in (403, 429) and (limit := _limited(request, answer, document, now)) is not None:
        return limit
    advice = _ADVICE.get(answer.status, "").format(repo=repo)
    if answer.status == 403:
        advice = _forbidden(answer)
    return refusal(request, answer, advice, more="; ".join(_errors(document)))


def _limited(request: WebRequest, answer: WebAnswer, document: JsonObject, now: float) -> ToolError | None:
    """The error for a rate limit, primary or secondary; None for another refusal. Nothing was done, so it may pass."""
    asked = retry_after(answer.headers)
    headers, told = answer.headers, str(document.get("message", "")).lower()
    if headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
        reset = int(headers["x-ratelimit-reset"])
        until = datetime.fromtimestamp(reset, UTC)
        resource = headers.get("x-ratelimit-resource", "core")
        what = f"the limit of {headers.get('x-ratelimit-limit', 'all')} requests ({resource}) is used up"
        error = refusal(request, answer, f"{what} until {until:%H:%M:%S} UTC")
        wait = max(0.0, reset - now)
    elif asked is not None or "secondary rate limit" in told or answer.status == 429:
        error = refusal(request, answer, "GitHub asks for fewer requests at a time")
        wait = SECONDARY_SECONDS
    else:
        return None
    error.retryable = True
    error.retry_after = wait if asked is None else asked
    return error


def _forbidden(answer: WebAnswer) -> str:
    """What a token lacks, as far as GitHub says so."""
    if "x-github-sso" in answer.headers:
        return "the organisation wants the token authorised for single sign-on"
    needed = answer.headers.get("x-accepted-github-permissions") or answer.headers.get("x-accepted-oauth-scopes")
    return f"the token needs {needed}" if needed else "the token may not do this"


def _errors(document: JsonObject) -> Iterator[str]:
    """The `errors` of a 422: `Issue.title: missing_field`, or their own message."""
    errors: Json = document.get("errors")
    for error in errors if is_list(errors) else [errors]:
        if isinstance(error, str):
            yield error
        elif is_object(error):
            place = ".".join(str(error[key]) for key in ("resource", "field") if error.get(key))
            told = str(error.get("message") or error.get("code") or "")
            yield f"{place}: {told}" if place else told


def _document(answer: WebAnswer) -> JsonObject:
    try:
        document: Json = json.loads(answer.content)
    except (ValueError, RecursionError):
        return {}
    return document if is_object(document) else {}
