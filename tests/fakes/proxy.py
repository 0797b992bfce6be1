"""A proxy on loopback that opens tunnels, all to one port of this machine, whatever host is asked for.

async with FakeProxy(to=server.port) as proxy:
    proxy.asked[0]  # "models.test:443"
"""

from __future__ import annotations

import asyncio
from typing import Self


class FakeProxy:
    """`status`: what CONNECT is answered; a tunnel is opened for 200 alone. `credentials` came with each request."""

    def __init__(self, to: int, status: str = "200 OK") -> None:
        self.asked: list[str] = []
        self.credentials: list[str | None] = []
        self._to = to
        self._status = status
        self._busy: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        await self._server.wait_closed()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        try:
            line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
            self.asked.append(line.split(" ")[1])
            self.credentials.append(headers.get("proxy-authorization"))
            writer.write(f"HTTP/1.1 {self._status}\r\n\r\n".encode())
            if self._status.startswith("200"):
                there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._to)
                await asyncio.gather(_pass(reader, there_writer), _pass(there_reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._busy.discard(task)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    finally:
        writer.close()
