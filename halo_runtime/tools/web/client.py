"""The HTTP client of all tools: guarded addresses, redirects within limits, bounds on time and size (reference 2.1).

Credentials go to the origin that they were given for and to no other. Nothing is tried again here: what may be is
said by `ToolError.retryable`, and `@retry` decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.models.complaints import read_complaint
from halo_runtime.models.retry import is_retryable, retry_after
from halo_runtime.tools.web.addresses import AllowedHosts
from halo_runtime.tools.web.bodies import ACCEPTED, read_bounded
from halo_runtime.tools.web.urls import host_of
from halo_runtime.version import __version__

if TYPE_CHECKING:
    import httpcore
    import httpx

    from halo_runtime.tools.web.network import Resolve

MAX_REDIRECTS: Final = 5
MAX_BODY: Final = 4 << 20
"""Bytes of an answer that are read, unpacked."""
MAX_DETAIL: Final = 300
"""Characters of a service's own words that go into ours."""

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_READING: Final = frozenset(("GET", "HEAD"))


@record
class WebRequest:
    """What is sent. `headers` in lower case, shown to nobody; `label` is the call that it is for, such as `Api.get`.

    `repeatable`: it may be sent again although it may have arrived.
    """

    label: str
    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False, default_factory=dict[str, str])
    content: bytes | None = None
    repeatable: bool = True


@record
class WebAnswer:
    """What came back, unpacked; `headers` in lower case, `cut` where there was more than is read."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    cut: bool = False


class WebClient:
    """Sends the requests of one tool. Connections are kept until `close`; all calls belong to one event loop.

    `timeout` is seconds for a whole call, its redirects included; `resolve` stands for the system's resolver.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        *,
        timeout: float = 30.0,
        max_bytes: int = MAX_BODY,
        resolve: Resolve | None = None,
    ) -> None:
        self._allowed = AllowedHosts.of(allow)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}

    async def send(self, request: WebRequest) -> WebAnswer:
        """The answer, whatever its status, after redirects. Cancelling ends the connection.

        Raises ToolError where there is none: a closed address, no connection, no time left, redirects in a circle.
        """
        async with self._failures(request):
            current = request
            for _ in range(MAX_REDIRECTS + 1):
                answer = await self._exchange(current)
                location = answer.headers.get("location")
                if answer.status not in _REDIRECTS or not location:
                    return answer
                current = redirected(current, answer.status, location)
            raise ToolError(f"redirects more than {MAX_REDIRECTS} times")

    async def close(self) -> None:
        """Close the connections."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    async def _exchange(self, request: WebRequest) -> WebAnswer:
        """One request and its answer."""
        import httpcore
        import httpx

        from halo_runtime.tools.web.network import CONNECT_SECONDS

        url = httpx.URL(request.url)
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        limits = {"connect": CONNECT_SECONDS, "pool": None, "read": None, "write": None}
        headers = [("host", url.netloc.decode("ascii")), *(_standing(request) | dict(request.headers)).items()]
        pairs = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
        pool = self._pool(url.scheme)
        async with pool.stream(
            request.method, target, headers=pairs, content=request.content, extensions={"timeout": limits}
        ) as response:
            received = _headers(response.headers)
            encoding = received.get("content-encoding", "") if request.method != "HEAD" else ""
            content, cut = await read_bounded(response.aiter_stream(), encoding, self._max_bytes)
        return WebAnswer(response.status, received, content, cut)

    def _pool(self, scheme: str) -> httpcore.AsyncConnectionPool:
        if scheme not in self._pools:
            import httpcore
            import httpx

            from halo_runtime.tools.web.network import GuardedNetwork, look_up

            self._pools[scheme] = httpcore.AsyncConnectionPool(
                ssl_context=httpx.create_ssl_context() if scheme == "https" else None,
                max_connections=None,  # how many calls run side by side is for the program to say
                keepalive_expiry=5.0,
                network_backend=GuardedNetwork(self._allowed, self._resolve or look_up),
            )
        return self._pools[scheme]

    @asynccontextmanager
    async def _failures(self, request: WebRequest) -> AsyncGenerator[None]:
        """Turn what can go wrong on the way into ToolError that says for which call and at which host."""
        import httpcore
        import httpx

        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError:
            problem = f"gave no complete answer within {self._timeout:g} s; allow more with timeout:"
            raise problem_at(request, problem, retryable=request.repeatable) from None
        except ToolError as error:
            raise problem_at(request, error.message) from None
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            told = clean(str(error)) or "no answer in time"
            raise problem_at(request, f"cannot be reached: {told}; is the address right?", retryable=True) from None
        except httpx.InvalidURL as error:
            raise problem_at(request, f"cannot be asked: {clean(str(error))}") from None
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            told = clean(str(error)) or type(error).__name__
            raise problem_at(request, f"broke the connection: {told}", retryable=request.repeatable) from None


def problem_at(request: WebRequest, problem: str, *, retryable: bool = False) -> ToolError:
    """A ToolError that names the call and the host before `problem`."""
    return ToolError(f"{request.label}: {shown_host(request)} {problem}", retryable=retryable)


def refusal(request: WebRequest, answer: WebAnswer, advice: str = "", *, more: str = "") -> ToolError:
    """The error for a status of 400 or more, with the service's own message.

    `advice` is what to do about it, `more` what the service says beside its message.
    """
    detail = "; ".join(part for part in (complaint_of(answer), clean(more)) if part)
    told = f": {detail.removesuffix('.')}" if detail else ""
    advice = f"; {advice}" if advice else ""
    return ToolError(
        f"{request.label}: {shown_host(request)} answered {answer.status} to {request.method} {shown_path(request)}"
        f"{told}{advice}",
        # 409 passes by itself at model services only.
        retryable=is_retryable(answer.status) and answer.status != 409 and (request.repeatable or answer.status == 429),
        status=answer.status,
        retry_after=retry_after(answer.headers),
        detail=detail or None,
    )


def complaint_of(answer: WebAnswer) -> str:
    """A service's own words about its refusal, on one line, bounded; nothing of a page of HTML."""
    told = read_complaint(answer.content).message
    kind = answer.headers.get("content-type", "")
    if not told and (kind.startswith("text/plain") or "json" in kind):
        told = answer.content[: MAX_DETAIL * 4].decode("utf-8", "replace")
    return clean(told)


def shown_host(request: WebRequest) -> str:
    """Host and port, without a user and a password."""
    return host_of(request.url)


def shown_path(request: WebRequest) -> str:
    """The path, without a query, which may hold a key."""
    return urlsplit(request.url).path or "/"


def _standing(request: WebRequest) -> dict[str, str]:
    """Headers that every request has where it says nothing else."""
    headers = {"accept": "*/*", "user-agent": f"halo/{__version__}"}
    if request.content is not None or request.method not in _READING:
        headers["content-length"] = str(len(request.content or b""))
    return headers | {"accept-encoding": ACCEPTED}


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name in lower case; what comes several times is joined as the standard says."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def redirected(request: WebRequest, status: int, location: str) -> WebRequest:
    """The request that a redirect asks for. Raises ToolError for one that is not followed."""
    import httpx

    here = httpx.URL(request.url)
    there = here.join(location)
    if there.scheme not in ("http", "https") or not there.host or there.userinfo:
        raise ToolError("redirects to what is no plain http or https address")
    shown = f"{there.scheme}://{there.netloc.decode('ascii')}"
    if here.scheme == "https" and there.scheme == "http":
        raise ToolError(f"redirects from https to {shown}, where anybody could read along; that is not followed")
    same = _origin(here) == _origin(there) or _is_upgrade(here, there)
    following = replace(request, url=str(there.copy_with(fragment=None)))
    if request.method not in _READING:
        if status == 303:
            following = replace(following, method="GET", content=None, headers=_without_body(request.headers))
        elif not (same and status in (307, 308)):
            raise ToolError(
                f"answered {status} and redirects a {request.method} to {shown}, which is not followed; "
                "set the declaration to the final address"
            )
    return following if same else replace(following, headers={})


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def _is_upgrade(here: httpx.URL, there: httpx.URL) -> bool:
    """From http to https at the same host and the usual ports, which takes no credentials anywhere else."""
    return here.host == there.host and (_origin(here)[2], *_origin(there)[::2]) == (80, "https", 443)


def _without_body(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not name.startswith("content-")}


def clean(text: str) -> str:
    """A stranger's text on one line, bounded."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_DETAIL else line[:MAX_DETAIL] + "…"
