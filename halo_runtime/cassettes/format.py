"""The file format of cassettes: a header line, then a line of JSON for each exchange; see docs/reference/cassettes.md.

Everything here is a pure function or a value. A last line that a crash has cut off is passed over; whatever else is
not as it should be is refused with its line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import InvalidOperation
from typing import Final, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.engine.journal import error_from_record
from halo_runtime.errors import ConfigError, RunError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import ModelReply
from halo_runtime.values import digest
from halo_runtime.version import __version__

Kind: TypeAlias = Literal["model", "tool"]
Outcome: TypeAlias = Literal["done", "failed", "cancelled"]

FORMAT: Final = 1
MARK: Final = "halo-cassette"
"""The key of the header that holds the format's number, and by which a file is known for a cassette."""

ERRORS: Final = ("ModelError", "ToolError", "TimeoutExceeded")
"""The failures of exchanges; all others come of the program and its policies, and come again."""

_TYPES: Final[Mapping[str, type]] = {"run": str, "seq": int, "path": str, "kind": str, "request": dict, "outcome": str}
_ERROR_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "message": (str,),
    "retryable": (bool,),
    "status": (int, type(None)),
    "retry_after": (int, float, type(None)),
    "detail": (str, type(None)),
    "cursor": (type(None),),
}


@record
class Exchange:
    """One request that left the machine, and what came back.

    `run` is the recorded run's id, `path` the structural path of the effect there and `seq` the place in the order in
    which exchanges ended. `request` is what was asked (see `identity`), `result` what the effect's journal record
    holds: the result, the error's JSON, or null for an exchange that was broken off.
    """

    run: str
    seq: int
    path: str
    kind: Kind
    request: JsonObject
    outcome: Outcome
    result: Json

    @property
    def name(self) -> str:
        """Whom the request went to: `Agent.method`, `Tool.method`."""
        return name_of(self.kind, self.request)

    def line(self) -> bytes:
        """The exchange as a line of a file."""
        fields = ("run", "seq", "path", "kind", "request", "outcome", "result")
        document = {field: getattr(self, field) for field in fields}
        try:
            return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can hold
            return json.dumps(document, separators=(",", ":")).encode() + b"\n"


@record
class Entry:
    """An exchange as it stands in a file, read in full when it is needed: `number` is its line, `key` what it is asked
    by. `path` and `outcome` are the exchange's."""

    number: int
    key: str
    run: str
    seq: int
    path: str
    outcome: Outcome
    name: str
    line: bytes

    def exchange(self) -> Exchange:
        """All of it."""
        return Exchange(**json.loads(self.line))


@record
class Contents:
    """What a cassette holds. `sound` is the number of bytes up to which it is whole; behind them is a torn line."""

    entries: tuple[Entry, ...]
    sound: int

    def current(self) -> list[Entry]:
        """The entries in force, in the order in which the exchanges ended.

        Of two at one path of a run the later counts: the run was killed before its journal had the first.
        """
        latest = {(entry.run, entry.path): entry for entry in self.entries}
        return sorted(latest.values(), key=lambda entry: entry.seq)


def header() -> bytes:
    """The first line of a file."""
    return json.dumps({MARK: FORMAT, "halo": __version__}).encode() + b"\n"


def identity(kind: Kind, request: JsonObject) -> str:
    """What an exchange is known by, as a digest: everything that was asked and of whom."""
    return digest({"kind": kind, "request": request})


def name_of(kind: Kind, request: JsonObject) -> str:
    """Whom a request goes to."""
    return f"{request.get('agent' if kind == 'model' else 'tool')}.{request.get('method')}"


def is_cassette(content: bytes) -> bool:
    """Whether a file's content begins as a cassette of any format does."""
    try:
        first = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return is_object(first) and MARK in first


def read(content: bytes, name: str) -> Contents:
    """What a file holds that messages call `name`. ConfigError names the line that is not as it should be."""
    _check_header(content, name)
    entries: list[Entry] = []
    start = content.index(b"\n") + 1 if b"\n" in content else len(content)
    number = 2
    while start < len(content):
        end = content.find(b"\n", start)
        line = content[start:] if end < 0 else content[start : end + 1]
        if line.strip():
            try:
                entries.append(_entry(line, number))
            except _Flaw as flaw:
                if end < 0:  # a crash came in the middle of it
                    break
                raise ConfigError(f"{name}:{number}: {flaw}; record the run again, or take the line out") from None
        start += len(line)
        number += 1
    return Contents(tuple(entries), start)


class _Flaw(Exception):
    """A line is not as it should be; becomes a ConfigError once its file is known."""


def _check_header(content: bytes, name: str) -> None:
    if not content.strip():
        raise ConfigError(f"{name} is empty; record a run into it: --record {name}")
    if not is_cassette(content):
        raise ConfigError(f'{name} is no cassette: its first line is not {{"{MARK}": {FORMAT}, …}}')
    first: JsonObject = json.loads(content.partition(b"\n")[0])
    version = first[MARK]
    if type(version) is int and version > FORMAT:
        made = f", made by halo {first['halo']}" if isinstance(first.get("halo"), str) else ""
        raise ConfigError(f"{name} has format {version}{made}; this halo reads format {FORMAT}: a newer one is needed")
    if type(version) is not int or version < 1:
        raise ConfigError(f"{name}:1: {MARK} is the number of a format, such as {FORMAT}")


def _entry(line: bytes, number: int) -> Entry:
    try:
        document: Json = json.loads(line.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _Flaw("it is no JSON") from None
    if not is_object(document) or document.keys() != {*_TYPES, "result"}:
        raise _Flaw(f"an exchange has the fields {', '.join([*_TYPES, 'result'])} and no others")
    for field, expected in _TYPES.items():
        if type(document[field]) is not expected:
            raise _Flaw(f"the field {field} is not as it should be")
    kind, request = document["kind"], document["request"]
    if kind not in ("model", "tool"):
        raise _Flaw('the kind of an exchange is "model" or "tool"')
    _check_result(kind, document["outcome"], document["result"])
    try:
        key = identity(kind, request)
    except RunError as error:
        raise _Flaw(error.message) from None
    return Entry(
        number=number,
        key=key,
        run=document["run"],
        seq=document["seq"],
        path=document["path"],
        outcome=document["outcome"],
        name=name_of(kind, request),
        line=line,
    )


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def _check_result(kind: str, outcome: str, result: Json) -> None:
    if outcome == "cancelled" and result is None:
        return
    if outcome == "failed" and is_object(result) and _is_error(result):
        return
    if outcome == "done" and is_object(result) and (_is_reply(result) if kind == "model" else _is_tool_result(result)):
        return
    raise _Flaw(f"the outcome or the result of a {kind} exchange is not as it should be")


def _is_error(result: JsonObject) -> bool:
    if result.get("type") not in ERRORS or not isinstance(result.get("message"), str):
        return False
    fields = () if result["type"] == "TimeoutExceeded" else _ERROR_TYPES
    if not all(field in result and isinstance(result[field], _ERROR_TYPES[field]) for field in fields):
        return False
    try:
        error_from_record(result)
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return True


def _is_reply(result: JsonObject) -> bool:
    try:
        reply = ModelReply.from_json(result["reply"])
        texts: list[object] = [reply.text, reply.stop]
        texts += [text for call in reply.tool_calls for text in (call.id, call.name, call.arguments)]
    except (AttributeError, KeyError, TypeError, ValueError, InvalidOperation):
        return False
    texts.append(result.get("priced_as", ""))
    return all(isinstance(text, str) for text in texts) and type(result.get("duration_ms", 0.0)) in (int, float)


def _is_tool_result(result: JsonObject) -> bool:
    warnings: Json = result.get("warnings")
    return "value" in result and is_list(warnings) and all(isinstance(text, str) for text in warnings)
