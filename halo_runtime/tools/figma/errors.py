"""Figma's refusals in words: `{status, err}` or `{error: true, status, message}` (reference 2.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, is_object
from halo_runtime.tools.web.client import WebAnswer, WebRequest, refusal

LESS: Final = "ask for less with depth: or ids:"
_TOKEN: Final = "check the token: in the declaration, or in FIGMA_TOKEN"
_ADVICE: Final = {401: _TOKEN, 404: "there is no such thing, or the token may not see it"}


def failed(answer: WebAnswer, document: Json) -> WebAnswer | None:
    """The answer, with the status that it speaks of, where it is a failure; None for a success."""
    if answer.status >= 300:
        return answer
    if not is_object(document) or not (document.get("err") or document.get("error") is True):
        return None
    status: Json = document.get("status")
    return replace(answer, status=status if isinstance(status, int) and 400 <= status < 600 else 400)


def explain(request: WebRequest, answer: WebAnswer, method: str, *, large: bool) -> ToolError:
    """The ToolError for an answer that is no success. `large`: less could be asked for."""
    advice = _ADVICE.get(answer.status, "")
    said = answer.content[:2000].lower()
    if answer.status == 403:
        advice = _forbidden(method, said)
    elif answer.status == 429:
        advice = _limited(answer)
    elif large and (answer.status >= 500 or b"too large" in said):
        advice = f"the file may be too large; {LESS}"
    return refusal(request, answer, advice)


def _forbidden(method: str, said: bytes) -> str:
    if b"invalid token" in said or b"token expired" in said:
        return _TOKEN
    if method == "variables":
        return "variables are there on the Enterprise plan only, for tokens with file_variables:read"
    return "the token lacks a scope, or its owner may not do this"


def _limited(answer: WebAnswer) -> str:
    """Whose limit it is: Figma gives view and collab seats far fewer requests."""
    plan, kind = (answer.headers.get(f"x-figma-{name}", "") for name in ("plan-tier", "rate-limit-type"))
    seats = {"low": "the owner's seat is view or collab", "high": "the owner's seat is dev or full"}.get(kind)
    told = [part for part in (f"plan {plan}" if plan.isalpha() else "", seats) if part]
    return "Figma asks for fewer requests" + (f" ({', '.join(told)})" if told else "")
