"""The scripted model: answers from a replies file, so that a program runs without any service (spec 2.9)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta, ToolCall
from halo_runtime.models.retry import is_retryable
from halo_runtime.models.script import NO_USAGE, ReplyList, Script, ScriptedReply

Sleep: TypeAlias = Callable[[float], Awaitable[None]]

PIECES_PER_SECOND = 20
"""How often a reply with a delay brings more of its text, at most."""

_WORD = re.compile(r"\s*\S+\s*|\s+")

MODEL_NAME = "scripted"
"""What a reply gives as the model that answered."""


class ScriptedModel:
    """Answers every request from `script`, each key's replies in turn; a ModelProvider.

    The place in the lists belongs to this object: a new one starts at the first replies again. A reply's `cursor`,
    and that of a ModelError where a reply was the failure, is `{"key": …, "index": …}` with the index from 0.
    """

    def __init__(self, script: Script | str | Path | JsonObject, *, sleep: Sleep = asyncio.sleep) -> None:
        self.script = script if isinstance(script, Script) else Script.load(script)
        self._sleep = sleep
        self._places = {key: _Place(replies) for key, replies in self.script.lists.items()}

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Answer `request`. ModelError when the script says so, has no reply for the call, or has run out of them."""
        # Nothing is awaited before the reply is taken: calls that start together take replies in the order they start.
        cursor, reply = self._take(request)
        if reply.delay:
            await self._pass_time(reply, on_delta)
        if reply.error is not None:
            raise _failure(reply, cursor)
        return _model_reply(request, reply, cursor)

    def missing(self) -> str | None:
        """Nothing is: the replies were checked when they were read."""
        return None

    def restore(self, cursors: Sequence[Json]) -> None:
        """Mark replies that a journal already holds as used; cursors of other scripts' keys are passed over."""
        for cursor in cursors:
            if is_object(cursor) and (place := self._places.get(cursor.get("key", ""))):
                place.use(cursor["index"])

    async def close(self) -> None:
        """Nothing is held."""

    async def _pass_time(self, reply: ScriptedReply, on_delta: OnDelta | None) -> None:
        """Let the delay of a reply pass, its text coming bit by bit meanwhile, as a service's does."""
        pieces = [""] if on_delta is None or reply.error is not None else _pieces(reply.text, reply.delay)
        for piece in pieces:
            await self._sleep(reply.delay / len(pieces))
            if on_delta is not None and piece:
                on_delta(piece)

    def _take(self, request: ModelRequest) -> tuple[JsonObject, ScriptedReply]:
        key = self.script.find(request.agent, request.method)
        if key is None:
            raise ModelError(_no_key(self.script, request))
        place = self._places[key]
        index = place.next()
        if index is None:
            raise ModelError(_ran_out(self.script, key, place.replies))
        place.use(index)
        return {"key": key, "index": index}, place.replies.replies[index]


class _Place:
    """Which replies of one list are used.

    A set and not a count: of calls that ran side by side a journal may hold a later one and not an earlier one.
    """

    def __init__(self, replies: ReplyList) -> None:
        self.replies = replies
        self._used: set[int] = set()
        self._first_unused = 0

    def next(self) -> int | None:
        """The index of the reply for the next call; None when they have run out."""
        last = len(self.replies.replies) - 1
        if self._first_unused <= last:
            return self._first_unused
        return last if self.replies.repeat else None

    def use(self, index: int) -> None:
        """Mark one reply as used."""
        self._used.add(index)
        while self._first_unused in self._used:
            self._first_unused += 1


def _pieces(text: str, seconds: float) -> list[str]:
    """A text in pieces of whole words, as many as come in some seconds; at least one."""
    words = _WORD.findall(text)
    count = max(1, min(len(words), int(seconds * PIECES_PER_SECOND)))
    borders = [len(words) * number // count for number in range(count + 1)]
    return ["".join(words[start:end]) for start, end in pairwise(borders)]


def _model_reply(request: ModelRequest, reply: ScriptedReply, cursor: JsonObject) -> ModelReply:
    return ModelReply(
        text=reply.text,
        tool_calls=_tool_calls(request, reply),
        stop="tool" if reply.tool_calls else "end",
        usage=reply.usage or NO_USAGE,
        model_used=MODEL_NAME,
        cost=None if reply.usage else Decimal(0),
        cursor=cursor,
    )


def _tool_calls(request: ModelRequest, reply: ScriptedReply) -> tuple[ToolCall, ...]:
    """The calls with ids that are the same in every run, and distinct within one transcript."""
    turn = len(request.messages)
    return tuple(
        ToolCall(id=f"call_{turn}_{number}", name=call.name, arguments=call.arguments)
        for number, call in enumerate(reply.tool_calls, start=1)
    )


def _failure(reply: ScriptedReply, cursor: JsonObject) -> ModelError:
    status = reply.error if isinstance(reply.error, int) else None
    what = "the network fails" if status is None else f"status {status}"
    error = ModelError(
        f'the replies say so: {what} (key "{cursor["key"]}", reply {cursor["index"] + 1})',
        retryable=status is None or is_retryable(status),
        status=status,
        retry_after=reply.retry_after,
    )
    error.cursor = cursor
    return error


def _no_key(script: Script, request: ModelRequest) -> str:
    call = f"{request.agent}.{request.method}"
    return f'{script.name} has no reply for {call}; add one under "{call}", "{request.agent}" or "*"'


def _ran_out(script: Script, key: str, replies: ReplyList) -> str:
    count = len(replies.replies)
    what = f'the 1 reply of "{key}" is' if count == 1 else f'the {count} replies of "{key}" are'
    return (
        f'{script.name}: {what} used up; add more, or write {{"replies": […], "repeat": true}} to repeat the last one'
    )
