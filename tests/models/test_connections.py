"""The way to a service: proxies, names, TLS, connections that break or are kept, in both ways of asking."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

import halo_lang
from halo_runtime import Runtime
from halo_runtime.errors import ModelError
from halo_runtime.models.base import Message, ModelRequest, OnDelta
from halo_runtime.models.openai import open_openai
from tests.fakes.openai_server import KEY, Answer, FakeOpenAI, completion
from tests.fakes.proxy import FakeProxy

TLS = Path(__file__).parent.parent / "fakes" / "tls"
CERTIFICATE = TLS / "certificate.pem"
"""For localhost, 127.0.0.1 and models.test; signed by itself."""

REQUEST = ModelRequest("openai/gpt-4.1-mini", "Bot", "answer", (Message("user", "hi"),))
IN_BOTH_WAYS = pytest.mark.parametrize("on_delta", [None, lambda _: None], ids=["whole", "streamed"])


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI() as fake:
        yield fake


@pytest_asyncio.fixture
async def secure() -> AsyncIterator[FakeOpenAI]:
    fake = FakeOpenAI()
    fake.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    fake.tls.load_cert_chain(CERTIFICATE, TLS / "key.pem")
    async with fake:
        yield fake


async def ask(url: str, on_delta: OnDelta | None = None, times: int = 1) -> str:
    provider = open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url})
    try:
        replies = [await provider.complete(REQUEST, on_delta) for _ in range(times)]
        return replies[-1].text
    finally:
        await provider.close()


async def failure(url: str, on_delta: OnDelta | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(url, on_delta)
    assert KEY not in f"{caught.value!r} {caught.value.detail}"
    return caught.value


def trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


# --- TLS --------------------------------------------------------------------------------------------------------------


@IN_BOTH_WAYS
async def test_a_certificate_that_nobody_trusts_is_named_and_not_tried_again(
    secure: FakeOpenAI, on_delta: OnDelta | None
) -> None:
    error = await failure(f"https://127.0.0.1:{secure.port}/v1", on_delta)
    assert "shows a certificate that is not trusted: self-signed certificate" in error.message
    assert "SSL_CERT_FILE" in error.message
    assert not error.retryable
    assert secure.requests == []


@IN_BOTH_WAYS
async def test_the_certificates_of_ssl_cert_file_are_trusted(
    secure: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, on_delta: OnDelta | None
) -> None:
    trust(monkeypatch)
    assert await ask(f"https://localhost:{secure.port}/v1", on_delta, times=3) == "ok"
    assert (secure.connections, len(secure.requests)) == (1, 3)


async def test_a_certificate_for_another_name_is_not_taken(secure: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(monkeypatch)
    async with FakeProxy(to=secure.port) as proxy:
        through(monkeypatch, proxy.port)
        error = await failure("https://other.test/v1")
    assert "OpenAI (other.test) shows a certificate that is not trusted: Hostname mismatch" in error.message
    assert secure.requests == []


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_file_of_certificates_that_is_none_is_named(
    secure: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "c.pem").write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "c.pem"))
    error = await failure(f"https://localhost:{secure.port}/v1")
    assert "SSL_CERT_FILE does not name certificates that can be read" in error.message
    assert not error.retryable


async def test_https_to_a_server_that_speaks_http_is_told() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as plain:
        error = await failure(f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/v1")
    assert "cannot be spoken to over TLS" in error.message
    assert "is OPENAI_BASE_URL right" in error.message
    assert not error.retryable


# --- proxies ----------------------------------------------------------------------------------------------------------

OUTSIDE = "https://models.test/v1"


def through(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Name a proxy, with a password, for the outside world."""
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "https_proxy", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", f"http://ann:se%2Fcret@127.0.0.1:{port}")


@IN_BOTH_WAYS
async def test_the_proxy_of_the_environment_is_gone_through(
    secure: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, on_delta: OnDelta | None
) -> None:
    trust(monkeypatch)
    async with FakeProxy(to=secure.port) as proxy:
        through(monkeypatch, proxy.port)
        assert await ask(OUTSIDE, on_delta, times=2) == "ok"
    assert proxy.asked == ["models.test:443"]  # one tunnel for both
    assert proxy.credentials == [f"Basic {base64.b64encode(b'ann:se/cret').decode()}"]
    assert secure.requests[0].headers["host"] == "models.test"


async def test_what_no_proxy_names_is_asked_directly(secure: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeProxy(to=secure.port) as proxy:
        through(monkeypatch, proxy.port)
        monkeypatch.setenv("NO_PROXY", "other.example, .test")
        await failure(OUTSIDE)  # the name leads nowhere
    assert proxy.asked == []


async def test_a_dead_proxy_is_named_with_its_variable_and_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = unused_port()
    through(monkeypatch, port)
    error = await failure(OUTSIDE)
    assert "OpenAI (models.test) cannot be reached through the proxy" in error.message
    assert f"the proxy is 127.0.0.1:{port}, from HTTPS_PROXY" in error.message
    assert "se%2Fcret" not in error.message
    assert error.retryable


@pytest.mark.parametrize(
    ("status", "retryable"), [("407 Proxy Authentication Required", False), ("403 No", False), ("502 Bad", True)]
)
async def test_a_proxy_that_refuses_is_named_with_its_words(
    monkeypatch: pytest.MonkeyPatch, status: str, retryable: bool
) -> None:
    async with FakeProxy(to=0, status=status) as proxy:
        through(monkeypatch, proxy.port)
        error = await failure(OUTSIDE)
    assert f"through the proxy: {status}; the proxy is 127.0.0.1:{proxy.port}" in error.message
    assert error.retryable is retryable


@pytest.mark.parametrize("address", ["gopher://proxy.example", "http://", "http://proxy.example:99999"])
async def test_a_proxy_that_is_none_is_told_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    through(monkeypatch, 1)
    monkeypatch.setenv("HTTPS_PROXY", address)
    error = await failure(OUTSIDE)
    assert "HTTPS_PROXY names no proxy; write it like http://proxy.example:3128" in error.message
    assert not error.retryable


# --- names and servers ------------------------------------------------------------------------------------------------


def unused_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


@IN_BOTH_WAYS
@pytest.mark.parametrize("host", ["no-such-host.invalid", "größe.invalid"])
async def test_a_name_without_an_address_is_told_and_may_be_tried_again(host: str, on_delta: OnDelta | None) -> None:
    error = await failure(f"https://{host}/v1", on_delta)
    assert f"OpenAI ({host}) has no address: " in error.message
    assert "is OPENAI_BASE_URL right, and this machine online?" in error.message
    assert error.retryable


@IN_BOTH_WAYS
@pytest.mark.parametrize(
    ("answer", "said", "retryable"),
    [
        (Answer(404, b"<html>Not found", content_type="text/html"), "answered 404; check the model's name and", False),
        (Answer(body=b"<html>Hi", content_type="text/html"), "answered text/html instead of JSON; is OPENAI", False),
        (Answer(body=b""), "answered with broken JSON (0 bytes); is OPENAI_BASE_URL", False),
        (Answer(body=b'{"choices": "\xff\xfe"}'), "answered with broken JSON (17 bytes)", False),
        (Answer(body=b"\x1f\x8b\x08", headers={"content-encoding": "gzip"}), "cannot be unpacked", False),
        (Answer(body=b"x" * 10, cut=True), "ended the connection before its answer was complete", True),
        (Answer(502, b"<html>Bad gateway", content_type="text/html"), "answered 502", True),
    ],
    ids=["404 page", "page", "empty", "no UTF-8", "half of a gzip", "broken off", "502 page"],
)
async def test_what_a_wrong_or_broken_server_sends_is_told_with_what_to_do(
    server: FakeOpenAI, answer: Answer, said: str, retryable: bool, on_delta: OnDelta | None
) -> None:
    server.answer(answer)
    error = await failure(server.url, on_delta)
    assert said in error.message
    assert error.retryable is retryable


PROGRAM = """\
@retry(2, 1ms)
agent Bot [openai/gpt-4.1-mini]
pipeline Main(text: String) -> String:
  text
    |> Bot.say()
"""


async def run(url: str) -> ModelError | None:
    runtime = Runtime(env={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url})
    result = await runtime.run(halo_lang.parse(PROGRAM), "Main", {"text": "hi"})
    await runtime.close()
    assert result.error is None or isinstance(result.error, ModelError)
    return result.error


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        (Answer(404, b"<html>", content_type="text/html"), 1),
        (Answer(body=b"<html>", content_type="text/html"), 1),
        (Answer(body=b""), 1),
        (Answer(body=b"x" * 10, cut=True), 3),
        (Answer(502, b"<html>", content_type="text/html"), 3),
        (Answer(pieces=(b'data: {"choices": [', b"]}"), content_type="text/event-stream", cut=True), 3),
        (Answer(pieces=(b"data: {}\n\n",), content_type="text/event-stream"), 3),
    ],
    ids=["404 page", "page", "empty", "broken off", "502 page", "stream broken off", "stream without its end"],
)
async def test_a_run_tries_again_only_where_that_can_help_and_says_where_it_failed(
    server: FakeOpenAI, answer: Answer, requests: int
) -> None:
    server.answer(*[answer] * requests)
    error = await run(server.url)
    assert error is not None
    assert len(server.requests) == error.attempt == requests
    assert error.place is not None
    assert (error.place.stage, error.place.line, error.place.column) == ("|> Bot.say", 5, 5)


async def test_a_failure_that_passes_is_no_failure(server: FakeOpenAI) -> None:
    server.answer(Answer(body=b"x" * 10, cut=True), Answer(503))
    assert await run(server.url) is None
    assert len(server.requests) == 3


@IN_BOTH_WAYS
@pytest.mark.parametrize(
    ("name", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), (" GZIP ", gzip.compress)]
)
async def test_an_answer_that_is_packed_although_nobody_asked_is_unpacked(
    server: FakeOpenAI, name: str, pack: Callable[[bytes], bytes], on_delta: OnDelta | None
) -> None:
    packed = pack(completion("packed").body)
    server.answer(Answer(body=packed, headers={"content-encoding": name}))
    assert await ask(server.url, on_delta) == "packed"
    assert server.requests[0].headers["accept-encoding"] == "identity"


# --- connections that are kept ----------------------------------------------------------------------------------------


async def in_bursts(url: str, *sizes: int) -> None:
    provider = open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url})
    for size in sizes:
        await asyncio.gather(*(provider.complete(REQUEST) for _ in range(size)))
    await provider.close()


async def test_there_are_as_many_connections_as_calls_side_by_side_and_they_are_used_again(server: FakeOpenAI) -> None:
    together = asyncio.Barrier(20)
    server.answer(*[Answer(body=completion("ok").body, gate=together)] * 20)
    await in_bursts(server.url, 20, 5, 1, 20)
    assert len(server.requests) == 46
    assert server.connections == 20


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    async def once(exchange: Callable[[], Awaitable[str]]) -> None:
        assert await exchange() == "ok"
        async with asyncio.timeout(5):
            await gone.wait()

    gone = asyncio.Event()
    body = json.dumps({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        writer.close()  # without a word of it in the answer
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        provider = open_openai({"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"})

        async def exchange() -> str:
            return (await provider.complete(REQUEST)).text

        for _ in range(3):
            gone.clear()
            await once(exchange)
        await provider.close()
