"""Bodies of answers: unpacked within bounds, and read as JSON, text or bytes."""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Final

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json
from halo_runtime.values import parse_json

if TYPE_CHECKING:
    from halo_runtime.tools.web.client import WebAnswer

ACCEPTED: Final = "gzip, deflate"
_TEXTS: Final = re.compile(
    r"text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|javascript|x-ndjson|x-www-form-urlencoded|graphql|sql|toml)"
    r"\b|[\w.-]+/[\w.-]+\+(?:json|xml|yaml)\b"
)
_JSON: Final = re.compile(r"[\w.-]+/(?:[\w.-]+\+)?json\b")
_CHARSET: Final = re.compile(r"charset=\"?([\w.:-]+)", re.ASCII)
_MIB: Final = 1 << 20


async def read_bounded(chunks: AsyncIterable[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """A body, unpacked, and whether it was cut: no more than `limit` bytes of it are ever held.

    Raises ToolError for packings that were not asked for, and for broken ones.
    """
    unpack = _unpacker(encoding)
    body = bytearray()
    async for chunk in chunks:
        room = limit - len(body)
        try:
            body += unpack(chunk, room + 1)
        except zlib.error:
            raise ToolError("sent an answer that cannot be unpacked") from None
        if len(body) > limit:
            return bytes(body[:limit]), True
    return bytes(body), False


class _Unpacker:
    """Undoes gzip or deflate, of one or several parts; gives at most as much as it is asked for."""

    def __init__(self, gzip: bool) -> None:
        # 32: zlib finds out by itself whether it is gzip or zlib. Some servers send deflate without either's head.
        self._bits = 32 + zlib.MAX_WBITS if gzip else zlib.MAX_WBITS
        self._gzip = gzip
        self._stream = zlib.decompressobj(self._bits)
        self._begun = False

    def __call__(self, data: bytes, room: int) -> bytes:
        found = bytearray()
        while data and len(found) < room:
            if self._stream.eof:
                if not self._gzip:
                    break
                self._stream = zlib.decompressobj(self._bits)
            found += self._next(data, room - len(found))
            data = self._stream.unused_data
        return bytes(found)

    def _next(self, data: bytes, room: int) -> bytes:
        try:
            return self._stream.decompress(data, room)
        except zlib.error:
            if self._gzip or self._begun:
                raise
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._stream.decompress(data, room)
        finally:
            self._begun = True


def _unpacker(encoding: str) -> _Unpacker | _Plain:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _Plain()
    if name in ("gzip", "x-gzip", "deflate"):
        return _Unpacker(name != "deflate")
    raise ToolError(f"sent an answer packed as {name[:40]}, which was not asked for")


class _Plain:
    def __call__(self, data: bytes, room: int) -> bytes:
        return data[:room]


def read_body(answer: WebAnswer) -> Json:
    """JSON parsed, text as text, null for no body, `{"contentType", "base64"}` for everything else.

    A text that was cut says so at its end. Raises ToolError for JSON and bytes that were: half of them are of no use.
    """
    kind = answer.headers.get("content-type", "").strip().lower()
    if not answer.content:
        return None
    if _JSON.match(kind) and not answer.cut:
        try:
            return parse_json(answer.content.decode("utf-8-sig"))
        except ValueError:
            pass  # it is what it is: NDJSON and JavaScript come under this name
    text = None if _JSON.match(kind) and answer.cut else _text(answer, kind)
    if text is not None:
        return f"{text}{_cut_mark(answer)}" if answer.cut else text
    if answer.cut:
        raise ToolError(
            f"sent more than {len(answer.content) // _MIB} MiB of {kind or 'bytes'}; ask for less, or for a page of it"
        )
    return {"contentType": kind.partition(";")[0], "base64": b64encode(answer.content).decode("ascii")}


def _text(answer: WebAnswer, kind: str) -> str | None:
    if _TEXTS.match(kind):
        charset = _CHARSET.search(kind)
        try:
            text = answer.content.decode(charset[1] if charset else "utf-8", "replace")
        except (LookupError, UnicodeError):  # a charset that there is not, or that is none of text
            return answer.content.decode("utf-8", "replace")
        return text.encode("utf-8", "replace").decode("utf-8")  # UTF-7 can hold halves of surrogate pairs
    if kind and not kind.startswith("application/octet-stream"):
        return None
    try:
        text = answer.content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _cut_mark(answer: WebAnswer) -> str:
    total = answer.headers.get("content-length", "")
    packed = answer.headers.get("content-encoding", "identity") != "identity"
    of = f" of {int(total):,}" if total.isdigit() and not packed else ""
    return f"\n… [cut after {len(answer.content):,} bytes{of}; ask for less, or for a part of it]"
