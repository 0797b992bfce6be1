"""REST, GET and POST against a server on loopback: what is sent, what comes back, and what goes wrong."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import pytest

from halo_lang import catalog
from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig, ToolProvider
from halo_runtime.tools.rest import READING, WRITING
from halo_runtime.tools.web.client import MAX_BODY
from tests.fakes.wire import Answer, FakeService, Received, reply

VERBS = ["get", "head", "post", "put", "patch", "delete"]


class Echo(FakeService):
    """Answers what it was asked, as JSON."""

    json_only = False

    def usual(self, request: Received) -> Answer:
        if request.method == "HEAD":
            return Answer()
        return reply({"method": request.method, "path": request.path, "body": request.body})


@pytest.fixture
async def server() -> AsyncIterator[Echo]:
    async with Echo() as echo:
        yield echo


def opened(server: Echo, provider: str = "REST", path: str = "", **settings: Any) -> ToolProvider:
    """A tool with the server's address."""
    name = "url" if provider == "POST" else "base"
    whole = {name: server.address + path, "allowHosts": ["127.0.0.1"], **settings}
    return tool_factory(provider)(ToolConfig("Api", provider, whole, Path()))


async def ask(tool: ToolProvider, method: str, **args: Any) -> Any:
    try:
        return await tool.call(method, args)
    finally:
        await tool.close()


# --- what is sent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
async def test_every_method_of_rest_sends_its_verb_below_the_base(server: Echo, verb: str) -> None:
    result = await ask(
        opened(server, path="/v1/"), verb, path="/items/7", params={"a": [1, "x y"], "b": None, "c": True}
    )
    (sent,) = server.requests
    assert (sent.method, sent.path) == (verb.upper(), "/v1/items/7?a=1&a=x+y&c=true")
    assert (result["status"], result["headers"]["x-request-id"]) == (200, "req_1")
    assert result["body"] == (None if verb == "head" else {"method": sent.method, "path": sent.path, "body": None})


@pytest.mark.parametrize("verb", ["post", "put", "patch", "delete"])
@pytest.mark.parametrize(
    ("given", "kind", "body"),
    [
        ({"json": {"a": [1, None, "é"]}}, "application/json", {"a": [1, None, "é"]}),
        ({"json": False}, "application/json", False),
        ({"data": "plain é"}, "text/plain; charset=utf-8", "plain é"),
        ({"data": {"a": "x&y", "n": 2, "no": None}}, "application/x-www-form-urlencoded", "a=x%26y&n=2"),
        ({"data": "<a/>", "headers": {"Content-Type": "application/xml"}}, "application/xml", "<a/>"),
    ],
)
async def test_a_body_is_json_text_or_a_form(
    server: Echo, verb: str, given: dict[str, Any], kind: str, body: Any
) -> None:
    await ask(opened(server), verb, path="/x", **given)
    (sent,) = server.requests
    assert (sent.headers["content-type"], sent.body) == (kind, body)


@pytest.mark.parametrize("provider", ["REST", "GET"])
async def test_a_method_that_there_is_not_is_a_path(server: Echo, provider: str) -> None:
    await ask(opened(server, provider, "/v1"), "weather", city="São Paulo", days=3)
    assert [(sent.method, sent.path) for sent in server.requests] == [("GET", "/v1/weather?city=S%C3%A3o+Paulo&days=3")]


async def test_a_tool_that_only_reads_has_no_method_that_writes(server: Echo) -> None:
    await ask(opened(server, "GET"), "delete", id=3)
    assert [(sent.method, sent.path) for sent in server.requests] == [("GET", "/delete?id=3")]


@pytest.mark.parametrize("method", ["post", "deployed", "get"])
async def test_a_hook_posts_its_arguments_to_its_address(server: Echo, method: str) -> None:
    await ask(opened(server, "POST", "/in?token=a"), method, version="1.2", n=None)
    (sent,) = server.requests
    assert (sent.method, sent.path, sent.body) == ("POST", "/in?token=a", {"version": "1.2", "n": None})


async def test_keys_and_headers_go_along_and_a_call_may_say_otherwise(server: Echo) -> None:
    declared = ["X-Team: core", ["X-Two", "a: b"]]
    await ask(opened(server, apiKey=" key-1\n", headers=declared), "get", path="/", headers={"x-team": "web"})
    sent = server.requests[0].headers
    assert (sent["authorization"], sent["x-team"], sent["x-two"]) == ("Bearer key-1", "web", "a: b")
    assert sent["user-agent"].startswith("halo/")
    assert sent["host"] == server.address.removeprefix("http://")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"json": 1, "data": "x"}, "two bodies"),
        ({"data": [1]}, "data takes"),
        ({"params": [1]}, "params takes"),
        ({"headers": {"a": "b\r\nX-Evil: 1"}}, "line break"),
        ({"headers": {"a\r\nb": "c"}}, "name"),
        ({"headers": {"Host": "evil.example"}}, "host"),
        ({"headers": ["Transfer-Encoding: chunked"]}, "transfer-encoding"),
        ({"headers": [["a"]]}, "headers takes"),
        ({"path": "https://evil.example/"}, "address of its own"),
        ({"path": "../admin"}, "lead out"),
    ],
)
async def test_what_cannot_be_sent_is_refused_before_it_is(server: Echo, args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolError, match=rf"^Api\.post: .*{problem}"):
        await ask(opened(server), "post", **{"path": "/x", **args})
    assert server.connections == 0


# --- what comes back --------------------------------------------------------------------------------------------------

BIG = b"x" * (MAX_BODY + 10)


@pytest.mark.parametrize(
    ("kind", "content", "body"),
    [
        ("application/json", b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ("application/problem+json; charset=utf-8", b"[]", []),
        ("application/json", b'{"a": 1}\n{"a": 2}\n', '{"a": 1}\n{"a": 2}\n'),
        ("application/json", b"[" * 100_000, "[" * 100_000),
        ("text/html; charset=latin-1", b"caf\xe9", "café"),
        ("text/plain; charset=nonsense", b"caf\xe9", "caf\ufffd"),
        ("text/plain; charset=undefined", b"x", "x"),
        ("image/svg+xml", b"<svg/>", "<svg/>"),
        (None, b"plain", "plain"),
        (None, b"\x00\xff", {"contentType": "", "base64": "AP8="}),
        ("application/octet-stream", "é".encode(), "é"),
        ("image/png", b"\x89PNG", {"contentType": "image/png", "base64": "iVBORw=="}),
        ("text/plain", b"", None),
    ],
)
async def test_a_body_is_read_as_what_it_is(server: Echo, kind: str | None, content: bytes, body: Any) -> None:
    server.answer(Answer(body=content, content_type=kind))
    assert (await ask(opened(server), "get"))["body"] == body


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0)),
        ("deflate", zlib.compress(b"one two")),
        ("deflate", zlib.compress(b"one two", wbits=-15)),
        ("identity", b"one two"),
    ],
)
async def test_bodies_are_unpacked(server: Echo, encoding: str, packed: bytes) -> None:
    server.answer(Answer(body=packed, content_type="text/plain", headers={"content-encoding": encoding}))
    assert (await ask(opened(server), "get"))["body"] == "one two"


@pytest.mark.parametrize("headers", [{}, {"content-encoding": "gzip"}])
async def test_a_long_text_is_cut_where_one_sees_it(server: Echo, headers: dict[str, str]) -> None:
    packed = gzip.compress(BIG) if headers else BIG
    server.answer(Answer(body=packed, content_type="text/plain", headers=headers))
    body = (await ask(opened(server), "get"))["body"]
    of = "" if headers else f" of {len(BIG):,}"
    assert body == "x" * MAX_BODY + f"\n… [cut after {MAX_BODY:,} bytes{of}; ask for less, or for a part of it]"


@pytest.mark.parametrize("kind", ["application/json", "image/png"])
async def test_what_is_useless_in_part_is_refused_when_it_is_too_long(server: Echo, kind: str) -> None:
    server.answer(Answer(body=b'"' + BIG + b'"', content_type=kind))
    with pytest.raises(ToolError, match=f"more than 4 MiB of {kind}; ask for less"):
        await ask(opened(server), "get")


async def test_a_bomb_is_not_unpacked(server: Echo) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    server.answer(Answer(body=bomb, content_type="application/json", headers={"content-encoding": "gzip"}))
    with pytest.raises(ToolError, match="more than 4 MiB"):
        await ask(opened(server), "get")


@pytest.mark.parametrize(("encoding", "problem"), [("br", "packed as br"), ("gzip", "cannot be unpacked")])
async def test_packings_that_cannot_be_undone_are_refused(server: Echo, encoding: str, problem: str) -> None:
    server.answer(Answer(body=b"no such thing", headers={"content-encoding": encoding}))
    with pytest.raises(ToolError, match=problem):
        await ask(opened(server), "get")


async def test_cookies_are_kept_from_results(server: Echo) -> None:
    server.answer(reply({}, headers={"set-cookie": "session=1"}))
    assert "set-cookie" not in (await ask(opened(server), "get"))["headers"]


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("status", "retried"), [(404, ()), (429, VERBS), (503, ["get", "head", "put", "delete"])])
async def test_every_method_fails_as_the_service_does(server: Echo, verb: str, status: int, retried: list[str]) -> None:
    server.answer(reply({"error": {"message": "no such item."}}, status, headers={"retry-after": "7"}))
    with pytest.raises(ToolError, match=rf"answered {status} to {verb.upper()} /items(: no such item)?") as caught:
        await ask(opened(server), verb, path="/items", params={"key": "zq-secret"})
    error = caught.value
    assert (error.status, error.retryable, error.retry_after) == (status, verb in retried, 7.0)
    assert "zq-secret" not in error.message


async def test_a_hook_fails_as_the_service_does(server: Echo) -> None:
    server.answer(Answer(502, b"<html>bad gateway</html>", content_type="text/html"))
    with pytest.raises(ToolError, match=r"answered 502 to POST /in$") as caught:
        await ask(opened(server, "POST", "/in?token=abc"), "fire")
    assert not caught.value.retryable


@pytest.mark.parametrize("provider", ["REST", "POST"])
async def test_a_declared_status_is_a_result(server: Echo, provider: str) -> None:
    server.answer(reply({"gone": True}, 410), reply({}, 404))
    tool = opened(server, provider, allowStatus=[410])
    assert (await tool.call("post", {}))["body"] == {"gone": True}
    with pytest.raises(ToolError, match="404"):
        await ask(tool, "post")


@pytest.mark.parametrize("verb", VERBS)
async def test_a_cancelled_call_ends_its_connection(server: Echo, verb: str) -> None:
    server.answer(Answer(hang=True))
    await cancelled(server, opened(server), verb)


async def test_a_cancelled_hook_ends_its_connection_in_the_middle_of_an_answer(server: Echo) -> None:
    server.answer(Answer(pieces=(b"half",), hang=True))
    await cancelled(server, opened(server, "POST"), "fire")


async def cancelled(server: Echo, tool: ToolProvider, method: str) -> None:
    """Start a call, cancel it once the server is at work on it, and see the server lose its client."""
    task = asyncio.create_task(tool.call(method, {}))
    async with asyncio.timeout(5):
        await server.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()
    await tool.close()


@pytest.mark.parametrize(("verb", "retryable"), [("get", True), ("post", False)])
async def test_time_ends_a_call(server: Echo, verb: str, retryable: bool) -> None:
    server.answer(Answer(hang=True))
    with pytest.raises(ToolError, match=r"no complete answer within 0\.05 s; allow more with timeout:") as caught:
        await ask(opened(server, timeout="50ms"), verb)
    assert caught.value.retryable is retryable
    async with asyncio.timeout(5):
        await server.left.wait()


@pytest.mark.parametrize(("verb", "retryable"), [("get", True), ("post", False)])
async def test_a_connection_that_breaks_is_no_answer(server: Echo, verb: str, retryable: bool) -> None:
    server.answer(Answer(body=b"half", cut=True))
    with pytest.raises(ToolError, match="broke the connection") as caught:
        await ask(opened(server), verb)
    assert caught.value.retryable is retryable


async def test_a_server_that_is_not_there_may_be_asked_again() -> None:
    async with Echo() as gone:
        tool = opened(gone)
    with pytest.raises(ToolError, match="cannot be reached") as caught:
        await ask(tool, "post")
    assert caught.value.retryable


async def test_connections_are_used_again(server: Echo) -> None:
    tool = opened(server)
    await tool.call("get", {})
    await ask(tool, "get")
    assert (len(server.requests), server.connections) == (2, 1)


@pytest.mark.parametrize(("provider", "verbs"), [("REST", [*READING, *WRITING]), ("GET", READING), ("POST", ["post"])])
def test_code_and_catalogue_agree(provider: str, verbs: Collection[str]) -> None:
    spec = catalog.provider(provider)
    assert spec is not None
    assert list(spec.method_names) == list(verbs)
    for method in spec.methods:
        assert (method.effect == "read") == (method.name in READING)
        assert method.idempotent == (method.name not in ("post", "patch"))
        assert method.signature.names in (("path", "params", "json", "data", "headers"), ())
