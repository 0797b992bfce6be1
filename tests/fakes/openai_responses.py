"""What OpenAI's responses API sends: responses, their items, and the events that bring them; see openai_server.py.

server.turn(response(reasoning(), message("Hm."), function_call("call_1", "Weather_at", "{}")))
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from tests.fakes.wire import Answer, crumbs

_TEXTS = {"output_text": ("text", "output_text"), "refusal": ("refusal", "refusal")}


def usage(read: int, made: int, *, cached: int = 0, written: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """The usage block: totals include the cached and the reasoning tokens."""
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": read + made,
    }


def reasoning(id_: str = "rs_1", encrypted: str | None = "gAAAAAB-opaque") -> dict[str, Any]:
    """What the model thought, for its own eyes; without an encrypted form the service would have to know it."""
    item: dict[str, Any] = {"id": id_, "type": "reasoning", "summary": []}
    return item if encrypted is None else item | {"encrypted_content": f"{encrypted}-{id_}"}


def message(text: str | None, id_: str = "msg_1", *, refusal: str | None = None, **more: Any) -> dict[str, Any]:
    """What the model says; `phase` may be among `more`."""
    parts = [] if text is None else [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    parts += [] if refusal is None else [{"type": "refusal", "refusal": refusal}]
    return {"id": id_, "type": "message", "role": "assistant", "status": "completed", "content": parts} | more


def function_call(call_id: str, name: str, arguments: str = "{}", *, status: str = "completed") -> dict[str, Any]:
    """A call; its id as an item is another than that which its output names."""
    return {
        "id": f"fc_{call_id}", "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments,
        "status": status,
    }  # fmt: skip


def document(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    """A whole response."""
    return {
        "id": "resp_1", "object": "response", "created_at": 1764000000, "status": status, "error": None,
        "incomplete_details": None, "instructions": None, "max_output_tokens": None, "model": "gpt-6.1-sol-2026-11-12",
        "output": list(items), "parallel_tool_calls": True, "store": False, "temperature": 1.0, "tool_choice": "auto",
        "tools": [], "top_p": 1.0, "metadata": {}, "usage": usage(9, 3),
    } | more  # fmt: skip


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> Answer:
    """An answer with these items."""
    return Answer(body=json.dumps(document(*items, status=status, **more)).encode())


def incomplete(*items: dict[str, Any], reason: str = "max_output_tokens", **more: Any) -> Answer:
    """An answer that was broken off."""
    return response(*items, status="incomplete", incomplete_details={"reason": reason}, **more)


def failed(code: str, text: str = "no", **more: Any) -> Answer:
    """A failure under status 200."""
    return response(status="failed", error={"code": code, "message": text}, usage=None, **more)


# --- streams ----------------------------------------------------------------------------------------------------------


def error(code: str | None, text: str = "no", param: str | None = None) -> dict[str, Any]:
    """The event of a failure in the middle of a stream."""
    return {"type": "error", "code": code, "message": text, "param": param, "sequence_number": 99}


def events(whole: dict[str, Any], step: int = 4) -> list[dict[str, Any]]:
    """The events that bring a response, its texts `step` characters at a time."""
    begun = whole | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None, "error": None}
    found = [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}]
    for place, item in enumerate(whole["output"]):
        found += [event | {"output_index": place} for event in _item_events(item, step)]
    found.append({"type": f"response.{whole['status']}", "response": whole})
    numbers = count()
    return [event | {"sequence_number": next(numbers)} for event in found]


def stream(items: Iterable[dict[str, Any] | str], *, size: int = 3, **more: Any) -> Answer:
    """Events (or raw data) as a stream in crumbs, with both line ends and data of several lines."""
    text = ": hello\n\n"
    for number, item in enumerate(items):
        named = "" if isinstance(item, str) else f"event: {item['type']}"
        data = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, indent=number % 2 or None)
        end = "\n" if number % 3 else "\r\n"
        lines = [named, *(f"data: {line}" for line in data.split("\n"))] if named else [f"data: {data}"]
        text += "".join(f"{line}{end}" for line in lines) + end
    return Answer(pieces=crumbs(text, size), content_type="text/event-stream; charset=utf-8", **more)


def _item_events(item: dict[str, Any], step: int) -> Iterator[dict[str, Any]]:
    started = item | {"status": "in_progress"}
    if item["type"] == "message":
        started["content"] = []
    elif item["type"] == "function_call":
        started["arguments"] = ""
    elif "encrypted_content" in item:
        started["encrypted_content"] = "incomplete"
    if item["type"] == "reasoning":
        del started["status"]
    yield {"type": "response.output_item.added", "item": started}
    yield from _inner_events(item, step)
    yield {"type": "response.output_item.done", "item": item}


def _inner_events(item: dict[str, Any], step: int) -> Iterator[dict[str, Any]]:
    if item["type"] == "function_call":
        for piece in _cut(item["arguments"], step):
            yield {"type": "response.function_call_arguments.delta", "item_id": item["id"], "delta": piece}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", "item_id": item["id"], **done}
    for place, part in enumerate(item["content"] if item["type"] == "message" else ()):
        for event in _part_events(part, step):
            yield {**event, "item_id": item["id"], "content_index": place}


def _part_events(part: dict[str, Any], step: int) -> Iterator[dict[str, Any]]:
    field, name = _TEXTS[part["type"]]
    logs = {"logprobs": []} if name == "output_text" else {}
    yield {"type": "response.content_part.added", "part": part | {field: ""}}
    for piece in _cut(part[field], step):
        yield {"type": f"response.{name}.delta", "delta": piece, "obfuscation": "xyz", **logs}
    yield {"type": f"response.{name}.done", field: part[field], **logs}
    yield {"type": "response.content_part.done", "part": part}


def _cut(text: str, step: int) -> list[str]:
    return [text[start : start + step] for start in range(0, len(text), step)]
