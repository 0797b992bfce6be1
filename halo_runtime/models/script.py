"""The replies file of `--replies`: what a scripted model answers, read and checked as a whole (spec 2.9).

The format is described for people in docs/reference/replies.md and for editors in replies.schema.json beside this
file. Everything here is a value; the place in a list of replies is the provider's (scripted.py).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import Usage

MAX_BYTES: Final = 16 * 1024 * 1024
"""A larger file is refused; it bounds what a device or an endless pipe can make us read."""

CONTROL_KEYS: Final = frozenset({"reply", "usage", "delay", "error", "retry_after", "tool_calls"})
"""An object with no other keys than these says how to answer; any other object is itself the reply."""

KEY_PATTERN: Final = re.compile(r"\*|[^\W\d]\w*(\.[^\W\d]\w*)?")
DURATION_PATTERN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_WAIT: Final = 366 * 86400.0
_KINDS: Final = {"dict": "an object", "list": "a list", "str": "a string", "bool": "a Boolean", "NoneType": "null"}
NO_USAGE: Final = Usage(input=0, output=0)

Failure: TypeAlias = int | Literal["network"]


@record
class ScriptedCall:
    """A tool call that the model is to ask for: `name` as `Tool_method`, `arguments` as JSON text."""

    name: str
    arguments: str


@record
class ScriptedReply:
    """One answer: wait `delay` seconds, then fail with `error`, or give text and tool calls.

    `usage` is None where the file says nothing, so that the call costs nothing.
    """

    text: str = ""
    delay: float = 0.0
    error: Failure | None = None
    retry_after: float | None = None
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: Usage | None = None


@record
class ReplyList:
    """The answers of one key, used in turn; `repeat` says whether the last one answers every call after it."""

    replies: tuple[ScriptedReply, ...]
    repeat: bool


@record
class Script:
    """A whole replies file. `name` is what messages call it."""

    name: str
    lists: dict[str, ReplyList] = field(default_factory=dict[str, ReplyList])

    @classmethod
    def load(cls, source: str | Path | JsonObject) -> Script:
        """Read a replies file, or an object of that shape. ConfigError names the file, the key and what is allowed."""
        if isinstance(source, dict):
            return cls.of(source, "the replies")
        return cls.of(_read_json(Path(source)), str(source))

    @classmethod
    def of(cls, document: Json, name: str) -> Script:
        """Check a decoded replies file that messages call `name`."""
        if not is_object(document):
            raise ConfigError(
                f'{name}: expected an object such as {{"Agent.method": "reply"}}, found {_kind(document)}'
            )
        entries: JsonObject = {key: value for key, value in document.items() if key != "$schema"}
        try:
            json.dumps(entries, ensure_ascii=False).encode()
            return cls(name, {key: _reply_list(key, value) for key, value in entries.items()})
        except _Refused as refused:
            raise ConfigError(f"{name}: {refused}") from None
        except UnicodeEncodeError:
            raise ConfigError(
                f"{name}: holds half of a surrogate pair (\\ud800 to \\udfff), which is no text"
            ) from None

    def find(self, agent: str, method: str) -> str | None:
        """The key that answers `agent.method`: the method's own, else the agent's, else `*`."""
        return next((key for key in (f"{agent}.{method}", agent, "*") if key in self.lists), None)


class _Refused(Exception):
    """A part of the file is not as it should be; becomes a ConfigError once the file's name is known."""


def _reply_list(key: str, value: Json) -> ReplyList:
    if not KEY_PATTERN.fullmatch(key):
        raise _Refused(f'{_quoted(key)} is no key; write "Agent.method", "Agent" or "*"')
    where = _quoted(key)
    if is_list(value):
        return ReplyList(_replies(where, value), repeat=False)
    if is_object(value) and "replies" in value and value.keys() <= {"replies", "repeat"}:
        return _repeating(where, value)
    return ReplyList((_reply(where, value),), repeat=True)


def _repeating(where: str, value: JsonObject) -> ReplyList:
    repeat, replies = value.get("repeat", False), value["replies"]
    if not isinstance(repeat, bool):
        raise _Refused(f'{where}: "repeat" is true or false, not {_kind(repeat)}')
    if not is_list(replies):
        raise _Refused(f'{where}: "replies" is a list of replies, not {_kind(replies)}')
    if repeat and not replies:
        raise _Refused(f"{where}: there is no last reply to repeat in an empty list")
    return ReplyList(_replies(where, replies), repeat)


def _replies(where: str, values: list[Json]) -> tuple[ScriptedReply, ...]:
    return tuple(_reply(f"{where}, reply {number}", value) for number, value in enumerate(values, start=1))


def _reply(where: str, value: Json) -> ScriptedReply:
    if isinstance(value, str):
        return ScriptedReply(value)
    if not is_object(value):
        raise _Refused(
            f"{where}: a reply is a string or an object, not {_kind(value)}; "
            f'to send {_kind(value)} as JSON write {{"reply": …}}'
        )
    if value and value.keys() <= CONTROL_KEYS:
        return _controlled(where, value)
    return ScriptedReply(_json_text(value))


def _controlled(where: str, form: JsonObject) -> ScriptedReply:
    if "retry_after" in form and "error" not in form:
        raise _Refused(f'{where}: "retry_after" stands only beside "error"')
    reply = form.get("reply", "")
    return ScriptedReply(
        text=reply if isinstance(reply, str) else _json_text(reply),
        delay=_delay(where, form["delay"]) if "delay" in form else 0.0,
        error=_error(where, form["error"]) if "error" in form else None,
        retry_after=_seconds(where, form["retry_after"]) if "retry_after" in form else None,
        tool_calls=_tool_calls(where, form["tool_calls"]) if "tool_calls" in form else (),
        usage=_usage(where, form["usage"]) if "usage" in form else None,
    )


def _delay(where: str, value: Json) -> float:
    match = DURATION_PATTERN.fullmatch(value) if isinstance(value, str) else None
    seconds = float(match[1]) * SECONDS[match[2]] if match else math.inf
    if seconds > LONGEST_WAIT:
        raise _Refused(f'{where}: "delay" is a duration such as "200ms" or "1.5s", a year at most')
    return seconds


def _error(where: str, value: Json) -> Failure:
    if value == "network" or (type(value) is int and 400 <= value <= 599):
        return value
    raise _Refused(
        f'{where}: "error" is an HTTP status from 400 to 599 or "network"; '
        'to send an object that has only this key, write {"reply": {"error": …}}'
    )


def _seconds(where: str, value: Json) -> float:
    if type(value) in (int, float) and 0 <= value <= LONGEST_WAIT:
        return float(value)
    raise _Refused(f'{where}: "retry_after" is a number of seconds, a year at most')


def _tool_calls(where: str, value: Json) -> tuple[ScriptedCall, ...]:
    if not is_list(value) or not value:
        raise _Refused(
            f'{where}: "tool_calls" is a list such as [{{"tool": "Repo_get_issue", "args": {{"number": 7}}}}]'
        )
    return tuple(_tool_call(where, call) for call in value)


def _tool_call(where: str, value: Json) -> ScriptedCall:
    _only(where, "a tool call", value, {"tool", "args"})
    tool, args = value.get("tool"), value.get("args", {})
    if not isinstance(tool, str) or not tool:
        raise _Refused(f'{where}: a tool call names its function in "tool", such as "Repo_get_issue"')
    if not isinstance(args, dict | str):
        raise _Refused(f'{where}: "args" is an object, or a string that is sent as it is, not {_kind(args)}')
    return ScriptedCall(tool, args if isinstance(args, str) else _json_text(args))


def _usage(where: str, value: Json) -> Usage:
    _only(where, '"usage"', value, {"input", "output", "cached", "reasoning"})
    for name, count in value.items():
        if type(count) is not int or not 0 <= count <= 2**53:
            raise _Refused(f'{where}: "usage" counts tokens; {_quoted(name)} is a whole number from 0')
    return Usage(**{"input": 0, "output": 0} | value)


def _only(where: str, what: str, value: Json, allowed: set[str]) -> None:
    if not is_object(value):
        raise _Refused(f"{where}: {what} is an object, not {_kind(value)}")
    unknown = [_quoted(key) for key in value if key not in allowed]
    if unknown:
        raise _Refused(f"{where}: {what} has no {', '.join(unknown)}; allowed are {', '.join(sorted(allowed))}")


def _read_json(path: Path) -> Json:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read the replies file {path}: {reason}") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}: a replies file has at most {MAX_BYTES // 2**20} MiB")
    return _decode(content, path)


def _decode(content: bytes, path: Path) -> Json:
    try:
        return json.loads(
            content.decode("utf-8-sig"), object_pairs_hook=_without_duplicates, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start + 1})") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}:{error.colno}: invalid JSON: {error.msg}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deep") from None
    except (_Refused, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from None


def _without_duplicates(pairs: Iterable[tuple[str, Json]]) -> JsonObject:
    document: JsonObject = {}
    for key, value in pairs:
        if key in document:
            raise _Refused(f"the key {_quoted(key)} stands twice in one object")
        document[key] = value
    return document


def _no_constant(name: str) -> Json:
    raise _Refused(f"{name} is no JSON value")


def _json_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _kind(value: Json) -> str:
    return _KINDS.get(type(value).__name__, "a number")
