"""The server as a process: stdin and stdout, the thread that reads, and the loop that answers."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import chain
from threading import Thread
from typing import TypeAlias

from halo_lang.server.answers import register
from halo_lang.server.knowledge import Knowledge
from halo_lang.server.session import Session
from halo_lang.server.transport import Incoming, Malformed, Outgoing

_AHEAD = 64
"""Messages that are read ahead of the answers."""

_Queue: TypeAlias = asyncio.Queue[bytes | Malformed | None]


def serve(version: str, knowledge: Knowledge) -> int:
    """Serve the client at stdin and stdout until it says `exit` or goes; gives the process's exit code.

    Stdout belongs to the protocol: whatever else is printed meanwhile goes to stderr.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="halo lsp: %(levelname)s: %(message)s")
    # It logs whole documents; what matters we log ourselves.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    if sys.stdin is None or sys.stdout is None:
        return 1
    output = os.dup(sys.stdout.fileno())
    os.dup2(2, sys.stdout.fileno())
    return asyncio.run(_converse(version, knowledge, sys.stdin.fileno(), output))


async def _converse(version: str, knowledge: Knowledge, incoming: int, outgoing: int) -> int:
    session = Session(version, knowledge)
    register(session)
    session.protocol.set_writer(Outgoing(outgoing))
    messages: _Queue = asyncio.Queue(_AHEAD)
    Thread(target=_read, args=(incoming, messages, asyncio.get_running_loop()), daemon=True).start()
    while (message := await messages.get()) is not None:
        try:
            session.protocol.receive(message)
        except SystemExit as end:
            return int(end.code or 0)
        # A request is a task from here on. It takes its first step, which notes the text that it is about, before
        # the next message can change that text.
        await asyncio.sleep(0)
    return 1


def _read(descriptor: int, messages: _Queue, loop: asyncio.AbstractEventLoop) -> None:
    """Hand on what arrives, never further ahead than the queue is long; None at the end."""
    # The loop may end while this thread waits for it.
    with suppress(CancelledError, RuntimeError):
        for message in chain(Incoming(descriptor), (None,)):
            asyncio.run_coroutine_threadsafe(messages.put(message), loop).result()
