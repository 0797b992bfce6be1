"""A request as Anthropic's messages API reads it. Pure.

A turn in which the model thought goes back as it came, for its signatures hold only while everything before it is what
was sent when it was made. `made_after` of that is kept with the turn; where it does not fit any more (a rule changed an
old message, the tools are others) the turn goes back without its thinking.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from typing import Final, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.anthropic_schema import NotExpressible, parameters, structured
from halo_runtime.models.base import Message, ModelRequest, ToolCall, ToolSpec
from halo_runtime.models.chat import ToolNames
from halo_runtime.models.surrogates import valid_text
from halo_runtime.models.turns import UNFINISHED

WIRE: Final = "anthropic"
"""The wire format's name in `opaque`."""

NO_OUTPUT: Final = "(no output)"
"""What stands for a tool's empty result, which the service refuses."""

_ILLEGAL_IN_IDS: Final = re.compile(r"[^a-zA-Z0-9_-]")
_OLD: Final = r"claude-(3|(opus|sonnet)-4(-0|[-@]20\d{6})?$)"

Sampling: TypeAlias = Literal["both", "one", "none"]


@record
class Family:
    """What the models whose names match `pattern` take.

    `sampling`: temperature and top_p, one of them, or neither. `schema`: whether they have structured output.
    `max_tokens` is the limit where the program sets none, for the service wants one.
    """

    pattern: re.Pattern[str]
    sampling: Sampling
    schema: bool
    max_tokens: int


FAMILIES: Final = (
    Family(re.compile(r"claude-3-(opus|sonnet|haiku)|claude-(2|instant)"), "both", schema=False, max_tokens=4096),
    Family(re.compile(_OLD), "both", schema=False, max_tokens=8192),
    Family(re.compile(r"claude-opus-4-1(?!\d)"), "one", schema=False, max_tokens=8192),
    Family(re.compile(r"claude-[a-z]+-4-[56](?!\d)"), "one", schema=True, max_tokens=16_000),
    Family(re.compile(r"claude-"), "none", schema=True, max_tokens=16_000),
    Family(re.compile(""), "both", schema=False, max_tokens=4096),
)
"""The first that matches counts: new names are taken for the newest. The last is for other makers' models."""


def family(model: str) -> Family:
    """What the model takes, by its name on the wire."""
    return next(item for item in FAMILIES if item.pattern.match(model))


def request_body(
    request: ModelRequest, model: str, names: ToolNames, refused: Collection[str] = ()
) -> tuple[JsonObject, tuple[str, ...]]:
    """The body of the POST, and what was left out of it. `refused` are settings that the service was seen to refuse."""
    takes = family(model)
    limit = takes.max_tokens if request.max_tokens is None else request.max_tokens
    body: JsonObject = {"model": model, "max_tokens": limit}
    settings, warnings = _sampling(request, model, takes.sampling, refused)
    instructions = [message.content for message in request.messages if message.role == "system"]
    if request.json_schema is not None:
        schema = _structured(request.json_schema, takes.schema and "output_config" not in refused)
        if isinstance(schema, str):
            warnings += (f"{model} does not take {schema} in its JSON mode; the schema was sent in words",)
            instructions.append(_in_words(request.json_schema))
        else:
            settings["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    system = "\n\n".join(valid_text(text) for text in instructions if text.strip())
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool, names) for tool in request.tools]
    body["messages"] = _turns(request.messages, names, body)
    return body | settings, warnings


def made_after(body: JsonObject) -> str:
    """A digest of what a turn's signatures are bound to: the instructions, the tools and all turns before it."""
    bound = [body.get("system"), body.get("tools"), body.get("messages")]
    text = json.dumps(bound, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def told(content: Json) -> tuple[str, list[Json]]:
    """What a turn's blocks say to others than the service: its text, and the ids of its calls."""
    blocks = [block for block in content if is_object(block)] if is_list(content) else []
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    text = "".join(text for text in texts if isinstance(text, str))
    return valid_text(text), [block.get("id") for block in blocks if block.get("type") == "tool_use"]


def _tool(tool: ToolSpec, names: ToolNames) -> JsonObject:
    description, schema = valid_text(tool.description), parameters(tool.parameters)
    return {"name": names[tool.name], "description": description, "input_schema": schema}


# --- settings ---------------------------------------------------------------------------------------------------------


def _sampling(
    request: ModelRequest, model: str, takes: Sampling, refused: Collection[str]
) -> tuple[JsonObject, tuple[str, ...]]:
    """The sampling settings that the model takes, and a warning for each that it does not."""
    made = {name: getattr(request, name) for name in ("temperature", "top_p")}
    made = {name: value for name, value in made.items() if value is not None}
    not_taken = made if takes == "none" else refused
    left_out = {name: f"{model} does not take {name}; it was left out" for name in made if name in not_taken}
    if takes == "one" and len(made) == 2 and not left_out:
        left_out = {"top_p": f"{model} does not take top_p beside temperature; it was left out"}
    return {name: value for name, value in made.items() if name not in left_out}, tuple(left_out.values())


def _structured(schema: JsonObject, taken: bool) -> JsonObject | str:
    """The schema for structured output, or what of it is not taken."""
    if not taken:
        return "a schema"
    try:
        return structured(schema)
    except NotExpressible as problem:
        return str(problem)


def _in_words(schema: JsonObject) -> str:
    return f"Answer with JSON only, that matches this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"


# --- turns ------------------------------------------------------------------------------------------------------------


def _turns(messages: Iterable[Message], names: ToolNames, body: JsonObject) -> list[JsonObject]:
    history = _History(names, body)
    for message in messages:
        if message.role == "tool":
            history.result(message)
        elif message.role == "user":
            history.user(message)
        elif message.role == "assistant":
            history.assistant(message)
    return history.complete()


class _History:
    """Turns as the service takes them: roles alternate, no text is blank, each call has its result in the next turn."""

    def __init__(self, names: ToolNames, body: JsonObject) -> None:
        self._names = names
        self._body = body
        self._turns: list[JsonObject] = []
        self._open: dict[str, str] = {}
        self._used: set[str] = set()

    def user(self, message: Message) -> None:
        self._answer_open_calls()
        self._add("user", _text(message.content))

    def assistant(self, message: Message) -> None:
        self._answer_open_calls()
        own = self._as_it_came(message)
        ids = {call.id: self._wire_id(call.id, keep=own is not None) for call in message.tool_calls}
        calls = [_tool_use(call, ids[call.id], self._names) for call in message.tool_calls]
        self._add("assistant", own or [*_text(message.content), *calls])
        self._open = ids

    def result(self, message: Message) -> None:
        """Answer an open call; the service would refuse an answer to anything else."""
        id_ = self._open.pop(message.tool_call_id or "", None)
        if id_ is not None:
            content = valid_text(message.content) if message.content.strip() else NO_OUTPUT
            failed = {"is_error": True} if message.is_error else {}
            self._add("user", [{"type": "tool_result", "tool_use_id": id_, "content": content, **failed}])

    def complete(self) -> list[JsonObject]:
        """The turns; a last one of the assistant's must not end in white space."""
        self._answer_open_calls()
        if self._turns and self._turns[-1]["role"] == "assistant":
            content: list[JsonObject] = self._turns[-1]["content"]
            if content[-1]["type"] == "text":
                content[-1] = content[-1] | {"text": content[-1]["text"].rstrip()}
        return self._turns

    def _as_it_came(self, message: Message) -> list[JsonObject] | None:
        """The turn's own blocks, where they still say what the message says, after what they were made after."""
        own: Json = (message.opaque or {}).get(WIRE)
        if not is_object(own) or not is_list(own.get("content")):
            return None
        same = told(own["content"]) == (valid_text(message.content), [call.id for call in message.tool_calls])
        bound = self._body | {"messages": self._turns}
        return own["content"] if same and own.get("after") == made_after(bound) else None

    def _answer_open_calls(self) -> None:
        for id_ in self._open.values():
            result = {"type": "tool_result", "tool_use_id": id_, "content": UNFINISHED, "is_error": True}
            self._add("user", [result])
        self._open = {}

    def _wire_id(self, id_: str, *, keep: bool) -> str:
        """A legal id that no other call has; another service's may be neither."""
        candidate = legal = _ILLEGAL_IN_IDS.sub("_", id_) or "call"
        number = 1
        while candidate in self._used and not keep:
            number += 1
            candidate = f"{legal}_{number}"
        self._used.add(candidate)
        return candidate

    def _add(self, role: str, blocks: list[JsonObject]) -> None:
        if blocks and self._turns and self._turns[-1]["role"] == role:
            self._turns[-1]["content"] += blocks
        elif blocks:
            self._turns.append({"role": role, "content": list(blocks)})


def _text(content: str) -> list[JsonObject]:
    return [{"type": "text", "text": valid_text(content)}] if content.strip() else []


def _tool_use(call: ToolCall, id_: str, names: ToolNames) -> JsonObject:
    return {"type": "tool_use", "id": id_, "name": names[call.name], "input": tool_input(call.arguments)}


def tool_input(arguments: str) -> JsonObject:
    """The arguments as the object that the service takes; text that is none goes inside one."""
    try:
        value: Json = json.loads(arguments.strip() or "{}")
    except (ValueError, RecursionError):
        value = None
    return value if is_object(value) else {"INVALID_JSON": valid_text(arguments)}
