"""A response of OpenAI's as a ModelReply. Pure.

Items are told by their type and never by their place: models reason first, and comment on what they do in between.
"""

from __future__ import annotations

import json
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import ModelReply, Stop, ToolCall, Usage
from halo_runtime.models.chat import (
    MAX_TOLD,
    TRUNCATED_CALL,
    Fail,
    ToolNames,
    is_json,
    reported_status,
    told_failure,
    usage_of,
)
from halo_runtime.models.endings import WARNINGS, Refuse, check_ended
from halo_runtime.models.responses_request import WIRE, is_answer, objects, told
from halo_runtime.models.spending import used
from halo_runtime.models.surrogates import valid_text

_REASONS: Final[dict[Json, Stop]] = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Why a response is incomplete; the service may invent other reasons."""

_UNENDED: Final = frozenset({"cancelled", "queued", "in_progress"})


def check_response(document: JsonObject, refuse: Refuse, fail: Fail) -> None:
    """Raise for a response that failed, or that has not come to its end.

    The service passes on few kinds of failure that may pass; all others are about what it was asked.
    """
    error: Json = document.get("error")
    status: Json = document.get("status")
    if is_object(error) and (reported := reported_status(error)) is not None:
        raise fail(reported, {"error": error})
    if is_object(error) and isinstance(error.get("code"), str) and status == "failed":
        raise fail(400, {"error": error})
    if error or status == "failed":
        raise refuse(f"failed before its answer was complete{told_failure(error)}", retryable=True)
    if isinstance(status, str) and status in _UNENDED:
        raise refuse(f"ended its answer before it was complete (status {status})", retryable=True)


def read_reply(document: JsonObject, model: str, names: ToolNames, refuse: Refuse) -> ModelReply:
    """The reply of `model` in a response; raises what `refuse` makes where there is none that could be used."""
    usage = usage_of(document.get("usage"), "input_tokens", "output_tokens")
    with used(usage):
        return _read(document, usage, model, names, refuse)


def _read(document: JsonObject, usage: Usage, model: str, names: ToolNames, refuse: Refuse) -> ModelReply:
    if not is_list(document.get("output")):
        raise refuse("answered without any output")
    items = objects(document["output"])
    text, _ = told(items)
    calls = _tool_calls(items, names)
    refusal = _refusal(items)
    reason = _reason(document)
    stop: Stop = "tool" if calls else "refusal" if refusal else _REASONS.get(reason, "end")
    if reason is not None:
        _check_complete(items, bool(text or refusal), reason, usage, refuse)
    check_ended(stop, refuse, " ".join(refusal.split())[:MAX_TOLD] if stop == "refusal" else "")
    if reason is None and not text and not calls:
        problem = f"answered with an empty message (status {json.dumps(document.get('status'))})"
        raise refuse(problem, retryable=True, code="empty_response")
    answered_by: Json = document.get("model")
    return ModelReply(
        text=text,
        tool_calls=calls,
        stop=stop,
        usage=usage,
        model_used=answered_by if isinstance(answered_by, str) else None,
        warnings=_warnings(reason),
        opaque=_opaque(items, model),
    )


def _reason(document: JsonObject) -> str | None:
    """Why the response is incomplete; None for one that is complete."""
    if document.get("status") != "incomplete":
        return None
    details: Json = document.get("incomplete_details")
    reason: Json = details.get("reason") if is_object(details) else None
    return reason if isinstance(reason, str) else "unknown"


def _tool_calls(items: list[JsonObject], names: ToolNames) -> tuple[ToolCall, ...]:
    originals = {wire: name for name, wire in names.items()}
    found: dict[str, ToolCall] = {}
    for item in items:
        name, id_, arguments = item.get("name"), item.get("call_id"), item.get("arguments")
        if item.get("type") != "function_call" or not isinstance(name, str):
            continue
        if not isinstance(id_, str) or not id_ or id_ in found:
            id_ = f"call_{len(found)}"
        text = arguments if isinstance(arguments, str) and arguments.strip() else "{}"
        found[id_] = ToolCall(id_, originals.get(name, name), valid_text(text))
    return tuple(found.values())


def _refusal(items: list[JsonObject]) -> str:
    parts = (part for item in items if is_answer(item) for part in objects(item.get("content")))
    texts = (part.get("refusal") for part in parts if part.get("type") == "refusal")
    return valid_text("".join(text for text in texts if isinstance(text, str)))


def _check_complete(items: list[JsonObject], says: bool, reason: str, usage: Usage, refuse: Refuse) -> None:
    """Refuse what a limit cut short of any use: a tool would run with half its arguments."""
    calls = [item for item in items if item.get("type") == "function_call"]
    if not all(item.get("status") != "incomplete" and is_json(item.get("arguments")) for item in calls):
        raise refuse(TRUNCATED_CALL, code="truncated_tool_call")
    if says or calls or reason == "content_filter":
        return
    if reason != "max_output_tokens":
        raise refuse(f"broke off before its answer began ({reason})", retryable=True, code="empty_response")
    thought = f", {usage.reasoning} of them on reasoning" if usage.reasoning else ""
    spent = "all its tokens" if usage.output is None else f"all its {usage.output} tokens{thought},"
    raise refuse(f"spent {spent} before its answer began; raise max_tokens", code="output_limit")


def _warnings(reason: str | None) -> tuple[str, ...]:
    if reason is None:
        return ()
    return (WARNINGS[_REASONS[reason]] if reason in _REASONS else f"the service broke the reply off ({reason})",)


def _opaque(items: list[JsonObject], model: str) -> JsonObject | None:
    """The turn for its way back. Reasoning without its encrypted form is known to the service by an id that it has
    forgotten: then the turn goes back without, made anew from its text and calls.
    """
    forgotten = (item for item in items if item.get("type") == "reasoning" and not item.get("encrypted_content"))
    if not items or any(forgotten):
        return None
    return {WIRE: {"model": model, "items": items}}
