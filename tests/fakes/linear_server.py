"""A server on loopback that speaks Linear's GraphQL API for one workspace; see wire.py.

    async with FakeLinear() as server:
        server.add_issue("It is broken", labels=["Bug"])
        server.answer(limited(reset=1764500000))

It executes what it is asked against the schema, keeps what it is told, and refuses as Linear does: with `errors` beside
`data`, and status 200.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import graphql
from graphql import GraphQLError

from tests.fakes.linear_rules import SCHEMA, Asked, Wrong, read
from tests.fakes.wire import Answer, FakeService, Received, Refused, reply

KEY = "lin_api_fake0123456789abcdef"
NOW = "2026-01-02T03:04:05.000Z"
Document = dict[str, Any]
STATES = (("Todo", "unstarted"), ("In Progress", "started"), ("Done", "completed"))


def uuid(kind: int, number: int) -> str:
    """The id of an entry, the same in every run."""
    return str(UUID(int=(kind << 64) + number, version=4))


def refusal(message: str, code: str, kind: str, *, status: int = 200, shown: str = "", data: Any = None,
            headers: Mapping[str, str] | None = None) -> Answer:  # fmt: skip
    """An error in Linear's shape; `data` where a part was found nevertheless."""
    extensions = {"code": code, "type": kind, "userError": True} | ({"userPresentableMessage": shown} if shown else {})
    document = {"errors": [{"message": message, "path": ["issue"], "extensions": extensions}], "data": data}
    return reply(document, status, headers=headers or {})


def limited(*, reset: int, limit: str = "requests", more: Mapping[str, str] | None = None) -> Answer:
    """The refusal of a rate limit that ends `reset` seconds after 1970; the other limits end later and have rest."""
    headers = {
        f"x-ratelimit-{name}-{what}": str(value)
        for name in ("requests", "complexity")
        for what, value in (
            ("limit", 2500),
            ("remaining", 0 if name == limit else 100),
            ("reset", reset * 1000 + (0 if name == limit else 3_600_000)),
        )
    }
    return refusal("Rate limit exceeded", "RATELIMITED", "ratelimited", status=400, headers=headers | dict(more or {}))


def _not_found(what: str) -> GraphQLError:
    extensions = {"type": "invalid input", "code": "INPUT_ERROR", "userError": True,
                  "userPresentableMessage": f"Could not find referenced {what}."}  # fmt: skip
    return GraphQLError(f"Entity not found: {what}", extensions=extensions)


class FakeLinear(FakeService):
    """The server; see the module. Teams ENG and OPS, people Ada (whose key it is) and Bob, who has left."""

    def __init__(self, *, authorization: str = KEY, refusals_expected: bool = False) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self.asked: list[Asked] = []
        self.succeeds = True
        self._authorization = authorization
        self.users = [self._user(1, "Ada Lovelace", "ada"), self._user(2, "Bob", "bob", active=False)]
        self.teams = [self._team(1, "ENG", "Engineering"), self._team(2, "OPS", "Operations")]
        self.states = [
            {"id": uuid(3, 10 * place + number), "name": name, "type": kind, "position": number, "team": team}
            for place, team in enumerate(self.teams)
            for number, (name, kind) in enumerate(STATES)
        ]
        eng, ops = self.teams
        named = [("Bug", None), ("Bug", eng), ("Docs", None), ("Deploy", ops), ("Ui", eng)]
        self.labels = [self._label(number, name, team) for number, (name, team) in enumerate(named)]
        self.projects = [
            {"id": uuid(5, number), "name": name, "slugId": f"p{number}", "description": "", "url": f"https://l/p{number}",
             "status": {"id": uuid(9, 1), "name": "Planned", "type": "planned"}, "startDate": None, "targetDate": None,
             "progress": 0.5}
            for number, name in enumerate(["Launch", "Twin", "Twin"])
        ]  # fmt: skip
        self.cycles = [
            {"id": uuid(6, number), "number": number, "name": f"Cycle {number}", "isActive": number == 7,
             "isNext": number == 8, "team": self.teams[0]}
            for number in (6, 7, 8)
        ]  # fmt: skip
        self.issues: list[Document] = []
        self.archived: list[str] = []

    @property
    def url(self) -> str:
        """What LINEAR_API_URL is set to."""
        return f"{self.address}/graphql"

    def add_issue(self, title: str, *, labels: tuple[str, ...] = (), team: int = 0, **more: Any) -> Document:
        """Another issue, in the team of this place."""
        number = len(self.issues) + 1
        place = self.teams[team]
        identifier = f"{place['key']}-{number}"
        issue: Document = {
            "id": uuid(7, number), "identifier": identifier, "number": number, "title": title, "description": None,
            "priority": 0, "priorityLabel": "No priority", "estimate": None, "dueDate": None,
            "url": f"https://linear.app/acme/issue/{identifier}", "branchName": identifier.lower(), "createdAt": NOW,
            "updatedAt": NOW, "state": next(state for state in self.states if state["team"] is place), "team": place,
            "assignee": None, "creator": self.users[0], "project": None, "cycle": None, "parent": None,
            "kept": {"labels": [], "comments": [], "attachments": []}, **more,
        }  # fmt: skip
        issue["kept"]["labels"] += [label for label in self.labels if label["name"] in labels and label["team"] is None]
        issue |= {name: self._paged(lambda kept=name, one=issue: one["kept"][kept]) for name in issue["kept"]}
        self.issues.append(issue)
        return issue

    def label_names(self, issue: Document) -> list[str]:
        """The names of an issue's labels."""
        return [label["name"] for label in issue["kept"]["labels"]]

    def check(self, request: Received) -> None:
        """Raise Refused for what Linear would not take."""
        try:
            self.asked.append(read(request, self._authorization))
        except Wrong as wrong:
            raise Refused(str(wrong), reply({"errors": wrong.errors}, wrong.status)) from None

    def usual(self, request: Received) -> Answer:
        """What Linear answers, as things stand."""
        asked = self.asked[-1]
        execute: Any = graphql.graphql_sync
        result = execute(SCHEMA, asked.query, self._root(), variable_values=asked.variables)
        return reply(result.formatted)

    # --- entries ------------------------------------------------------------------------------------------------

    def _user(self, number: int, name: str, short: str, *, active: bool = True) -> Document:
        return {"id": uuid(1, number), "name": name, "displayName": short, "email": f"{short}@example.org",
                "active": active, "admin": False, "isMe": number == 1}  # fmt: skip

    def _team(self, number: int, key: str, name: str) -> Document:
        return {"id": uuid(2, number), "key": key, "name": name, "description": None, "private": False}

    def _label(self, number: int, name: str, team: Document | None) -> Document:
        return {"id": uuid(4, number), "name": name, "color": "#fff", "description": None, "isGroup": False,
                "team": team, "parent": None}  # fmt: skip

    def _of(self, entries: list[Document], id_: str | None, what: str) -> Document:
        found = [one for one in entries if id_ in (one["id"], one.get("identifier"))]
        if not found:
            raise _not_found(what)
        return found[0]

    # --- what is asked ------------------------------------------------------------------------------------------

    def _root(self) -> Document:
        lists = {
            "issues": self.issues, "teams": self.teams, "workflowStates": self.states, "issueLabels": self.labels,
            "users": self.users, "projects": self.projects, "cycles": self.cycles,
        }  # fmt: skip
        return {
            "viewer": self.users[0],
            "organization": {"id": uuid(8, 1), "name": "Acme", "urlKey": "acme"},
            "issue": self._issue,
            "searchIssues": self._search,
            "issueCreate": self._create, "issueUpdate": self._update, "commentCreate": self._comment,
            "issueAddLabel": self._add_label, "issueRemoveLabel": self._remove_label, "issueArchive": self._archive,
            "attachmentLinkURL": self._attach,
            **{name: self._paged(lambda entries=entries: entries) for name, entries in lists.items()},
        }  # fmt: skip

    def _paged(self, entries: Callable[[], list[Document]]) -> Callable[..., Document]:
        def resolve(info: Any, first: int = 50, after: str | None = None, filter: Any = None, **more: Any) -> Document:  # noqa: A002
            found = [one for one in entries() if filter is None or matches(one, filter)]
            start = next((place + 1 for place, one in enumerate(found) if one["id"] == after), 0)
            if after is not None and not start:
                raise GraphQLError("invalid cursor", extensions={"code": "INPUT_ERROR", "type": "invalid input"})
            page = found[start : start + first]
            more_there = start + first < len(found)
            ends = {"startCursor": page[0]["id"], "endCursor": page[-1]["id"]} if page else {}
            info_of_page = {"hasNextPage": more_there, "hasPreviousPage": start > 0} | ends
            return {"nodes": page, "pageInfo": info_of_page, "totalCount": len(found)}

        return resolve

    def _issue(self, info: Any, id: str) -> Document:  # noqa: A002
        return self._of(self.issues, id, "Issue")

    def _search(self, info: Any, term: str, **args: Any) -> Document:
        found = [issue for issue in self.issues if term.lower() in issue["title"].lower()]
        return self._paged(lambda: found)(info, **args)

    # --- changes ------------------------------------------------------------------------------------------------

    def _done(self, **more: Any) -> Document:
        return {"success": self.succeeds, "lastSyncId": 1, **more}

    def _create(self, info: Any, input: Document) -> Document:  # noqa: A002
        team = self._of(self.teams, input["teamId"], "Team")
        issue = self.add_issue(input["title"], team=self.teams.index(team))
        self._set(issue, input)
        return self._done(issue=issue)

    def _update(self, info: Any, id: str, input: Document) -> Document:  # noqa: A002
        issue = self._of(self.issues, id, "Issue")
        self._set(issue, input)
        return self._done(issue=issue)

    def _set(self, issue: Document, given: Document) -> None:
        plain = ("title", "description", "priority", "dueDate", "estimate")
        issue |= {name: given[name] for name in plain if name in given}
        linked = {"assignee": self.users, "project": self.projects, "state": self.states, "cycle": self.cycles,
                  "parent": self.issues, "team": self.teams}  # fmt: skip
        for name, entries in linked.items():
            if f"{name}Id" in given:
                id_ = given[f"{name}Id"]
                what = "Issue" if name == "parent" else name.capitalize()
                issue[name] = None if id_ is None else self._of(entries, id_, what)
        if issue["state"]["team"] is not issue["team"] and "stateId" in given:
            raise GraphQLError("Discrepancy between issue team and state team",
                               extensions={"code": "INPUT_ERROR", "type": "invalid input"})  # fmt: skip
        labels = issue["kept"]["labels"]
        labels[:] = self._labels(given["labelIds"]) if "labelIds" in given else labels
        labels += [one for one in self._labels(given.get("addedLabelIds")) if one not in labels]
        labels[:] = [one for one in labels if one["id"] not in (given.get("removedLabelIds") or ())]

    def _labels(self, ids: list[str] | None) -> list[Document]:
        return [self._of(self.labels, id_, "Label") for id_ in ids or ()]

    def _add_label(self, info: Any, id: str, labelId: str) -> Document:  # noqa: A002, N803
        return self._update(info, id, {"addedLabelIds": [labelId]})

    def _remove_label(self, info: Any, id: str, labelId: str) -> Document:  # noqa: A002, N803
        return self._update(info, id, {"removedLabelIds": [labelId]})

    def _archive(self, info: Any, id: str) -> Document:  # noqa: A002
        issue = self._of(self.issues, id, "Issue")
        self.archived.append(issue["identifier"])
        return self._done(entity=issue)

    def _comment(self, info: Any, input: Document) -> Document:  # noqa: A002
        comments = self._of(self.issues, input["issueId"], "Issue")["kept"]["comments"]
        parent = self._of(comments, input["parentId"], "Comment") if "parentId" in input else None
        comment = {"id": uuid(10, len(comments) + 1), "body": input["body"], "url": "https://l/c", "createdAt": NOW,
                   "user": self.users[0], "parent": parent}  # fmt: skip
        comments.append(comment)
        return self._done(comment=comment)

    def _attach(self, info: Any, issueId: str, url: str, title: str | None = None) -> Document:  # noqa: N803
        attachments = self._of(self.issues, issueId, "Issue")["kept"]["attachments"]
        attachments.append({"id": uuid(11, len(attachments) + 1), "url": url, "title": title or url})
        return self._done(attachment=attachments[-1])


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: value == wanted,
    "neq": lambda value, wanted: value != wanted,
    "eqIgnoreCase": lambda value, wanted: isinstance(value, str) and value.lower() == wanted.lower(),
    "contains": lambda value, wanted: wanted in value,
    "in": lambda value, wanted: value in wanted,
    "lte": lambda value, wanted: value <= wanted,
}


def matches(value: Any, wanted: Document) -> bool:
    """Whether an entry fits a filter; of a list one has to."""
    if callable(value):
        value = value(None, first=250)["nodes"]
    if isinstance(value, list):
        entries: list[Any] = value
        return any(matches(one, wanted) for one in entries)
    return all(_holds(value, name, part) for name, part in wanted.items())


def _holds(value: Any, name: str, wanted: Any) -> bool:
    if name in ("and", "or"):
        return (all if name == "and" else any)(matches(value, part) for part in wanted)
    if name == "null":
        return (value is None) == wanted
    if name in _COMPARED:
        return _COMPARED[name](value, wanted)
    return isinstance(value, dict) and matches(value[name], wanted)
