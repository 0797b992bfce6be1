"""`REST`, `GET` and `POST`: HTTP APIs that the program describes by an address (spec 5, reference 2.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from halo_lang.catalog.signature import duration_seconds
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.web.bodies import read_body
from halo_runtime.tools.web.client import WebAnswer, WebClient, WebRequest, refusal
from halo_runtime.tools.web.headers import HeaderProblem, read_headers
from halo_runtime.tools.web.urls import declared_url, joined, with_query
from halo_runtime.values import text_of

if TYPE_CHECKING:
    from halo_runtime.tools.web.network import Resolve

Made = TypeVar("Made")

READING: Final = ("get", "head")
WRITING: Final = ("post", "put", "patch", "delete")
_REPEATABLE: Final = (*READING, "put", "delete")
_KEY: Final = re.compile(r"[!-~]+")
_HIDDEN: Final = ("set-cookie", "set-cookie2")
"""Headers that are kept from results: a session is a secret."""

_ADVICE: Final = {
    401: "check apiKey: or headers: in the declaration",
    403: "the key may not do this",
    404: "check the path",
    405: "the path does not take this method",
}


class Api:
    """An HTTP API. `verbs` are the methods it has; any other name is a path that is asked with GET.

    `headers` are the declaration's, the key among them. Statuses in `allow_status` are results although over 399.
    """

    def __init__(
        self, name: str, base: str, client: WebClient, *, verbs: Collection[str], headers: Mapping[str, str],
        allow_status: Collection[int] = (),
    ) -> None:  # fmt: skip
        self._name = name
        self._base = base
        self._client = client
        self._verbs = verbs
        self._headers = headers
        self._allow_status = allow_status

    async def call(self, method: str, args: JsonObject) -> Json:
        """`{status, headers, body}`. Raises ToolError for a status over 399 that is not allowed."""
        label = f"{self._name}.{method}"
        request = _explained(label, lambda: self._request(label, method, args))
        return await _ask(self._client, request, self._allow_status)

    async def probe(self) -> str:
        """Ask the base for its headers: that it answers is what counts, whatever it answers. Raises ToolError."""
        return await _reach(self._client, self._name, self._base, self._headers)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _request(self, label: str, method: str, args: JsonObject) -> WebRequest:
        if method not in self._verbs:
            return WebRequest(label, "GET", with_query(joined(self._base, f"/{method}"), args), self._headers)
        url = with_query(joined(self._base, args.get("path") or ""), args.get("params"))
        content, kind = _body(args.get("json"), args.get("data"))
        own = read_headers(args.get("headers"))
        headers = {**self._headers, **({"content-type": kind} if kind else {}), **own}
        return WebRequest(label, method.upper(), url, headers, content, repeatable=method in _REPEATABLE)


class Hook:
    """One address that takes JSON: every method posts its arguments there."""

    def __init__(
        self, name: str, url: str, client: WebClient, *, headers: Mapping[str, str], allow_status: Collection[int] = ()
    ) -> None:
        self._name = name
        self._url = url
        self._client = client
        self._headers = headers
        self._allow_status = allow_status

    async def call(self, method: str, args: JsonObject) -> Json:
        """As `Api.call`."""
        content, kind = _body(args, None)
        headers = {"content-type": kind, **self._headers}
        request = WebRequest(f"{self._name}.{method}", "POST", self._url, headers, content, repeatable=False)
        return await _ask(self._client, request, self._allow_status)

    async def probe(self) -> str:
        """As `Api.probe`; nothing is posted."""
        return await _reach(self._client, self._name, self._url, self._headers)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def open_rest(config: ToolConfig, resolve: Resolve | None = None) -> Api:
    """The API of a `REST` declaration; nothing is connected to yet. Raises ConfigError."""
    return _open_api(config, (*READING, *WRITING), resolve)


def open_get(config: ToolConfig, resolve: Resolve | None = None) -> Api:
    """The same for `GET`, which only reads."""
    return _open_api(config, READING, resolve)


def open_post(config: ToolConfig, resolve: Resolve | None = None) -> Hook:
    """The address of a `POST` declaration."""
    settings = config.settings
    url = declared_url(settings["url"], "the address", query=True)
    client, statuses = _client(settings, resolve), settings.get("allowStatus") or ()
    return Hook(config.name, url, client, headers=_declared_headers(settings), allow_status=statuses)


def _open_api(config: ToolConfig, verbs: Collection[str], resolve: Resolve | None) -> Api:
    settings = config.settings
    base, client = declared_url(settings["base"], "the base"), _client(settings, resolve)
    headers, statuses = _declared_headers(settings), settings.get("allowStatus") or ()
    return Api(config.name, base, client, verbs=verbs, headers=headers, allow_status=statuses)


def _client(settings: JsonObject, resolve: Resolve | None) -> WebClient:
    seconds = duration_seconds(settings.get("timeout") or "30s")
    return WebClient(settings.get("allowHosts") or (), timeout=seconds or 30.0, resolve=resolve)


def _declared_headers(settings: JsonObject) -> dict[str, str]:
    try:
        headers = read_headers(settings.get("headers"))
    except HeaderProblem as problem:
        raise ConfigError(str(problem)) from None
    key = (settings.get("apiKey") or "").strip()
    if not key:
        return headers
    if _KEY.fullmatch(key) is None:
        raise ConfigError("apiKey holds white space or characters that no key has; set it again")
    if "authorization" in headers:
        raise ConfigError("apiKey and the header authorization say the same; leave one out")
    return {**headers, "authorization": f"Bearer {key}"}


async def _reach(client: WebClient, name: str, url: str, headers: Mapping[str, str]) -> str:
    answer = await client.send(WebRequest(name, "HEAD", url, headers))
    return f"{urlsplit(url).netloc} answers (status {answer.status} for the address itself)"


async def _ask(client: WebClient, request: WebRequest, allow_status: Collection[int]) -> Json:
    answer = await client.send(request)
    if answer.status >= 400 and answer.status not in allow_status:
        raise refusal(request, answer, _ADVICE.get(answer.status, ""))
    return _explained(request.label, lambda: _result(answer))


def _result(answer: WebAnswer) -> JsonObject:
    headers = {name: value for name, value in answer.headers.items() if name not in _HIDDEN}
    return {"status": answer.status, "headers": headers, "body": read_body(answer)}


def _explained(label: str, make: Callable[[], Made]) -> Made:
    try:
        return make()
    except (ToolError, HeaderProblem) as problem:
        raise ToolError(f"{label}: {problem}") from None


def _body(document: Json, data: Json) -> tuple[bytes | None, str]:
    """What is sent as a body, and what it is. Raises ToolError for two bodies, and for data of no form."""
    if document is not None and data is not None:
        raise ToolError("json and data are two bodies; give one of them")
    if document is not None:
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"), "application/json"
    if data is None:
        return None, ""
    if is_object(data):
        fields = [(name, text_of(value)) for name, value in data.items() if value is not None]
        return urlencode(fields, errors="replace").encode("ascii"), "application/x-www-form-urlencoded"
    if isinstance(data, str):
        return data.encode("utf-8", "replace"), "text/plain; charset=utf-8"
    raise ToolError("data takes a text, or an object as the fields of a form; use json for other values")
