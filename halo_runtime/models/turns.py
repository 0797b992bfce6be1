"""A conversation in the order that services insist on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from halo_runtime.models.base import Message

UNFINISHED: Final = "(this call was not finished)"
"""The result of a call that has none: services refuse a conversation with an open call for ever."""


def answered(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with an answer right behind each call that has none, and without answers to no call.

    A conversation that was broken off in the middle of its calls (killed, cancelled, cut by a rule) can go on so.
    """
    return tuple(_answered(messages))


def _answered(messages: Iterable[Message]) -> Iterator[Message]:
    waiting: dict[str, None] = {}
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id in waiting:
                del waiting[message.tool_call_id]
                yield message
            continue
        yield from map(_unfinished, waiting)
        waiting = dict.fromkeys(call.id for call in message.tool_calls)
        yield message
    yield from map(_unfinished, waiting)


def _unfinished(id_: str) -> Message:
    return Message("tool", UNFINISHED, tool_call_id=id_, is_error=True)
