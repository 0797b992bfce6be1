"""`Linear(key, team:)`: issues of a workspace by Linear's GraphQL API, with names in place of ids (reference 2.3)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from halo_lang.catalog.providers.services import LINEAR
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject, is_list
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.linear.api import SERVICE, Api
from halo_runtime.tools.linear.documents import (
    CHANGES,
    GET_ISSUE,
    LISTINGS,
    PAGE,
    PROBE,
    TEAM_OF_ISSUE,
    VIEWER,
    Listing,
    flattened,
    whole_issue,
)
from halo_runtime.tools.linear.inputs import EVERY_TEAM, OF_A_TEAM, details, narrowed
from halo_runtime.tools.linear.names import Names
from halo_runtime.tools.web.service import failures_of


class Linear:
    """One workspace, with the ids of names that were looked up. `team`: that of calls which name none."""

    def __init__(self, name: str, api: Api, team: str | None = None) -> None:
        self._name = name
        self._api = api
        self._team = team
        self._names = Names(api.ask)
        self._methods: dict[str, Callable[[str, JsonObject], Awaitable[Json]]] = {
            "get_issue": self._get_issue, "create_issue": self._create_issue, "update_issue": self._update_issue,
            "add_comment": self._add_comment, "add_label": self._set_label, "remove_label": self._set_label,
            "archive": self._archive, "attach_link": self._attach_link, "viewer": self._viewer,
            **dict.fromkeys(LISTINGS, self._list),
        }  # fmt: skip

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError."""
        with failures_of(self._name, method):
            return await self._methods[method](method, args)

    async def probe(self) -> str:
        """Ask who the key belongs to, and for the declared team. Raises ToolError."""
        data = await self._api.ask(PROBE, {})
        who, where = (self._api.part(data, part).get("name") for part in ("viewer", "organization"))
        if self._team is None:
            return f"{who} in {where}"
        await self._names.team(self._team)
        return f"{who} in {where}, team {self._team}"

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    # --- reading ------------------------------------------------------------------------------------------------

    async def _get_issue(self, method: str, args: JsonObject) -> Json:
        return whole_issue(await self._found(GET_ISSUE, {"id": args["id"]}, "issue"))

    async def _viewer(self, method: str, args: JsonObject) -> Json:
        return await self._found(VIEWER, {}, "viewer")

    async def _found(self, document: str, variables: JsonObject, field: str) -> JsonObject:
        return self._api.part(await self._api.ask(document, variables), field)

    async def _list(self, method: str, args: JsonObject) -> Json:
        """`{items, cursor}`: `first` entries, or as many pages as `limit` needs."""
        listing = LISTINGS[method]
        narrowing = narrowed(args, self._team, shared=method == "list_labels")
        own = {name: narrowing if name == "filter" else args.get(name) for name, _ in listing.variables}
        wanted = int(args.get("limit") or args["first"])
        items: list[Json] = []
        cursor: Json = args.get("after")
        while True:
            size = min(wanted - len(items), PAGE)
            connection = await self._page(listing, own | {"first": size, "after": cursor})
            items += connection["nodes"]
            page = self._api.part(connection, "pageInfo")
            cursor = page.get("endCursor") if page.get("hasNextPage") else None
            if cursor is None or len(items) >= wanted or not connection["nodes"]:
                total = {"total": connection.get("totalCount")} if listing.total else {}
                return {"items": items, "cursor": cursor} | total

    async def _page(self, listing: Listing, variables: JsonObject) -> JsonObject:
        """A page of a connection, its nodes flat."""
        given = {name: value for name, value in variables.items() if value is not None}
        connection = await self._found(listing.document, given, listing.field)
        nodes: Json = connection.get("nodes")
        return {**connection, "nodes": [flattened(node) for node in nodes] if is_list(nodes) else []}

    # --- changes ------------------------------------------------------------------------------------------------

    async def _create_issue(self, method: str, args: JsonObject) -> Json:
        named = args.get("team") or self._team
        if not named or named == EVERY_TEAM:
            raise ToolError('no team is named; give team: "ENG" to the declaration or the call')
        team = await self._names.team(named)
        given = {name: value for name, value in args.items() if value != ""}
        return await self._change(method, {"input": {"teamId": team} | await details(given, team, self._names)})

    async def _update_issue(self, method: str, args: JsonObject) -> Json:
        moved = await self._names.team(args["team"]) if args.get("team") else None
        wants_team = any(args.get(name) for name in OF_A_TEAM)
        team = moved or (await self._team_of(args["id"]) if wants_team else "")
        changes = await details(args, team, self._names) | ({"teamId": moved} if moved else {})
        if not changes:
            raise ToolError("nothing is to be changed; name what is, such as title: or state:")
        return await self._change(method, {"id": args["id"], "input": changes})

    async def _add_comment(self, method: str, args: JsonObject) -> Json:
        answered = {"parentId": args["parent"]} if args.get("parent") else {}
        return await self._change(method, {"input": {"issueId": args["id"], "body": args["body"]} | answered})

    async def _set_label(self, method: str, args: JsonObject) -> Json:
        label = await self._names.label(args["label"], await self._team_of(args["id"]))
        return await self._change(method, {"id": args["id"], "labelId": label})

    async def _archive(self, method: str, args: JsonObject) -> Json:
        await self._change(method, {"id": args["id"]})
        return True

    async def _attach_link(self, method: str, args: JsonObject) -> Json:
        titled = {"title": args["title"]} if args.get("title") else {}
        return await self._change(method, {"issueId": args["id"], "url": args["url"]} | titled)

    async def _team_of(self, issue: str) -> str:
        """The id of an issue's team, which has the states and labels that it can have."""
        found = await self._found(TEAM_OF_ISSUE, {"id": issue}, "issue")
        return str(self._api.part(found, "team").get("id"))

    async def _change(self, method: str, variables: JsonObject) -> JsonObject:
        """Do the mutation of a method; what is kept of its payload. Raises ToolError where it was not done."""
        change, entry = CHANGES[method], LINEAR.method(method)
        repeatable = entry is not None and entry.idempotent
        data = await self._api.ask(change.document, variables, repeatable=repeatable)
        payload = self._api.part(data, change.field)
        if payload.get("success") is not True:
            raise ToolError("Linear did not do it, and does not say why")
        return flattened(self._api.part(payload, change.part)) if change.part else {}


def open_linear(config: ToolConfig, clock: Callable[[], float] = time.time) -> Linear:
    """The workspace of a declaration; nothing is connected to yet. `clock`: seconds since 1970. Raises ConfigError."""
    settings = config.settings
    base = SERVICE.address(settings)
    key = SERVICE.secret(settings, "key", base)
    if key is None:
        raise ConfigError("key: is missing; give an API key (lin_api_…), or set LINEAR_API_KEY")
    api = Api(config.name, base, SERVICE.client(base), key, clock)
    return Linear(config.name, api, (settings.get("team") or "").strip() or None)
