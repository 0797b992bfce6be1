"""Streams of many small pieces are taken in few goes, and nothing of them is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpcore
import pytest

from halo_runtime.models.sockets import MANY, Network

PIECES = 400


@asynccontextmanager
async def streaming(pieces: int) -> AsyncGenerator[httpcore.AsyncNetworkStream]:
    """A connection to a server that sends so many pieces of a byte, each on its own, and then closes."""

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(pieces):
            writer.write(b"%d" % (number % 10))
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(send, "127.0.0.1", 0)
    stream = await Network().connect_tcp("127.0.0.1", server.sockets[0].getsockname()[1])
    async with server:
        yield stream
        await stream.aclose()


async def reads(stream: httpcore.AsyncNetworkStream) -> list[bytes]:
    found: list[bytes] = []
    while data := await stream.read(65536):
        found.append(data)
    return found


async def test_pieces_of_a_long_stream_are_collected_and_the_first_ones_taken_as_they_come() -> None:
    async with streaming(PIECES) as stream:
        found = await reads(stream)
    assert b"".join(found) == b"0123456789" * (PIECES // 10)
    assert len(found) < MANY + 20


async def test_a_short_stream_is_never_held_up() -> None:
    async with streaming(10) as stream:
        async with asyncio.timeout(10):
            found = await reads(stream)
    assert b"".join(found) == b"0123456789"


async def test_who_stops_reading_meanwhile_finds_the_rest_later() -> None:
    async with streaming(PIECES) as stream:
        found = [await stream.read(1) for _ in range(MANY)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await stream.read(1)
        found += await reads(stream)
    assert b"".join(found) == b"0123456789" * (PIECES // 10)
