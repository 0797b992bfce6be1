"""Tools of MCP servers: what is called, what comes back, what fails, what is cancelled (spec 5, reference 2.10).

Each kind of call is made over both transports to a server of the official SDK, which speaks the protocol of 2026-07-28,
and to one that speaks that of 2025-11-25 by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import Probing, SelfDescribing, ToolConfig
from halo_runtime.tools.mcp.limits import MAX_MESSAGE, MAX_TEXT
from halo_runtime.tools.mcp.provider import Server
from tests.fakes import mcp_server
from tests.fakes.wire import Answer, FakeService, Received, reply
from tests.tools.mcp_servers import SDK, at_address, by_command, logged, over_http, wire


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with over_http(mcp_server.server.streamable_http_app()) as root:
        yield f"{root}/mcp"


@pytest.fixture(params=["stdio", "http"])
async def server(
    request: pytest.FixtureRequest, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Server]:
    """A server of the SDK."""
    monkeypatch.setenv("MCP_LOG", str(tmp_path / "log"))
    opened = by_command(tmp_path, SDK) if request.param == "stdio" else at_address(tmp_path, address)
    yield opened
    await opened.close()


async def comes(file: Path, words: str) -> None:
    """Wait until another process has written a line."""

    def written() -> bool:
        return file.exists() and words in file.read_text()

    async with asyncio.timeout(10):
        while not written():  # noqa: ASYNC110 - nobody here tells when
            await asyncio.sleep(0.01)


async def test_tools_are_called_in_one_session(server: Server, tmp_path: Path) -> None:
    assert await server.call("add", {"a": 1, "b": 2}) == {"result": 3}
    assert await server.call("say", {"text": "hello\nthere"}) == "hello\nthere"
    assert await server.call("wipe", {}) == {"gone": 3}
    assert (await server.call("picture", {}))["attachments"] == [
        {"type": "image", "mimeType": "image/png", "bytes": 8}
    ]  # fmt: skip
    with pytest.raises(ToolError, match=r"Demo\.fail: the tool failed: .*out of paper"):
        await server.call("fail", {"why": "out of paper"})
    assert (tmp_path / "log").read_text().count("started") <= 1


async def test_a_call_that_is_cancelled_stops_in_the_server_and_others_go_on(server: Server, tmp_path: Path) -> None:
    await server.methods()
    waiting = asyncio.create_task(server.call("wait", {}))
    await comes(tmp_path / "log", "waiting")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await comes(tmp_path / "log", "stopped")
    assert await server.call("say", {"text": "still there"}) == "still there"


async def test_what_there_is_and_who_is_there_are_told(server: Server) -> None:
    assert isinstance(server, Probing)
    assert isinstance(server, SelfDescribing)
    methods = {method.name: method for method in await server.methods()}
    assert methods["say"].schema["properties"]["text"]["type"] == "string"
    assert methods["say"].doc == "(the server says) Say a text."
    # That it only reads is a stranger's word, and counts for nothing; that it destroys counts.
    assert (methods["add"].effect, methods["wipe"].effect) == ("write", "destructive")
    assert (await server.probe()).startswith("demo 1.0 (MCP 2026-07-28), ")


async def test_the_older_protocol_is_spoken_too(tmp_path: Path) -> None:
    async with wire(tmp_path) as server:
        assert await server.call("echo", {"text": "hi"}) == "hi"
        assert await server.probe() == "wire 1 (MCP 2025-11-25), 1 tool"
    methods = [message["method"] for message in logged(tmp_path)]
    assert methods == ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]


async def test_the_older_protocol_is_told_of_a_call_that_is_cancelled(tmp_path: Path) -> None:
    async with wire(tmp_path, "silent") as server:
        await server.methods()
        waiting = asyncio.create_task(server.call("echo", {"text": "hi"}))
        await comes(tmp_path / "log", "tools/call")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await comes(tmp_path / "log", "notifications/cancelled")
    call, cancelled = logged(tmp_path)[-2:]
    assert cancelled["params"]["requestId"] == call["id"]


async def test_a_call_without_an_answer_ends_in_time_and_the_server_is_told(tmp_path: Path) -> None:
    async with wire(tmp_path, "silent", timeout="3s") as server:
        with pytest.raises(ToolError, match=r"Demo\.echo: the server gave no answer within 3 s; allow more with"):
            await server.call("echo", {})
        await comes(tmp_path / "log", "notifications/cancelled")


async def test_an_error_of_the_protocol_is_told_with_its_code(tmp_path: Path) -> None:
    async with wire(tmp_path, "refuses", env={"KEY": "k"}) as server:
        with pytest.raises(ToolError, match=r"the server refused: no such thing: k \(code -32602\)"):
            await server.call("echo", {})


@pytest.mark.parametrize("name", ["notes.list/all-of-them", "notes_list_all_of_them", "notesListAllOfThem"])
async def test_every_spelling_of_a_name_is_understood(tmp_path: Path, address: str, name: str) -> None:
    server = at_address(tmp_path, address)
    assert await server.call(name, {}) == "one\ntwo"
    await server.close()


async def test_a_name_that_could_be_two_tools_is_neither(tmp_path: Path) -> None:
    async with wire(tmp_path, "clash") as server:
        with pytest.raises(ToolError, match=r"echo_it could be echo-it or echo\.it; write the one that is meant"):
            await server.call("echo_it", {})
        assert await server.call("echo-it", {"text": "x"}) == "x"


async def test_a_tool_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    async with wire(tmp_path) as server:
        with pytest.raises(ToolError, match=r"the server has no tool ecko; did you mean echo\?; it has echo"):
            await server.call("ecko", {})


async def test_arguments_are_checked_before_anything_is_sent(tmp_path: Path) -> None:
    async with wire(tmp_path) as server:
        with pytest.raises(ToolError, match=r"Demo\.echo: the arguments do not fit: text: 5 is not of type 'string'"):
            await server.call("echo", {"text": 5})
    assert "tools/call" not in [message["method"] for message in logged(tmp_path)]


async def test_only_allowed_tools_are_there(tmp_path: Path, address: str) -> None:
    server = at_address(tmp_path, address, tools=["say", "notes_list_all_of_them"])
    assert [method.name for method in await server.methods()] == ["say", "notes.list/all-of-them"]
    with pytest.raises(ToolError, match="the server has no tool wipe"):
        await server.call("wipe", {})
    await server.close()


async def test_an_allowed_tool_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with wire(tmp_path, tools=["sing"]) as server:
        with pytest.raises(ToolError, match="the server has no tool sing; it has echo"):
            await server.call("echo", {})


async def test_a_long_text_is_cut_where_one_sees_it(tmp_path: Path, address: str) -> None:
    server = at_address(tmp_path, address)
    text = await server.call("much", {"characters": MAX_TEXT + 1_000})
    assert text.startswith("x" * MAX_TEXT + "\n[… 1,000 of 1,001,000 characters left out")
    await server.close()


async def test_calls_are_made_side_by_side(tmp_path: Path, address: str) -> None:
    server = at_address(tmp_path, address)
    said = await asyncio.gather(*(server.call("say", {"text": str(n)}) for n in range(20)))
    assert said == [str(n) for n in range(20)]
    await server.close()


async def test_a_server_that_ended_is_started_again_for_the_next_call(tmp_path: Path) -> None:
    server = by_command(tmp_path, SDK)
    with pytest.raises(ToolError, match=r"the server broke the connection; it ended with exit code 3; .*bad luck"):
        await server.call("die", {"words": "bad luck"})
    assert await server.call("say", {"text": "back"}) == "back"
    assert (tmp_path / "log").read_text().count("started") == 2
    await server.close()


def test_two_loops_one_after_the_other_have_a_connection_each(tmp_path: Path) -> None:
    for _ in range(2):

        async def ask() -> Any:
            async with wire(tmp_path) as server:
                return await server.call("echo", {"text": "x"})

        assert asyncio.run(ask()) == "x"


async def test_closing_twice_and_before_the_first_use_does_nothing(tmp_path: Path) -> None:
    async with wire(tmp_path) as server:
        await server.close()
    await server.close()
    assert not (tmp_path / "log").exists()


async def test_a_server_that_nobody_calls_is_not_started(tmp_path: Path) -> None:
    by_command(tmp_path, SDK)
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"server": "no-such-command"}, "the command no-such-command is not installed, or not on the PATH"),
        ({"server": "npx -y server"}, "give what follows the command as args: "),
        ({"server": "./server"}, "is not installed"),
        ({"server": "sh", "headers": ["a: b"]}, "headers: does not go with a command"),
        ({"server": "sh", "allowHosts": ["localhost"]}, "allowHosts: does not go with a command"),
        ({"server": "https://x.example", "args": ["a"]}, "args: does not go with an address"),
        ({"server": "https://x.example", "env": ["A=b"]}, "env: does not go with an address"),
        ({"server": "https://u:p@x.example"}, "holds a user or a password"),
        ({"server": "https://x.example", "headers": ["host: a"]}, "the header host is for the connection"),
        ({"server": "sh", "args": ["\0"]}, "NUL"),
    ],
)
def test_settings_that_cannot_work_are_told_first(tmp_path: Path, settings: dict[str, Any], problem: str) -> None:
    config = ToolConfig("Demo", "MCP", settings, tmp_path, {"PATH": "/usr/bin:/bin"})
    with pytest.raises(ConfigError, match=problem):
        tool_factory("MCP")(config)


# --- sessions over HTTP -----------------------------------------------------------------------------------------------


class Sessions(FakeService):
    """A server of 2025-11-25 over HTTP that knows one session at a time; `lies`: it says that it knows none."""

    json_only = False
    session = ""
    lies = False
    odd: Answer | None = None

    def usual(self, request: Received) -> Answer:
        if request.method != "POST":
            return Answer(405)
        number, method = request.body.get("id"), request.body["method"]
        if number is None:
            return Answer(202)
        if method == "initialize":
            self.session = f"s{self.made('initialize')}"
            about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            info = {"serverInfo": {"name": "sessions", "version": "1"}}
            return self.told(number, {**about, **info}, {"mcp-session-id": self.session})
        if method == "server/discover":
            return reply({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}})
        if request.headers.get("mcp-session-id") != self.session:
            return Answer(404, b"no such session", content_type="text/plain")
        if method == "tools/list":
            return self.told(number, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        if self.odd is not None:
            return self.odd
        if self.lies:
            error = {"code": -32600, "message": "Session terminated"}
            return reply({"jsonrpc": "2.0", "id": number, "error": error})
        return self.told(number, {"content": [{"type": "text", "text": self.session}]})

    def told(self, number: int, result: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
        return reply({"jsonrpc": "2.0", "id": number, "result": result}, headers=headers or {})

    def made(self, method: str) -> int:
        """How often something was asked."""
        return sum(1 for request in self.requests if request.body and request.body.get("method") == method)


@pytest.fixture
async def sessions() -> AsyncIterator[Sessions]:
    async with Sessions() as sessions:
        yield sessions


async def test_a_session_that_the_server_has_forgotten_is_begun_anew_and_ended_at_the_end(
    tmp_path: Path, sessions: Sessions
) -> None:
    server = at_address(tmp_path, f"{sessions.address}/mcp", headers=["x-team: core"])
    assert await server.call("echo", {}) == "s1"
    sessions.session = "forgotten"
    assert await server.call("echo", {}) == "s2"
    await server.close()
    assert sessions.requests[-1].method == "DELETE"
    assert (sessions.made("initialize"), sessions.made("tools/call")) == (2, 3)
    assert {request.headers["x-team"] for request in sessions.requests} == {"core"}


async def test_a_server_that_only_says_so_is_not_asked_twice(tmp_path: Path, sessions: Sessions) -> None:
    sessions.lies = True
    server = at_address(tmp_path, f"{sessions.address}/mcp")
    with pytest.raises(ToolError, match=r"the server refused: Session terminated \(code -32600\)"):
        await server.call("echo", {})
    await server.close()
    assert sessions.made("tools/call") == 1


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (b"event: message\ndata: {", "the server broke off its answer: SSE stream ended without a response"),
        (b"data: " + b"x" * (MAX_MESSAGE + 1) + b"\n\n", "the server broke off its answer: SSE stream failed: "),
    ],
)
async def test_a_stream_that_is_cut_or_too_large_fails_its_call_and_no_other(
    tmp_path: Path, sessions: Sessions, event: bytes, problem: str
) -> None:
    server = at_address(tmp_path, f"{sessions.address}/mcp")
    await server.methods()
    sessions.odd = Answer(200, event, content_type="text/event-stream")
    with pytest.raises(ToolError, match=problem):
        await server.call("echo", {})
    sessions.odd = None
    assert await server.call("echo", {}) == "s1"
    await server.close()
    assert sessions.made("initialize") == 1
