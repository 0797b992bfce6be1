"""`Figma(token)`: files, their nodes, images and comments, by Figma's REST API (reference 2.4)."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import quote, urlencode

from halo_lang.catalog.providers.services import FIGMA
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.figma.addresses import node_id, place_of
from halo_runtime.tools.figma.errors import LESS, explain, failed
from halo_runtime.tools.figma.methods import ROUTES, Route
from halo_runtime.tools.web.client import WebClient, WebRequest
from halo_runtime.tools.web.service import Service, failures_of
from halo_runtime.tools.web.urls import joined
from halo_runtime.values import text_of

SERVICE: Final = Service("Figma", "https://api.figma.com", "FIGMA_API_URL", max_bytes=16 << 20, less=LESS)
OAUTH: Final = "figu_"
"""How the tokens of applications begin; they alone go behind `Bearer`."""
TIMEOUT: Final = 120.0
"""Seconds: rendering large nodes, and reading large files, takes Figma up to a minute."""
VERSIONS_PER_PAGE: Final = 50


class Figma:
    """The files that a token may see."""

    def __init__(self, name: str, base: str, client: WebClient, token: str) -> None:
        self._name = name
        self._base = base
        self._client = client
        self._authorization = {"authorization": f"Bearer {token}"} if token.startswith(OAUTH) else {
            "x-figma-token": token
        }  # fmt: skip

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError."""
        route = ROUTES[method]
        with failures_of(self._name, method):
            asked = _asked(route, args)
            if method == "get_versions":
                return await self._versions(route, asked)
            document = await self._document(method, route, asked)
            return route.result(document, asked)

    async def probe(self) -> str:
        """Ask whose token it is. Raises ToolError."""
        me = await self._document("me", ROUTES["me"], {})
        return f"{me.get('handle')} ({me.get('email')})"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _versions(self, route: Route, asked: JsonObject) -> Json:
        """`{versions, cursor}`: as many pages as `limit` needs; each begins before the last one of that before it."""
        versions: list[Json] = []
        wanted, before = int(asked["limit"]), asked.get("before")
        while True:
            page = {"page_size": min(wanted - len(versions), VERSIONS_PER_PAGE), "before": before}
            document = await self._document("get_versions", route, asked | page)
            found: JsonObject = route.result(document, asked)
            versions += found["versions"]
            pages: Json = document.get("pagination")
            more = bool(found["versions"]) and is_object(pages) and bool(pages.get("next_page"))
            before = str(versions[-1].get("id")) if more else None
            if not more or len(versions) >= wanted:
                return {"versions": versions, "cursor": before}

    async def _document(self, method: str, route: Route, asked: JsonObject) -> JsonObject:
        """The answer of a success. Raises ToolError."""
        request = self._request(method, route, asked)
        answer = await self._client.send(request)
        if answer.status >= 300:
            raise explain(request, answer, method, large=route.large)
        document = SERVICE.read(request, answer)
        if (told := failed(answer, document)) is not None:
            raise explain(request, told, method, large=route.large)
        if not is_object(document):
            raise SERVICE.unreadable(request)
        return document

    def _request(self, method: str, route: Route, asked: JsonObject) -> WebRequest:
        entry = FIGMA.method(method)
        repeatable = entry is not None and (entry.effect == "read" or entry.idempotent)
        path = route.path.format_map({name: quote(str(value), safe="") for name, value in asked.items()})
        query = {name: text_of(asked[name]) for name in route.query if asked.get(name) is not None}
        if route.ids and asked.get("ids"):
            query[route.ids] = ",".join(asked["ids"])
        url = joined(self._base, path) + (f"?{urlencode(query)}" if query else "")
        body = {name: asked[name] for name in route.body if asked.get(name) is not None}
        content = json.dumps(body).encode() if route.body else None
        headers = {**self._authorization, "accept": "application/json"}
        headers |= {"content-type": "application/json"} if content is not None else {}
        return WebRequest(self._name, route.verb, url, headers, content, repeatable)


def _asked(route: Route, args: JsonObject) -> JsonObject:
    """The arguments as the API takes them: a key without its address, node ids with colons. Raises ToolError."""
    asked: JsonObject = dict(args)
    pointed: str | None = None
    if "key" in args:
        place = place_of(args["key"])
        asked["key"], pointed = place.key, place.node
    if route.ids:
        given: Json = args.get("ids")
        asked["ids"] = [node_id(text_of(one)) for one in given] if is_list(given) else []
        if route.needs_ids and not asked["ids"]:
            if pointed is None:
                raise ToolError('no node is named; give ids: ["1:2"], or an address with a node-id')
            asked["ids"] = [pointed]
    where: Json = args.get("client_meta")
    if is_object(where) and isinstance(where.get("node_id"), str):
        asked["client_meta"] = {**where, "node_id": node_id(where["node_id"])}
    return asked


def open_figma(config: ToolConfig) -> Figma:
    """The service of a declaration; nothing is connected to yet. Raises ConfigError."""
    base = SERVICE.address(config.settings)
    token = SERVICE.secret(config.settings, "token", base)
    if token is None:
        raise ConfigError("token: is missing; give an access token (figd_…), or set FIGMA_TOKEN")
    return Figma(config.name, base, SERVICE.client(base, TIMEOUT), token)
