"""Every method of Linear against the strict fake: what it does, how it fails, that it is cancelled; names, pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from halo_lang import catalog
from halo_runtime.errors import ToolError
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.linear.documents import CHANGES, LISTINGS
from halo_runtime.tools.linear.provider import Linear, open_linear
from tests.fakes.linear_server import KEY, FakeLinear, refusal, uuid
from tests.fakes.wire import Answer, reply
from tests.tools.calling import call_as_a_run

SPEC = catalog.provider("Linear")
assert SPEC is not None
ADA = "ada@example.org"


@pytest.fixture
async def server() -> AsyncIterator[FakeLinear]:
    """Two issues of ENG, one of OPS."""
    async with FakeLinear() as fake:
        fake.add_issue("It is broken", labels=("Bug",), description="Always.", assignee=fake.users[0])
        fake.add_issue("It is slow")
        fake.add_issue("Deploy it", team=1)
        yield fake


def opened(server: FakeLinear, *, now: float = 0.0, **settings: Any) -> Linear:
    given = {"key": KEY, "baseUrl": server.url, "team": "ENG"} | settings
    return open_linear(ToolConfig("Plan", "Linear", given, Path()), lambda: now)


ask = partial(call_as_a_run, SPEC)


@pytest.fixture
async def tool(server: FakeLinear) -> AsyncIterator[Linear]:
    made = opened(server)
    yield made
    await made.close()


def of(key: str) -> Callable[[Any], list[Any]]:
    return lambda result: [item[key] for item in result["items"]]


def names(issue: Any) -> list[str]:
    return [label["name"] for label in issue["labels"]]


def entry(kind: int, number: int, **more: Any) -> dict[str, Any]:
    return {"id": uuid(kind, number), **more}


# Method → arguments, what is looked at in the result, what it is.
DONE: dict[str, tuple[dict[str, Any], Callable[[Any], Any], Any]] = {
    "get_issue": (
        {"id": "ENG-1"},
        lambda issue: (issue["title"], issue["description"], names(issue), issue["team"]["key"], issue["comments"]),
        ("It is broken", "Always.", ["Bug"], "ENG", []),
    ),
    "list_issues": ({}, lambda found: (of("identifier")(found), found["cursor"]), (["ENG-1", "ENG-2"], None)),
    "search_issues": (
        {"term": "it is"},
        lambda found: (of("identifier")(found), found["cursor"], found["total"]),
        (["ENG-1", "ENG-2"], None, 2),
    ),
    "create_issue": (
        {"title": "New", "description": "b", "priority": 2, "state": "in progress", "labels": ["bug", "docs"]},
        lambda issue: issue,
        entry(7, 4, identifier="ENG-4", url="https://linear.app/acme/issue/ENG-4"),
    ),
    "update_issue": (
        {"id": "ENG-1", "title": "T", "assignee": "", "state": "Done", "addLabels": ["Ui"], "removeLabels": ["Docs"]},
        lambda issue: (issue["title"], issue["assignee"], issue["state"]["name"], names(issue)),
        ("T", None, "Done", ["Bug", "Ui"]),
    ),
    "add_comment": (
        {"id": "ENG-1", "body": "Seen."},
        lambda comment: (comment["id"], comment["body"], comment["user"]["name"]),
        (uuid(10, 1), "Seen.", "Ada Lovelace"),
    ),
    "add_label": ({"id": "ENG-2", "label": "docs"}, names, ["Docs"]),
    "remove_label": ({"id": "ENG-1", "label": "Docs"}, names, ["Bug"]),
    "archive": ({"id": "ENG-1"}, lambda done: done, True),
    "attach_link": (
        {"id": "ENG-1", "url": "https://example.org/x"},
        lambda made: made,
        entry(11, 1, title="https://example.org/x", url="https://example.org/x"),
    ),
    "list_teams": ({}, of("key"), ["ENG", "OPS"]),
    "list_states": ({}, of("name"), ["Todo", "In Progress", "Done"]),
    "list_labels": ({}, of("name"), ["Bug", "Bug", "Docs", "Ui"]),
    "list_users": ({}, of("email"), [ADA, "bob@example.org"]),
    "list_projects": ({}, of("name"), ["Launch", "Twin", "Twin"]),
    "viewer": ({}, lambda me: me, entry(1, 1, name="Ada Lovelace", displayName="ada", email=ADA)),
}  # fmt: skip
BY_ID = {  # the same without names, so that the first request is the method's own
    **{method: args for method, (args, *_) in DONE.items()},
    "create_issue": {"title": "New", "team": uuid(2, 1)},
    "update_issue": {"id": "ENG-1", "title": "T"},
}


def test_code_and_catalogue_have_the_same_methods() -> None:
    assert set(DONE) == set(SPEC.method_names) == {*LISTINGS, *CHANGES, "get_issue", "viewer"}
    assert {one.name for one in SPEC.methods if one.effect != "read"} == set(CHANGES)


@pytest.mark.parametrize("method", DONE)
async def test_every_method_does_what_it_says(server: FakeLinear, tool: Linear, method: str) -> None:
    args, look, expected = DONE[method]
    assert look(await ask(tool, method, **args)) == expected
    assert server.asked[-1].mutates is (method in CHANGES)


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("method", DONE)
async def test_every_method_fails_as_linear_does(server: FakeLinear, tool: Linear, method: str, status: int) -> None:
    partial = {"issues": {"nodes": []}, "viewer": {"name": "Ada"}}
    server.answer(refusal("Access denied", "FORBIDDEN", "forbidden", status=status, data=partial))
    with pytest.raises(ToolError, match=rf"^Plan\.{method}: 127.* refused: Access denied; the key may not") as caught:
        await ask(tool, method, **DONE[method][0])
    assert (caught.value.detail, caught.value.retryable) == ("Access denied", False)
    assert len(server.requests) == 1


@pytest.mark.parametrize("method", DONE)
async def test_every_method_can_be_cancelled_half_way(server: FakeLinear, tool: Linear, method: str) -> None:
    server.answer(Answer(hang=True))
    task = asyncio.create_task(ask(tool, method, **DONE[method][0]))
    async with asyncio.timeout(5):
        await server.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()


FAILURES = [reply({}, 502), refusal("oops", "INTERNAL_SERVER_ERROR", "internal error"), Answer(cut=True)]


@pytest.mark.parametrize("answer", FAILURES)
@pytest.mark.parametrize("method", set(DONE) - {"add_label", "remove_label"})
async def test_only_what_may_happen_twice_is_tried_again(
    server: FakeLinear, tool: Linear, method: str, answer: Answer
) -> None:
    server.answer(answer)
    with pytest.raises(ToolError) as caught:
        await ask(tool, method, **BY_ID[method])
    found = SPEC.method(method)
    assert found is not None
    assert caught.value.retryable is (found.effect == "read" or found.idempotent)


async def test_a_name_that_cannot_be_looked_up_now_can_be_tried_again(server: FakeLinear, tool: Linear) -> None:
    server.answer(reply({}, 502))
    with pytest.raises(ToolError, match=r"^Plan\.create_issue: 127\S+ answered 502") as caught:
        await ask(tool, "create_issue", title="t")
    assert caught.value.retryable
    assert not server.asked[-1].mutates


@pytest.mark.parametrize("method", CHANGES)
async def test_what_was_not_done_is_said(server: FakeLinear, tool: Linear, method: str) -> None:
    server.succeeds = False
    with pytest.raises(ToolError, match=rf"^Plan\.{method}: Linear did not do it") as caught:
        await ask(tool, method, **DONE[method][0])
    assert not caught.value.retryable


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "field", "expected"),
    [
        ({"assignee": ADA.upper()}, "assignee", uuid(1, 1)),
        ({"assignee": "me"}, "assignee", uuid(1, 1)),
        ({"assignee": "Ada Lovelace"}, "assignee", uuid(1, 1)),
        ({"assignee": uuid(1, 2)}, "assignee", uuid(1, 2)),
        ({"state": "DONE"}, "state", uuid(3, 2)),
        ({"project": "launch"}, "project", uuid(5, 0)),
        ({"project": "p1"}, "project", uuid(5, 1)),
        ({"cycle": "7"}, "cycle", uuid(6, 7)),
        ({"cycle": "next"}, "cycle", uuid(6, 8)),
        ({"cycle": "Cycle 6"}, "cycle", uuid(6, 6)),
        ({"parent": "ENG-1"}, "parent", uuid(7, 1)),
        ({"team": "operations", "state": "Todo"}, "team", uuid(2, 2)),
    ],
)
async def test_names_are_turned_into_ids(
    server: FakeLinear, tool: Linear, given: dict[str, Any], field: str, expected: str
) -> None:
    await ask(tool, "create_issue", title="t", **given)
    assert server.issues[-1][field]["id"] == expected


async def test_a_teams_own_label_goes_before_one_of_all_teams(server: FakeLinear, tool: Linear) -> None:
    await ask(tool, "create_issue", title="t", labels=["bug", "Docs"])
    await ask(tool, "create_issue", title="t", labels=["bug"], team="OPS")
    eng, ops = server.issues[-2:]
    assert [label["id"] for label in eng["kept"]["labels"]] == [uuid(4, 1), uuid(4, 2)]
    assert [label["id"] for label in ops["kept"]["labels"]] == [uuid(4, 0)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"assignee": "bob@example.org"}, 'there is no person "bob@example.org" .*; list_users lists them'),
        ({"labels": ["Deploy"]}, 'there is no label "Deploy" that the key can see; list_labels lists them'),
        ({"state": "Nowhere"}, 'there is no state "Nowhere"'),
        ({"cycle": "99"}, 'there is no cycle "99" that the key can see$'),
        ({"team": "XYZ"}, 'there is no team "XYZ"'),
        ({"project": "Twin"}, f'there are 2 of project "Twin"; give the id of one: {uuid(5, 1)}, {uuid(5, 2)}'),
        ({"parent": "ENG-99"}, "Entity not found: Issue; Could not find referenced Issue"),
    ],
)
async def test_a_name_that_is_not_clear_changes_nothing(
    server: FakeLinear, tool: Linear, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolError, match=rf"^Plan\.create_issue: .*{words}"):
        await ask(tool, "create_issue", title="t", **given)
    assert not any(asked.mutates for asked in server.asked if "parent" not in given)


async def test_each_name_is_looked_up_once(server: FakeLinear, tool: Linear) -> None:
    await asyncio.gather(*(ask(tool, "create_issue", title="t", state="Todo", labels=["Bug"]) for _ in range(5)))
    fields = [asked.fields[0] for asked in server.asked]
    assert [fields.count(name) for name in ("teams", "workflowStates", "issueLabels", "issueCreate")] == [1, 1, 1, 5]


async def test_a_tool_without_a_team_asks_for_one(server: FakeLinear) -> None:
    tool = opened(server, team=None)
    for team in ({}, {"team": "*"}):
        with pytest.raises(ToolError, match='no team is named; give team: "ENG"'):
            await ask(tool, "create_issue", title="t", **team)
    assert len((await ask(tool, "list_issues"))["items"]) == 3
    await tool.close()


# --- changes ----------------------------------------------------------------------------------------------------------


async def test_only_what_is_named_is_changed_and_an_empty_text_clears(server: FakeLinear, tool: Linear) -> None:
    await ask(tool, "update_issue", id="ENG-1", priority=1.0, dueDate="2026-02-01")
    assert server.asked[-1].variables["input"] == {"priority": 1, "dueDate": "2026-02-01"}
    cleared = {"description": "", "assignee": "", "project": "", "parent": "", "cycle": "", "dueDate": "", "labels": []}
    await ask(tool, "update_issue", id="ENG-1", **cleared)
    assert server.asked[-1].variables["input"] == {
        "description": None, "dueDate": None, "assigneeId": None, "projectId": None, "cycleId": None, "parentId": None,
        "labelIds": [],
    }  # fmt: skip
    with pytest.raises(ToolError, match="nothing is to be changed"):
        await ask(tool, "update_issue", id="ENG-1", title=None)


async def test_an_issue_can_move_to_another_team(server: FakeLinear, tool: Linear) -> None:
    moved = await ask(tool, "update_issue", id="ENG-2", team="OPS", state="In Progress", labels=["Deploy"])
    assert (moved["team"]["key"], moved["state"]["id"], names(moved)) == ("OPS", uuid(3, 11), ["Deploy"])


async def test_comments_are_read_with_the_issue_and_can_be_answered(server: FakeLinear, tool: Linear) -> None:
    first = await ask(tool, "add_comment", id="ENG-1", body="One")
    await ask(tool, "add_comment", id="ENG-1", body="Two", parent=first["id"])
    await ask(tool, "attach_link", id="ENG-1", url="https://example.org", title="See")
    issue = await ask(tool, "get_issue", id=uuid(7, 1))
    assert [(one["body"], one["parent"]) for one in issue["comments"]] == [("One", None), ("Two", {"id": first["id"]})]
    assert issue["attachments"] == [entry(11, 1, title="See", url="https://example.org")]
    assert "moreComments" not in issue
    server.issues[0]["kept"]["comments"] *= 51
    cut = await ask(tool, "get_issue", id="ENG-1")
    assert (len(cut["comments"]), cut["moreComments"]) == (100, True)


# --- lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({"team": "*"}, ["ENG-1", "ENG-2", "OPS-3"]),
        ({"team": "ops"}, ["OPS-3"]),
        ({"team": uuid(2, 2)}, ["OPS-3"]),
        ({"assignee": "me"}, ["ENG-1"]),
        ({"assignee": ADA}, ["ENG-1"]),
        ({"assignee": uuid(1, 2)}, []),
        ({"labels": ["bug"]}, ["ENG-1"]),
        ({"labels": ["bug", "docs"]}, []),
        ({"state": "todo", "labels": ["Bug"]}, ["ENG-1"]),
        ({"filter": {"title": {"contains": "slow"}}}, ["ENG-2"]),
        ({"filter": {"team": {"key": {"eq": "OPS"}}}}, ["OPS-3"]),
        ({"filter": {"or": [{"team": {"key": {"eq": "OPS"}}}, {"priority": {"eq": 1}}]}}, ["OPS-3"]),
        ({"filter": {"team": {"key": {"eq": "OPS"}}}, "team": "ENG"}, []),
        ({"orderBy": "updatedAt", "includeArchived": True}, ["ENG-1", "ENG-2"]),
    ],
)
async def test_a_list_is_narrowed_by_names_without_looking_them_up(
    server: FakeLinear, tool: Linear, args: dict[str, Any], found: list[str]
) -> None:
    assert of("identifier")(await ask(tool, "list_issues", **args)) == found
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("args", "count", "more", "requests"),
    [
        ({}, 50, True, 1),
        ({"first": 10}, 10, True, 1),
        ({"first": 250}, 250, True, 3),
        ({"limit": 150}, 150, True, 2),
        ({"limit": 1000}, 302, False, 4),
    ],
)
@pytest.mark.parametrize("method", ["list_issues", "search_issues"])
async def test_pages(
    server: FakeLinear, tool: Linear, method: str, args: dict[str, int], count: int, more: bool, requests: int
) -> None:
    for number in range(300):
        server.add_issue(f"it {number}")
    found = await ask(tool, method, **args, **({"term": "it"} if method == "search_issues" else {}))
    assert (len(found["items"]), found["cursor"] is not None, len(server.requests)) == (count, more, requests)
    identifiers = of("identifier")(found)
    assert len(set(identifiers)) == count
    assert max(asked.complexity for asked in server.asked) < 10_000
    if more:
        after = await ask(
            tool, method, first=1, after=found["cursor"], **({"term": "it"} if method == "search_issues" else {})
        )
        assert of("identifier")(after) == [server.issues[count + (count >= 2)]["identifier"]]


async def test_a_server_that_always_has_more_ends(server: FakeLinear, tool: Linear) -> None:
    empty = {"nodes": [], "pageInfo": {"hasNextPage": True, "endCursor": "x"}}
    server.answer(reply({"data": {"teams": empty}}))
    assert await ask(tool, "list_teams", limit=1000) == {"items": [], "cursor": "x"}
