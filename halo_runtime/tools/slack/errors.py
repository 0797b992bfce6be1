"""Slack's refusals in words. They come with status 200, as `{"ok": false, "error": code}` (reference 2.5)."""

from __future__ import annotations

from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.tools.web.client import WebAnswer, WebRequest, clean, problem_at, refusal

_TOKEN: Final = "check the token: in the declaration, or in SLACK_BOT_TOKEN"
_OWN: Final = "a bot changes only its own messages, and not for ever"
_ADVICE: Final = {
    **dict.fromkeys(("invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"), _TOKEN),
    "not_allowed_token_type": "it must be a bot's token (xoxb-…)",
    "channel_not_found": "there is no such channel, or the bot may not see it: invite it there",
    "not_in_channel": "invite the bot to the channel",
    "is_archived": "the channel is archived",
    "message_not_found": "there is no such message in the channel; ts is a text such as 1764000000.000100",
    "thread_not_found": "there is no such thread in the channel",
    "cant_update_message": _OWN,
    "cant_delete_message": _OWN,
    "edit_window_closed": _OWN,
    "msg_too_long": "shorten it, or upload it as a file",
    "users_not_found": "there is no such person in the workspace",
    "user_not_found": "there is no such person in the workspace",
    "user_not_in_channel": "the person is not in the channel",
    "invalid_name": "there is no emoji of this name",
    "invalid_cursor": "give the cursor of the page before as it is",
}
_PASSING: Final = ("internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org")
"""Failures of Slack's own, after which something may have been done."""
RATE_SECONDS: Final = 30.0
"""The wait that Slack's own clients keep to where it names none."""


def failed(request: WebRequest, answer: WebAnswer) -> ToolError:
    """The error for a status that is no success; 429 says when to come back, and nothing was done."""
    advice = "Slack asks for fewer requests" if answer.status == 429 else ""
    return refusal(request, answer, advice)


def explain(request: WebRequest, document: JsonObject) -> ToolError:
    """The error for an answer that is not `ok`."""
    code = clean(str(document.get("error") or "unknown_error"))
    advice = _ADVICE.get(code, "")
    if code == "missing_scope":
        advice = f"the token needs {clean(str(document.get('needed')))}, it has {clean(str(document.get('provided')))}"
    told = "; ".join(_messages(document))
    problem = "; ".join(part for part in (f"refused: {code}", told, advice) if part)
    limited = code in ("ratelimited", "rate_limited")
    error = problem_at(request, problem, retryable=limited or (code in _PASSING and request.repeatable))
    error.detail = code
    error.retry_after = RATE_SECONDS if limited else None
    return error


def _messages(document: JsonObject) -> list[str]:
    """What is wrong in detail, as Slack says it for blocks and arguments."""
    metadata: Json = document.get("response_metadata")
    messages: Json = metadata.get("messages") if is_object(metadata) else None
    errors: Json = document.get("errors")
    listed: list[Json] = [*(messages if is_list(messages) else []), *(errors if is_list(errors) else [])]
    return [clean(str(message)) for message in listed[:5]]
