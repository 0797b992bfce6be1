"""Names as ids: Linear takes ids only, people write `ENG`, `In Progress` and `ada@example.org` (reference 2.3)."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Asks a GraphQL document with variables; gives `data`."""

ME: Final = "me"
_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ACTIVE: Final[JsonObject] = {"active": {"eq": True}}
_NO_GROUP: Final[JsonObject] = {"isGroup": {"eq": False}}
_CYCLES: Final[dict[str, JsonObject]] = {"current": {"isActive": {"eq": True}}, "next": {"isNext": {"eq": True}}}


@record
class Kind:
    """Something that has a name: the `field` that lists it, the type of its filter, and what it may be called by."""

    what: str
    field: str
    filter: str
    names: tuple[str, ...]
    listed_by: str | None

    @property
    def document(self) -> str:
        """The query for those of a filter. A few are enough to see that a name is not clear."""
        shown = " ".join(("id", *self.names)) + (" team{id}" if self.field == "issueLabels" else "")
        return f"query($filter:{self.filter}){{{self.field}(filter:$filter,first:10){{nodes{{{shown}}}}}}}"


TEAM: Final = Kind("team", "teams", "TeamFilter", ("key", "name"), "list_teams")
STATE: Final = Kind("state", "workflowStates", "WorkflowStateFilter", ("name",), "list_states")
LABEL: Final = Kind("label", "issueLabels", "IssueLabelFilter", ("name",), "list_labels")
USER: Final = Kind("person", "users", "UserFilter", ("email", "displayName", "name"), "list_users")
PROJECT: Final = Kind("project", "projects", "ProjectFilter", ("name", "slugId"), "list_projects")
CYCLE: Final = Kind("cycle", "cycles", "CycleFilter", ("name",), None)


def is_id(text: str) -> bool:
    """Whether a text is an id already."""
    return _ID.fullmatch(text) is not None


def called(kind: Kind, name: str) -> JsonObject:
    """The filter for things of this name or id, whatever its case."""
    if is_id(name):
        return {"id": {"eq": name}}
    found: list[Json] = [{field: {"eqIgnoreCase": name}} for field in kind.names]
    return {"or": found} if len(found) > 1 else found[0]


def all_of(parts: Sequence[JsonObject]) -> JsonObject | None:
    """The filter for what fits each of the parts; None for no parts."""
    return {"and": list(parts)} if len(parts) > 1 else parts[0] if parts else None


class Names:
    """The ids that were looked up, each once in a run."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._ids: dict[tuple[str, str, str], str] = {}
        self._looking: defaultdict[tuple[str, str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def team(self, name: str) -> str:
        """The id of a team. Like all of these, raises ToolError where there is none of this name, or are several."""
        return await self._id(TEAM, name)

    async def state(self, name: str, team: str) -> str:
        """The id of a state of the team, which is given by its id."""
        return await self._id(STATE, name, team, [{"team": {"id": {"eq": team}}}])

    async def label(self, name: str, team: str) -> str:
        """The id of a label of the team, else of one of all teams."""
        where: JsonObject = {"or": [{"team": {"id": {"eq": team}}}, {"team": {"null": True}}]}
        return await self._id(LABEL, name, team, [where, _NO_GROUP])

    async def person(self, name: str) -> str:
        """The id of an active person, `me` for the key's owner."""
        if name == ME:
            return await self._id(USER, name, match={"isMe": {"eq": True}})
        return await self._id(USER, name, more=[_ACTIVE])

    async def project(self, name: str) -> str:
        """The id of a project."""
        return await self._id(PROJECT, name)

    async def cycle(self, name: str, team: str) -> str:
        """The id of a cycle of the team, by its number or name, or the `current` or the `next` one."""
        match = _CYCLES.get(name) or ({"number": {"eq": int(name)}} if re.fullmatch(r"[0-9]{1,9}", name) else None)
        return await self._id(CYCLE, name, team, [{"team": {"id": {"eq": team}}}], match)

    async def _id(
        self, kind: Kind, name: str, scope: str = "", more: Sequence[JsonObject] = (), match: JsonObject | None = None
    ) -> str:
        name = name.strip()
        if is_id(name):
            return name
        key = (kind.field, scope, name.casefold())
        async with self._looking[key]:  # who wants the same name meanwhile waits for this answer
            if key not in self._ids:
                found = await self._ask(kind.document, {"filter": all_of([match or called(kind, name), *more])})
                self._ids[key] = _the_one(kind, name, scope, _nodes(found, kind.field))
        return self._ids[key]


def _nodes(data: JsonObject, field: str) -> list[JsonObject]:
    connection: Json = data.get(field)
    nodes: Json = connection.get("nodes") if is_object(connection) else None
    return [node for node in nodes if is_object(node)] if is_list(nodes) else []


def _the_one(kind: Kind, name: str, scope: str, nodes: list[JsonObject]) -> str:
    """The id of what is meant: the team's own label before one of all teams, a key before a name that is the same."""
    own = [node for node in nodes if kind is LABEL and is_object(node.get("team")) and node["team"].get("id") == scope]
    exact = next(
        (same for field in kind.names if (same := [n for n in nodes if _same(n.get(field), name)])), nodes
    )  # fmt: skip
    found = own or exact
    if len(found) == 1:
        return str(found[0]["id"])
    if not found:
        advice = f"; {kind.listed_by} lists them" if kind.listed_by else ""
        raise ToolError(f'there is no {kind.what} "{name}" that the key can see{advice}')
    ids = ", ".join(str(node.get("id")) for node in found[:5])
    raise ToolError(f'there are {len(found)} of {kind.what} "{name}"; give the id of one: {ids}')


def _same(value: Json, name: str) -> bool:
    return isinstance(value, str) and value.casefold() == name.casefold()
