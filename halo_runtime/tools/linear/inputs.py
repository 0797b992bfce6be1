"""The arguments of calls as Linear takes them: filters of lists, and the input of what is opened or changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.tools.linear.names import LABEL, ME, STATE, TEAM, USER, Names, all_of, called

EVERY_TEAM: Final = "*"
_PLAIN: Final = ("title", "description", "priority", "dueDate", "estimate")
_WHOLE: Final = ("priority", "estimate")
_CLEARED: Final = ("description", "dueDate")
_LABELS: Final = {"labels": "labelIds", "addLabels": "addedLabelIds", "removeLabels": "removedLabelIds"}
OF_A_TEAM: Final = ("state", "cycle", *_LABELS)
"""What has its name in a team only."""


def narrowed(args: JsonObject, declared: str | None, *, shared: bool = False) -> JsonObject | None:
    """The filter of a list: the call's own conditions, and its team, else the declared one.

    A filter that says itself which team it is about is left alone. `shared`: what belongs to no team is there too.
    """
    own: Json = args.get("filter")
    parts: list[JsonObject] = [own] if is_object(own) and own else []
    team = args.get("team") or (None if _tells_team(own) else declared)
    if team and team != EVERY_TEAM:
        inside: JsonObject = {"team": called(TEAM, team)}
        parts.append({"or": [inside, {"team": {"null": True}}]} if shared else inside)
    if args.get("state"):
        parts.append({"state": called(STATE, args["state"])})
    if args.get("assignee"):
        who = args["assignee"]
        parts.append({"assignee": {"isMe": {"eq": True}} if who == ME else called(USER, who)})
    parts += [{"labels": called(LABEL, name)} for name in args.get("labels") or ()]
    return all_of(parts)


def _tells_team(condition: Json) -> bool:
    """Whether a filter names a team, at any depth of its `and` and `or`."""
    if is_list(condition):
        return any(_tells_team(part) for part in condition)
    if not is_object(condition):
        return False
    return "team" in condition or any(_tells_team(condition.get(joint)) for joint in ("and", "or"))


async def details(args: JsonObject, team: str, names: Names) -> JsonObject:
    """The fields of an issue that `args` name, names as ids; an empty text clears. `team`: the id of the issue's."""
    found: JsonObject = {name: args[name] for name in _PLAIN if args.get(name) is not None}
    found |= {name: int(found[name]) for name in _WHOLE if name in found}
    found |= {name: None for name in _CLEARED if found.get(name) == ""}
    single: dict[str, tuple[str, Callable[[str], Awaitable[str]]]] = {
        "assignee": ("assigneeId", names.person),
        "project": ("projectId", names.project),
        "state": ("stateId", lambda name: names.state(name, team)),
        "cycle": ("cycleId", lambda name: names.cycle(name, team)),
    }
    for argument, (field, find) in single.items():
        value: Json = args.get(argument)
        if value is not None:
            found[field] = await find(value) if value else None
    if args.get("parent") is not None:
        found["parentId"] = args["parent"] or None  # a short name does as well as an id
    for argument, field in _LABELS.items():
        if args.get(argument) is not None:
            found[field] = [await names.label(name, team) for name in args[argument]]
    return found
