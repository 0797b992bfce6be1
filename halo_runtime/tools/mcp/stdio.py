"""Servers that are started as a command and spoken to over stdin and stdout (MCP, transport stdio).

Beside the protocol's own rules this holds what a server cannot be trusted with: lines that are no messages are passed
over, a line has a greatest length, what is written to stderr is kept to its end only, and no process is left behind.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from halo_runtime.errors import ToolError
from halo_runtime.tools.mcp.limits import EXIT_SECONDS, MAX_MESSAGE
from halo_runtime.tools.shell.guard import GUARD, MARK
from halo_runtime.tools.shell.processes import GRACE_SECONDS, end_all, ends_within, whatever_happens
from halo_runtime.tools.web.client import clean

_CHUNK: Final = 1 << 16
_TAIL: Final = 2_000
"""Bytes of stderr that are kept."""
_LINES: Final = 5
_SETTLE_SECONDS: Final = 2.0
"""How long is waited for the rest of what a server says and writes when it ends."""


class CommandLink:
    """One server's command; each `streams` starts a process of its own, with only the variables in `env`."""

    def __init__(self, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._argv = argv
        self._folder = folder
        self._env = env
        self._tail = bytearray()
        self._passed_over = 0
        self._example = ""
        self._failure = ""
        self._code: int | None = None
        self._is_ending = False
        self._quiet = asyncio.Event()

    def forgot_session(self) -> bool:
        """Never: the process is the session."""
        return False

    async def trouble(self) -> str:
        """What is known of the server beside an error, in words; what a dying one says is waited for a moment."""
        if self._is_ending:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SETTLE_SECONDS):
                    await self._quiet.wait()
        told = [self._failure] if self._failure else []
        if self._code is not None:
            told.append(f"it ended with exit code {self._code}")
        if self._passed_over:
            lines = "a line" if self._passed_over == 1 else f"{self._passed_over} lines"
            told.append(f"it wrote {lines} to stdout that are no messages, such as {clean(self._example)!r}")
        last = self._tail.decode("utf-8", "replace").strip().splitlines()[-_LINES:]
        if last:
            told.append(f"its stderr ends: {clean(' | '.join(line.strip() for line in last))}")
        return "; ".join(told)

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[TransportStreams]:
        """The two ends of a running server. Raises ToolError where it cannot be started."""
        mark = secrets.token_hex(16)
        pipes = _Pipes()
        process: asyncio.subprocess.Process | None = None
        with GUARD.over(mark) as runs:
            try:
                process = await self._start(pipes, mark)
                runs(process.pid)
                async with self._spoken(pipes, process) as both:
                    yield both
            finally:
                try:
                    pipes.close()
                finally:
                    await whatever_happens(_end(mark, process))
                    pipes.abandon()

    async def _start(self, pipes: _Pipes, mark: str) -> asyncio.subprocess.Process:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv, stdin=pipes.stdin, stdout=pipes.stdout, stderr=pipes.stderr,
                cwd=self._folder, env={**self._env, MARK: mark}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ToolError(f"{self._argv[0]} cannot be started ({error.strerror})") from None
        pipes.started()
        return process

    @asynccontextmanager
    async def _spoken(
        self, pipes: _Pipes, process: asyncio.subprocess.Process
    ) -> AsyncGenerator[TransportStreams]:  # fmt: skip
        out, errors = await pipes.reader(pipes.from_stdout), await pipes.reader(pipes.from_stderr)
        writer = await pipes.writer()
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

        async def read() -> None:
            async with incoming:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
                    async for message in self._messages(out):
                        await incoming.send(message)
                self._is_ending = not self._failure

        async def keep_tail() -> None:
            with suppress(ConnectionError):
                while piece := await errors.read(_CHUNK):
                    self._tail = (self._tail + piece)[-_TAIL:]
            await ends_within(process, _SETTLE_SECONDS)
            self._code = process.returncode
            self._quiet.set()

        async def write() -> None:
            async with outgoing:
                with suppress(ConnectionError):
                    async for message in outgoing:
                        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        writer.write(text.encode() + b"\n")
                        await writer.drain()
            writer.close()

        async with asyncio.TaskGroup() as tasks:
            reading, telling, writing = (tasks.create_task(work()) for work in (read, keep_tail, write))
            try:
                yield received, sent
            finally:
                received.close()
                sent.close()
                # What was accepted is still written, and the last words of a server that has died are still read.
                await asyncio.wait([writing, *([telling] if self._is_ending else [])], timeout=_SETTLE_SECONDS)
                for task in (reading, telling, writing):
                    task.cancel()

    async def _messages(self, out: asyncio.StreamReader) -> AsyncIterator[SessionMessage]:
        async for line in self._whole_lines(out):
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                self._passed_over += 1
                self._example = self._example or line[:200].decode("utf-8", "replace")
                continue
            yield SessionMessage(message)

    async def _whole_lines(self, out: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """Lines that are not empty, to the end of the stream or to a line that is too long to be read."""
        rest = bytearray()
        while piece := await out.read(_CHUNK):
            *lines, last = piece.split(b"\n")
            for line in lines:
                whole = bytes(rest + line)
                rest.clear()
                if whole.strip():
                    yield whole
            rest += last
            if len(rest) > MAX_MESSAGE:
                self._failure = f"it sent a message of over {MAX_MESSAGE >> 20} MiB; ask it for less at once"
                return


class _Pipes:
    """The three pipes of a process, both ends of each.

    Not asyncio's: a process that got hold of one of those could keep it waiting for ever.
    """

    def __init__(self) -> None:
        self.stdin, self._to_stdin = os.pipe()
        self.from_stdout, self.stdout = os.pipe()
        self.from_stderr, self.stderr = os.pipe()
        self._unused = {self._to_stdin, self.from_stdout, self.from_stderr}
        self._theirs = [self.stdin, self.stdout, self.stderr]
        self._writer: asyncio.StreamWriter | None = None
        self._readers: list[asyncio.ReadTransport] = []

    def started(self) -> None:
        """The process has its ends; here they are closed, so that the pipes end with it."""
        while self._theirs:
            os.close(self._theirs.pop())

    async def reader(self, end: int) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._file(end, "rb"))
        self._readers.append(transport)
        return reader

    async def writer(self) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), self._file(self._to_stdin, "wb")
        )
        self._writer = asyncio.StreamWriter(transport, protocol, None, loop)
        return self._writer

    def close(self) -> None:
        """End the server's stdin, which tells it to end."""
        self.started()
        if self._writer is not None and not self._writer.transport.is_closing():
            self._writer.transport.abort()

    def abandon(self) -> None:
        """Close the rest."""
        for transport in self._readers:
            transport.close()
        while self._unused:
            os.close(self._unused.pop())

    def _file(self, end: int, mode: str) -> object:
        self._unused.discard(end)
        return os.fdopen(end, mode, 0)


async def _end(mark: str, process: asyncio.subprocess.Process | None) -> None:
    """Give a server whose stdin has ended a moment, then end all that is left of it."""
    if process is not None:
        await ends_within(process, EXIT_SECONDS)
    await end_all(mark, process, GRACE_SECONDS)
