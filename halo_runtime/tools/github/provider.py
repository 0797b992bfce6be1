"""`GitHub(token, repo:)`: issues, pull requests, files and searches of github.com or an enterprise server."""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from halo_lang.catalog.providers.github import GITHUB
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.pick import pick
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.github.errors import explain
from halo_runtime.tools.github.methods import ROUTES, Route, encoded
from halo_runtime.tools.web.client import WebAnswer, WebClient, WebRequest
from halo_runtime.tools.web.service import Service
from halo_runtime.tools.web.urls import joined, same_origin
from halo_runtime.values import text_of

API_VERSION: Final = "2022-11-28"
JSON_TYPE: Final = "application/vnd.github+json"
RAW_TYPE: Final = "application/vnd.github.raw+json"
SERVICE: Final = Service("GitHub", "https://api.github.com", "GITHUB_API_URL", max_bytes=16 << 20)
"""A recursive tree takes up to 7 MB."""
MAX_PAGES: Final = 30
WRITE_SECONDS: Final = 1.0
"""What GitHub wants between two requests that change something, so as not to meet its secondary limits."""

_REPO: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_NEXT: Final = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')
_SCOPED: Final = re.compile(r"(?:^|\s)-?(?:repo|org|user|owner):")
"""A search that says itself where it looks."""


class GitHub:
    """One declared repository, or the whole service. `pause` is seconds between two writes."""

    def __init__(
        self, name: str, base: str, client: WebClient, *, token: str | None = None, repo: str | None = None,
        pause: float = WRITE_SECONDS, clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._name = name
        self._base = base
        self._client = client
        self._token = token
        self._repo = repo
        self._pause = pause
        self._clock = clock
        self._writing = asyncio.Lock()
        self._written: float | None = None

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the reference's table; its result is what `github_methods` keeps. ToolError for refusals."""
        route, label = ROUTES[method], f"{self._name}.{method}"
        args = {name: _whole(value) for name, value in args.items()}
        try:
            request = self._request(route, method, label, args)
        except ToolError as error:
            raise ToolError(f"{label}: {error.message}") from None
        if route.items is not None:
            return await self._list(route, request, args)
        if method == "get_file":
            return await self._file(request, args)
        document = await self._document(request)
        if not (is_object(document) or is_list(document)):
            raise SERVICE.unreadable(request)
        return route.made(document, args)

    async def probe(self) -> str:
        """Read the repository, or where none is declared what the token may still ask for. Raises ToolError."""
        path = "/rate_limit" if self._repo is None else f"/repos/{self._repo}"
        request = WebRequest(self._name, "GET", joined(self._base, path), self._headers(None))
        document = await self._document(request)
        if not is_object(document):
            raise SERVICE.unreadable(request)
        if self._repo is None:
            return f"{urlsplit(self._base).netloc} answers{'' if self._token else ', without a token'}"
        name, may = document.get("full_name"), document.get("permissions")
        if not isinstance(name, str):
            raise SERVICE.unreadable(request)
        pushes = is_object(may) and may.get("push") is True
        return f"{name}, which the token may {'change' if pushes else 'read'}"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    # --- requests -----------------------------------------------------------------------------------------------

    def _request(self, route: Route, method: str, label: str, args: JsonObject) -> WebRequest:
        entry = GITHUB.method(method)
        repeatable = entry is not None and (entry.effect == "read" or entry.idempotent)
        query = {name: _query_value(args[name]) for name in route.query if args.get(name) is not None}
        if "q" in query:
            query["q"] = self._scoped(method, query["q"], args)
        if route.items is not None:
            query |= _page(args, filtered=method == "list_issues")
        url = joined(self._base, self._path(route, args))
        url += f"?{urlencode(query)}" if query else ""
        body = {name: args[name] for name in route.body if args.get(name) is not None} | (route.fixed or {})
        if method == "put_file":
            body["content"] = encoded(body["content"])
        content = json.dumps(body).encode() if route.body else None
        return WebRequest(label, route.verb, url, self._headers(content), content, repeatable)

    def _headers(self, content: bytes | None) -> dict[str, str]:
        headers = {"accept": JSON_TYPE, "x-github-api-version": API_VERSION}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        return headers | ({"content-type": "application/json"} if content is not None else {})

    def _path(self, route: Route, args: JsonObject) -> str:
        values = {
            name: quote(str(value).strip("/"), safe="/" if name == "path" else "") for name, value in args.items()
        }
        path = route.path.format_map({"ref": "HEAD", **values})
        return path if path.startswith("/search") else f"/repos/{self._repo_of(args)}{path}"

    def _repo_of(self, args: JsonObject) -> str:
        repo = args.get("repo") or self._repo
        if not repo:
            raise ToolError('no repository is named; give repo: "owner/name" to the declaration or the call')
        if _REPO.fullmatch(repo) is None:
            raise ToolError('repo is written "owner/name"')
        return repo

    def _scoped(self, method: str, q: str, args: JsonObject) -> str:
        """A search of a tool for one repository looks there, unless it says itself where to look."""
        inside = method != "search_repositories" and bool(args.get("repo") or self._repo)
        return f"{q} repo:{self._repo_of(args)}" if inside and not _SCOPED.search(q) else q

    # --- answers ------------------------------------------------------------------------------------------------

    async def _send(self, request: WebRequest) -> WebAnswer:
        """The answer of a success. Raises ToolError for everything else."""
        async with self._turn(request.method):
            answer = await self._client.send(request)
        if not 200 <= answer.status < 300:
            raise explain(request, answer, self._repo or "the repository", self._clock())
        return answer

    async def _document(self, request: WebRequest) -> Json:
        return SERVICE.read(request, await self._send(request))

    @asynccontextmanager
    async def _turn(self, verb: str) -> AsyncGenerator[None]:
        """Requests that change something go one after the other, `pause` apart."""
        if verb == "GET":
            yield
            return
        async with self._writing:
            now = asyncio.get_running_loop().time()
            if self._written is not None:
                await asyncio.sleep(self._written + self._pause - now)
            try:
                yield
            finally:
                self._written = asyncio.get_running_loop().time()

    async def _list(self, route: Route, request: WebRequest, args: JsonObject) -> JsonObject:
        """`{items, more}`, of searches `total` and `incomplete` too: one page, or as many as `limit` needs."""
        items: list[Json] = []
        following: WebRequest | None = None
        limit, result = args.get("limit"), dict[str, Json]()
        for _ in range(MAX_PAGES):
            answer = await self._send(request)
            document = SERVICE.read(request, answer)
            found: Json = document.get(route.items) if route.items and is_object(document) else document
            if not is_list(found):
                raise SERVICE.unreadable(request)
            # For GitHub every pull request is an issue; who lists issues does not mean them.
            items += [item for item in found if not (route is ROUTES["list_issues"] and "pull_request" in item)]
            if is_object(document) and "total_count" in document:
                incomplete = bool(document.get("incomplete_results"))
                result = {"total": document["total_count"]} | ({"incomplete": incomplete} if "q" in args else {})
            following = self._following(request, answer)
            if following is None or limit is None or len(items) >= limit:
                break
            request = following
        kept = items if limit is None else items[:limit]
        return {"items": pick(kept, route.keep).value, "more": following is not None or len(kept) < len(items)} | result

    def _following(self, request: WebRequest, answer: WebAnswer) -> WebRequest | None:
        """The request for the next page, whose address GitHub gives and which is taken as it is."""
        found = _NEXT.search(answer.headers.get("link", ""))
        if found is None:
            return None
        if not same_origin(found[1], self._base):
            raise ToolError(f"{request.label}: the next page is said to be at another host; that is not followed")
        return WebRequest(request.label, "GET", found[1], request.headers)

    async def _file(self, request: WebRequest, args: JsonObject) -> JsonObject:
        """`{path, text, sha}`; files over 1 MB come without their text and are asked for again as they are."""
        document = await self._document(request)
        if is_list(document):
            raise ToolError(f"{request.label}: {args['path']} is a folder; list_tree lists it")
        if not is_object(document) or document.get("type") not in ("file", "symlink"):
            raise ToolError(f"{request.label}: {args['path']} is no file")
        if document.get("encoding") == "base64":
            content = b64decode(document.get("content") or "")
        else:
            raw = WebRequest(request.label, "GET", request.url, {**request.headers, "accept": RAW_TYPE})
            answer = await self._send(raw)
            if answer.cut:
                raise ToolError(f"{request.label}: {args['path']} is larger than {SERVICE.max_bytes >> 20} MiB")
            content = answer.content
        try:
            return {"path": document.get("path"), "text": content.decode("utf-8"), "sha": document.get("sha")}
        except UnicodeDecodeError:
            raise ToolError(f"{request.label}: {args['path']} is no text in UTF-8") from None


def open_github(config: ToolConfig) -> GitHub:
    """The tool of a declaration; nothing is connected to yet. Raises ConfigError."""
    settings = config.settings
    base = SERVICE.address(settings)
    repo, token = settings.get("repo"), SERVICE.secret(settings, "token", base)
    if repo is not None and _REPO.fullmatch(repo) is None:
        raise ConfigError(f'repo is written "owner/name", not "{repo}"')
    return GitHub(config.name, base, SERVICE.client(base), token=token, repo=repo)


def _whole(value: Json) -> Json:
    """Whole numbers without a fraction, which GitHub takes nowhere."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _query_value(value: Json) -> str:
    return ",".join(map(text_of, value)) if is_list(value) else text_of(value)


def _page(args: Mapping[str, Json], *, filtered: bool) -> dict[str, str]:
    """Which page, and how long: as long as may be where several are taken, which saves requests."""
    limit, page = args.get("limit"), args.get("page")
    size = args.get("per_page") or 30
    if limit is not None and page is None:
        size = 100 if filtered else min(limit, 100)
    return {"per_page": str(size)} | ({} if page is None else {"page": str(page)})
