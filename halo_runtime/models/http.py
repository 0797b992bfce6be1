"""What every model service over HTTP shares: requests in JSON with bounds on time and size, and failures as errors.

Redirects are not followed, for the key would travel along; `x-should-retry` wins over the table in retry.py.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import SplitResult, urlsplit
from weakref import WeakKeyDictionary

from halo_lang.records import record
from halo_runtime.errors import Fault, ModelError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import Usage
from halo_runtime.models.complaints import CONTEXT_FULL, read_complaint
from halo_runtime.models.refusals import SHORTEN, may_pass, usual_advice
from halo_runtime.models.retry import retry_after
from halo_runtime.models.surrogates import valid_text
from halo_runtime.models.troubles import detail_of, is_the_proxys, through, trouble_of
from halo_runtime.models.wire import STANDING, Response, UnusableURL, to_send
from halo_runtime.redaction import Redactor

if TYPE_CHECKING:
    from halo_runtime.models.connections import Connections

CONNECT_SECONDS: Final = 10.0
TOTAL_SECONDS: Final = 600.0
FIRST_SECONDS: Final = 300.0
IDLE_SECONDS: Final = 120.0
"""How long a stream may be silent before its first bytes, and after them."""
DRAIN_SECONDS: Final = 0.25
"""How long the end of a stream is waited for once all is said, so that its connection can be used again."""
MAX_RESPONSE_BYTES: Final = 32 * 1024 * 1024
MAX_DETAIL: Final = 500
"""Characters of a service's own message that go into ours."""

Receive: TypeAlias = Callable[[bytes], bool]
"""Takes the next bytes of a stream; true when nothing that counts can follow."""


@record
class Endpoint:
    """Where a service is and how it is spoken to.

    `headers` hold the key and are never shown. `key_variable` and `url_variable` name the environment variables that
    messages tell people to look at. `advice` is what to do here in place of the usual, by status or trouble.
    An answer may take `total_seconds`, a streamed one `stream_seconds` where set; a stream may be silent for
    `first_seconds` before its first bytes, and for `idle_seconds` after them.
    """

    service: str
    url: str
    key_variable: str
    url_variable: str
    headers: Mapping[str, str] = field(repr=False, default_factory=dict[str, str])
    secrets: tuple[str, ...] = field(repr=False, default=())
    advice: Mapping[int | str, str] = field(default_factory=dict[int | str, str])
    connect_seconds: float = CONNECT_SECONDS
    total_seconds: float = TOTAL_SECONDS
    stream_seconds: float | None = None
    first_seconds: float = FIRST_SECONDS
    idle_seconds: float = IDLE_SECONDS
    max_bytes: int = MAX_RESPONSE_BYTES

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2]


@record
class Answer:
    """A complete HTTP response."""

    status: int
    headers: Mapping[str, str]
    content: bytes


def is_loopback(url: SplitResult) -> bool:
    """Whether a URL leads to this machine."""
    host = url.hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class JsonService:
    """Posts JSON to one service; connections are pooled for each event loop that uses it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._redactor = Redactor(endpoint.secrets)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Connections] = WeakKeyDictionary()
        self._headers = {**STANDING, **{name.lower(): value for name, value in endpoint.headers.items()}}

    async def post(
        self, path: str, body: JsonObject, *, headers: Mapping[str, str] | None = None, repeatable: bool = True
    ) -> JsonObject:
        """The JSON object that the service answers. ModelError for everything else; cancelling ends the request.

        `repeatable` is false for what must not be asked twice: then only what certainly did not arrive is retryable.
        """
        async with self._failures(repeatable), self._request("POST", path, body, headers) as response:
            return self._document(await self._whole(response), repeatable)

    async def get(self, path: str) -> JsonObject:
        """As `post`, asking with nothing but the address."""
        async with self._failures(), self._request("GET", path) as response:
            return self._document(await self._whole(response))

    async def names(self, path: str, among: str | None, field: str = "id") -> tuple[str, ...]:
        """What the things in a list are called in `field`; the list is the answer, or stands under `among` in it."""
        async with self._failures(), self._request("GET", path) as response:
            document = self._json(await self._whole(response))
        found: Json = document.get(among) if is_object(document) and among else document
        if not is_list(found):
            raise self.error(f"answered without a list of its models{self._filled(_WRONG_URL)}")
        return tuple(name for item in found if is_object(item) and isinstance(name := item.get(field), str))

    async def stream(
        self,
        path: str,
        body: JsonObject | None,
        receive: Receive,
        *,
        accepts: str = "text/event-stream",
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject | None:
        """Hand what the service streams to `receive` as it comes; without a body the request is a GET.

        Returns the document of a service that answers whole although a stream was asked for, else None. Whether the
        stream was complete is for the caller to say: every service ends its streams in a way of its own.
        """
        asked = {"accept": accepts, **(headers or {})}
        method = "GET" if body is None else "POST"
        async with (
            self._failures(seconds=self.endpoint.stream_seconds),
            self._silence() as silence,
            self._request(method, path, body, asked) as response,
        ):
            if response.status >= 300 or _kind(response.headers) != accepts:
                silence.allow(None)
                return self._document(await self._whole(response))
            await self._hand_over(response, receive, silence)
        return None

    async def close(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def error(self, problem: str, *, retryable: bool = False, code: Fault | None = None) -> ModelError:
        """A ModelError that names the service and its host before `problem`."""
        return ModelError(self._named(self._redactor.text(problem)), retryable=retryable, code=code)

    def failure(self, status: int, document: JsonObject) -> ModelError:
        """The error that a failure inside a stream amounts to: as if the service had answered it with `status`."""
        return self._refusal(Answer(status, {}, json.dumps(document).encode()), repeatable=True)

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Response]:
        content = b""
        if body is not None:
            content = valid_text(json.dumps(body, ensure_ascii=False, allow_nan=False)).encode()
        url = path if "://" in path else self.endpoint.url + path
        limits = {"connect": self.endpoint.connect_seconds}
        request = to_send(method, url, {**self._headers, **(headers or {})}, content, limits)
        async with self._client().exchange(request) as response:
            yield Response(response)

    async def _whole(self, response: Response) -> Answer:
        received = bytearray()
        async for part in self._bounded(response):
            received += part
        return Answer(response.status, response.headers, bytes(received))

    async def _hand_over(self, response: Response, receive: Receive, silence: _Silence) -> None:
        from halo_runtime.models.connections import FAILURES

        async with aclosing(self._bounded(response)) as parts:
            async for part in parts:
                silence.allow(self.endpoint.idle_seconds)
                if self._received(receive, part):
                    break
            silence.allow(None)
            with suppress(TimeoutError, *FAILURES):  # the answer is whole, whatever becomes of its connection
                async with asyncio.timeout(DRAIN_SECONDS):
                    async for _ in parts:
                        pass

    def _received(self, receive: Receive, part: bytes) -> bool:
        try:
            return receive(part)
        except UnicodeDecodeError:
            raise self.error("streamed bytes that are no UTF-8", retryable=True) from None

    async def _bounded(self, response: Response) -> AsyncGenerator[bytes]:
        received, most = 0, self.endpoint.max_bytes
        async for part in response.parts(most):
            received += len(part)
            if received > most:
                raise self.error(f"sent more than {most // 2**20} MiB; the answer was dropped")
            yield part

    def _client(self) -> Connections:
        from halo_runtime.models.connections import Connections

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            url = urlsplit(self.endpoint.url)
            # A proxy for the outside world cannot reach this machine, and would see the key.
            inside = url.scheme == "http" and is_loopback(url)
            self._clients[loop] = Connections(trusts_environment=not inside)
        return self._clients[loop]

    @asynccontextmanager
    async def _silence(self) -> AsyncGenerator[_Silence]:
        """Give a stream up that is silent for too long."""
        silence = _Silence()
        try:
            async with silence.timeout:
                silence.allow(self.endpoint.first_seconds)
                yield silence
        except TimeoutError:
            if not silence.timeout.expired():
                raise
            silent = self.error(f"stopped answering: its stream was silent for {silence.seconds:g} s", retryable=True)
            silent.usage = Usage()
            raise silent from None

    @asynccontextmanager
    async def _failures(self, repeatable: bool = True, seconds: float | None = None) -> AsyncGenerator[None]:
        """Turn what can go wrong on the way into ModelError; that it takes over `seconds`, too."""
        from halo_runtime.models.connections import FAILURES, SettingError  # time that a scripted run shall not pay

        seconds = seconds or self.endpoint.total_seconds
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            late = self.error(f"gave no complete answer within {seconds:g} s", retryable=repeatable)
            late.usage = Usage()
            raise late from None
        except SettingError as error:
            raise self.error(f"cannot be asked: {error}") from None
        except (*FAILURES, zlib.error, UnusableURL) as error:
            raise self._broken(error, repeatable) from None

    def _broken(self, error: Exception, repeatable: bool) -> ModelError:
        name, trouble = trouble_of(error)
        proxy = self._client().proxy(self.endpoint.url)
        if proxy is not None and is_the_proxys(name):
            trouble = through(proxy, trouble)
        detail = self._clean(detail_of(error))
        advice = self._filled(self.endpoint.advice.get(name, trouble.advice))
        message = self._named(f"{trouble.problem}: {detail}{advice}")
        retryable = trouble.retryable and (repeatable or not trouble.sent)
        broken = ModelError(message, retryable=retryable, detail=detail)
        broken.usage = Usage() if trouble.sent else None  # somebody may have worked on it, and charge for that
        return broken

    def _refusal(self, answer: Answer, repeatable: bool) -> ModelError:
        """The error for a status that is no success."""
        complaint = read_complaint(answer.content)
        detail = self._clean(complaint.message)
        usual = usual_advice(answer.status, complaint.codes)
        advice = self._filled(self.endpoint.advice.get(answer.status, usual))
        told = f": {detail.removesuffix('.') if advice else detail}" if detail else ""
        asked = retry_after(answer.headers)
        error = ModelError(
            self._named(f"answered {answer.status}{told}{advice}"),
            retryable=may_pass(answer.status, complaint.codes, answer.headers) and (repeatable or answer.status < 500),
            status=answer.status,
            retry_after=complaint.retry_after if asked is None else asked,
            detail=detail or None,
        )
        if answer.status in (400, 413) and CONTEXT_FULL in complaint.codes:
            error.code, error.hint = "context_overflow", SHORTEN
        return error

    def _document(self, answer: Answer, repeatable: bool = True) -> JsonObject:
        """The JSON object of an answer; raises for a status that is no success, and for everything else."""
        document = self._json(answer, repeatable)
        if not is_object(document):
            raise self.error(f"answered with JSON that is no object{self._filled(_WRONG_URL)}")
        return document

    def _json(self, answer: Answer, repeatable: bool = True) -> Json:
        if answer.status >= 300:
            raise self._refusal(answer, repeatable)
        kind = _kind(answer.headers)
        advice = self._filled(_WRONG_URL)
        if "json" not in kind:
            raise self.error(f"answered {self._clean(kind) or 'something without a type'} instead of JSON{advice}")
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            raise self.error(f"answered with broken JSON ({len(answer.content)} bytes){advice}") from None

    def _named(self, problem: str) -> str:
        return f"{self.endpoint.service} ({self.endpoint.host}) {problem}"

    def _filled(self, advice: str) -> str:
        return advice.format(key=self.endpoint.key_variable, url=self.endpoint.url_variable)

    def _clean(self, text: str) -> str:
        """A service's text on one line, bounded, without the key."""
        line = " ".join(self._redactor.text(text).split())
        return line if len(line) <= MAX_DETAIL else line[:MAX_DETAIL] + "…"


_SLACK: Final = 1.1


class _Silence:
    """How long nothing may be heard from now on; `timeout` runs out where it is longer."""

    def __init__(self) -> None:
        self.timeout = asyncio.timeout(None)
        self.seconds: float | None = None

    def allow(self, seconds: float | None) -> None:
        """Allow so many seconds from now on, or up to a tenth more; None for any number."""
        self.seconds, when = seconds, self.timeout.when()
        if seconds is None:
            if when is not None:
                self.timeout.reschedule(None)
            return
        now = asyncio.get_running_loop().time()
        # A stream comes in thousands of pieces, and to set a timer takes longer than to read one.
        if when is None or not now + seconds <= when <= now + seconds * _SLACK:
            self.timeout.reschedule(now + seconds * _SLACK)


_WRONG_URL: Final = "; is {url} the address of a model service?"


def _kind(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
