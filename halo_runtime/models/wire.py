"""Requests to models as the HTTP library takes them, and its answers.

The library takes time to import, so that happens when a request is first sent.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from halo_runtime.version import __version__

if TYPE_CHECKING:
    import httpcore

STANDING: Final = {
    "content-type": "application/json",
    "accept": "*/*",
    "accept-encoding": "identity",
    "user-agent": f"halo/{__version__}",
}


class UnusableURL(Exception):
    """An address that cannot be asked."""


class Response:
    """An answer whose body is still to come; header names in lower case."""

    def __init__(self, response: httpcore.Response) -> None:
        self.status = response.status
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        self._stream = cast("AsyncIterable[bytes]", response.stream)  # of an asynchronous connection

    def parts(self, limit: int) -> AsyncIterable[bytes]:
        """The body as it comes, unpacked where it was packed although nobody asked for that."""
        packed = self.headers.get("content-encoding", "identity").strip().lower() != "identity"
        return self._unpacked(limit) if packed else self._stream

    async def _unpacked(self, limit: int) -> AsyncGenerator[bytes]:
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or deflate, it finds out by itself
        async for part in self._stream:
            yield unpacker.decompress(part, limit + 1)
        if not unpacker.eof:
            raise zlib.error("its end is missing")


@lru_cache(maxsize=256)
def target_of(url: str) -> tuple[httpcore.URL, str]:
    """An address as the HTTP library takes it, and the host as the header names it. Raises UnusableURL."""
    import httpcore
    import httpx

    try:
        read = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UnusableURL(str(error)) from None
    target = httpcore.URL(scheme=read.raw_scheme, host=read.raw_host, port=read.port, target=read.raw_path)
    return target, read.netloc.decode("ascii")


def to_send(
    method: str, url: str, headers: Mapping[str, str], content: bytes, limits: Mapping[str, float | None]
) -> httpcore.Request:
    """A request. `headers` in lower case; `limits` are seconds, by what they hold for. Raises UnusableURL."""
    import httpcore

    target, host = target_of(url)
    named = {"host": host, **headers, "content-length": str(len(content))}
    pairs = [(name.encode("ascii"), value.encode("utf-8")) for name, value in named.items()]
    return httpcore.Request(method, target, headers=pairs, content=content, extensions={"timeout": dict(limits)})
