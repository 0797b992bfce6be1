"""What both sandboxes of `Code` share: how a program of theirs ended, and how much it may use."""

from __future__ import annotations

import json
from typing import Final, Protocol

from halo_lang.records import record
from halo_runtime.convert import ConversionError, to_json
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.prompts import cut

MAX_MESSAGE: Final = 2_000
"""Characters of an exception's message."""
MAX_RESULT: Final = 1_000_000
"""Characters of a result's JSON."""
ADVICE: Final = "end with text, numbers, lists or dicts"


@record
class Limits:
    """`seconds` by the clock, `memory` in bytes."""

    seconds: float
    memory: int


@record
class Problem:
    """Why a program did not end well. `type` is an exception's name, `line` counts from 1 in the program's text."""

    type: str
    message: str
    line: int | None = None


@record
class Ended:
    """How a program ended: the value of its last line, what it printed, and why it stopped before."""

    result: Json
    printed: str
    problem: Problem | None = None


class Sandbox(Protocol):
    """Runs programs, each from nothing. A program that fails has Ended; where none can be run it is ToolError."""

    async def run(self, code: str, inputs: JsonObject) -> Ended: ...
    async def close(self) -> None: ...


def out_of_time(seconds: float) -> Problem:
    """The program took too long."""
    return Problem("TimeoutError", f"the program took longer than {seconds:g}s")


def checked(value: object, printed: str, limit: int = MAX_RESULT) -> Ended:
    """The end of a program whose last line has this value.

    A text of more than `limit` characters is cut with a mark; of anything else whose JSON is longer, that text is. What
    is no number in JSON (NaN) is left as it is: whoever takes the result makes null of it, with a warning.
    """
    try:
        result = to_json(value, lambda _: None, finite=False)
    except ConversionError as error:
        return Ended(None, printed, Problem("TypeError", f"{error}; {ADVICE}"))
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return Ended(result if len(text) <= limit else cut(text, limit), printed)
