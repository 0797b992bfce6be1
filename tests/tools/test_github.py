"""Every method of GitHub against the strict fake: what it does, how it fails, and that it can be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from halo_lang import catalog
from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.github.methods import ROUTES
from halo_runtime.tools.github.provider import GitHub
from halo_runtime.tools.web.client import WebClient
from tests.fakes.github_documents import REPO, sha
from tests.fakes.github_server import TOKEN, FakeGitHub, refusal
from tests.fakes.wire import Answer, reply

SPEC = catalog.provider("GitHub")
assert SPEC is not None


@pytest.fixture
async def server() -> AsyncIterator[FakeGitHub]:
    async with FakeGitHub() as fake:
        fake.add_issue("It is broken", labels=("bug", "help wanted"), body="Always.")
        fake.add_pull("Mend it")
        fake.add_issue("It is slow")
        fake.files = {"README.md": "# Über\n".encode(), "src/a b.py": b"print()\n"}
        yield fake


def opened(server: FakeGitHub, **more: Any) -> GitHub:
    """A tool for the fake's repository that does not pause between writes."""
    options = {"token": TOKEN, "repo": REPO, "pause": 0.0, **more}
    return GitHub("Repo", server.url, WebClient(["127.0.0.1"]), **options)


async def ask(server: FakeGitHub, method: str, **args: Any) -> Any:
    """Call a method as a run does: through its signature, with its defaults."""
    entry = SPEC.method(method)
    assert entry is not None
    bound = entry.signature.bind((), args)
    assert not bound.problems
    assert not bound.wrong_values()
    tool = opened(server)
    try:
        return await tool.call(method, dict(bound.values()))
    finally:
        await tool.close()


def names(labels: Any) -> list[str]:
    return [label["name"] for label in labels]


def of(key: str) -> Callable[[Any], list[Any]]:
    return lambda result: [item[key] for item in result["items"]]


# Method → arguments, what is looked at in the result, what it is.
DONE: dict[str, tuple[dict[str, Any], Callable[[Any], Any], Any]] = {
    "list_issues": ({}, of("number"), [1, 3]),
    "get_issue": ({"number": 1}, lambda issue: (issue["title"], issue["user"]), ("It is broken", {"login": "ada"})),
    "create_issue": (
        {"title": "New", "body": "b", "labels": ["bug"], "assignees": ["ada"]},
        lambda issue: (issue["number"], names(issue["labels"]), issue["assignees"]),
        (4, ["bug"], [{"login": "ada"}]),
    ),
    "update_issue": (
        {"number": 1, "title": "T", "labels": ["x"]},
        lambda issue: (issue["title"], issue["body"], names(issue["labels"])),
        ("T", "Always.", ["x"]),
    ),
    "close_issue": (
        {"number": 1, "state_reason": "not_planned"},
        lambda issue: (issue["state"], issue["state_reason"]),
        ("closed", "not_planned"),
    ),
    "list_comments": ({"number": 1}, lambda found: found, {"items": [], "more": False}),
    "create_comment": ({"number": 1, "body": "Seen."}, lambda comment: comment["body"], "Seen."),
    "add_labels": ({"number": 1, "labels": ["new"]}, names, ["bug", "help wanted", "new"]),
    "remove_label": ({"number": 1, "name": "help wanted"}, names, ["bug"]),
    "set_labels": ({"number": 1, "labels": ["only"]}, names, ["only"]),
    "add_assignees": ({"number": 1, "assignees": ["ada"]}, lambda issue: issue["assignees"], [{"login": "ada"}]),
    "list_pulls": ({}, of("number"), [2]),
    "get_pull": ({"number": 2}, lambda pull: (pull["mergeable"], pull["head"]["ref"]), (True, "fix")),
    "create_pull": (
        {"head": "new", "base": "main", "title": "N", "draft": True},
        lambda pull: (pull["number"], pull["draft"], pull["head"]["repo"]),
        (4, True, {"full_name": REPO}),
    ),
    "list_files": ({"number": 2}, of("filename"), ["README.md", "src/a b.py"]),
    "create_review": (
        {"number": 2, "event": "COMMENT", "body": "Fine.", "comments": [{"path": "a", "line": 1, "body": "!"}]},
        lambda review: (review["state"], review["body"]),
        ("COMMENTED", "Fine."),
    ),
    "merge_pull": ({"number": 2, "merge_method": "squash", "sha": sha("fix")}, lambda done: done["merged"], True),
    "get_repo": ({}, lambda repo: (repo["full_name"], repo["default_branch"]), (REPO, "main")),
    "get_file": (
        {"path": "/README.md", "ref": "main"},
        lambda file: file,
        {"path": "README.md", "text": "# Über\n", "sha": sha("# Über\n")},
    ),
    "put_file": (
        {"path": "src/a b.py", "content": "é\n", "message": "m", "sha": sha("print()\n")},
        lambda done: done,
        {"path": "src/a b.py", "sha": sha("é\n"), "commit": sha("m")},
    ),
    "list_tree": ({}, lambda tree: (of("path")(tree), tree["truncated"]), (["README.md", "src/a b.py"], False)),
    "list_commits": ({"path": "a.py"}, lambda found: found["items"][0]["commit"]["message"], "Fix it"),
    "compare": (
        {"base": "main", "head": "acme:fix"},
        lambda done: (done["ahead_by"], done["files"][0]["filename"], done["commits"][0]["sha"]),
        (1, "a.py", sha("acme:fix")),
    ),
    "list_checks": ({"ref": "feature/x"}, lambda found: (of("name")(found), found["total"]), (["test", "lint"], 2)),
    "list_workflow_runs": ({"branch": "dev"}, of("head_branch"), ["dev"]),
    "search_issues": ({"q": "broken"}, lambda found: (found["total"], found["incomplete"]), (1, False)),
    "search_code": ({"q": "print"}, of("path"), ["README.md", "src/a b.py"]),
    "search_repositories": ({"q": "api"}, of("full_name"), [REPO]),
}


def test_code_and_catalogue_have_the_same_methods_and_arguments() -> None:
    assert set(ROUTES) == set(SPEC.method_names) == set(DONE)
    paging = {"per_page", "page", "limit"}
    for method in SPEC.methods:
        route, arguments = ROUTES[method.name], {p.name for p in method.signature.parameters} - {"repo"}
        placed = {*route.query, *route.body, *(name for name in arguments if f"{{{name}}}" in route.path)}
        assert placed | (paging if route.items is not None else set()) == arguments, method.name
        assert (method.effect == "read") == (route.verb == "GET"), method.name


@pytest.mark.parametrize("method", DONE)
async def test_every_method_does_what_it_says(server: FakeGitHub, method: str) -> None:
    args, look, expected = DONE[method]
    assert look(await ask(server, method, **args)) == expected


@pytest.mark.parametrize("method", DONE)
async def test_every_method_fails_as_github_does(server: FakeGitHub, method: str) -> None:
    server.answer(refusal(404, "Not Found"))
    with pytest.raises(ToolError, match=rf"^Repo\.{method}: .* answered 404 to .*Not Found; .*may not see") as caught:
        await ask(server, method, **DONE[method][0])
    assert (caught.value.status, caught.value.retryable) == (404, False)


@pytest.mark.parametrize("method", DONE)
async def test_every_method_can_be_cancelled_half_way(server: FakeGitHub, method: str) -> None:
    server.answer(Answer(hang=True))
    task = asyncio.create_task(ask(server, method, **DONE[method][0]))
    async with asyncio.timeout(5):
        await server.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()


@pytest.mark.parametrize("method", DONE)
async def test_only_what_may_happen_twice_is_tried_again(server: FakeGitHub, method: str) -> None:
    server.answer(refusal(502, "Server Error"))
    with pytest.raises(ToolError) as caught:
        await ask(server, method, **DONE[method][0])
    entry = SPEC.method(method)
    assert entry is not None
    assert caught.value.retryable is (entry.effect == "read" or entry.idempotent)


# --- what goes along --------------------------------------------------------------------------------------------------


async def test_whole_numbers_may_come_as_models_write_them(server: FakeGitHub) -> None:
    assert (await ask(server, "get_issue", number=1.0))["number"] == 1


async def test_labels_in_a_query_are_joined(server: FakeGitHub) -> None:
    found = await ask(server, "list_issues", labels=["bug", "help wanted"], state="all")
    assert of("number")(found) == [1]
    assert server.asked[0].query == {"labels": "bug,help wanted", "state": "all", "per_page": "30"}


@pytest.mark.parametrize("method", ["create_issue", "add_assignees"])
async def test_what_github_leaves_out_silently_is_told(method: str) -> None:
    async with FakeGitHub(may_push=False) as server:
        server.add_issue("one")
        args: dict[str, Any] = {"title": "t", "labels": ["bug"]} if method == "create_issue" else {"number": 1}
        result = await ask(server, method, **args, assignees=["ada"])
    assert result["dropped"] == {"assignees": ["ada"]} | ({"labels": ["bug"]} if "title" in args else {})


async def test_a_search_of_a_repositorys_tool_looks_there_unless_it_says_where(server: FakeGitHub) -> None:
    for method, q in (("search_issues", "a"), ("search_code", "a org:x"), ("search_repositories", "a")):
        await ask(server, method, q=q)
    assert [asked.query["q"] for asked in server.asked] == [f"a repo:{REPO}", "a org:x", "a"]


async def test_another_repository_can_be_named(server: FakeGitHub) -> None:
    server._refusals_expected = True
    with pytest.raises(ToolError, match="repos/acme/other/issues/1"):
        await ask(server, "get_issue", number=1, repo="acme/other")
    with pytest.raises(ToolError, match='repo is written "owner/name"'):
        await ask(server, "get_issue", number=1, repo="acme/../secret")


async def test_a_tool_without_a_repository_asks_for_one(server: FakeGitHub) -> None:
    tool = opened(server, repo=None)
    with pytest.raises(ToolError, match="no repository is named"):
        await tool.call("get_issue", {"number": 1})
    assert (await tool.call("get_issue", {"number": 1, "repo": REPO}))["number"] == 1
    await tool.close()


@pytest.mark.parametrize("path", ["../../secret", "a/../../b", "%2e%2e/x"])
async def test_a_files_path_stays_in_the_repository(server: FakeGitHub, path: str) -> None:
    server._refusals_expected = True
    with pytest.raises(ToolError, match=r"lead out|404"):
        await ask(server, "get_file", path=path)
    assert all(sent.path.startswith(f"/repos/{REPO}/contents/") for sent in server.requests)


# --- pages ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(server: FakeGitHub) -> FakeGitHub:
    """250 issues, every fifth a pull request."""
    server.issues.clear()
    for number in range(1, 251):
        server.add_pull("p", f"b{number}") if number % 5 == 0 else server.add_issue(f"issue {number}")
    return server


@pytest.mark.parametrize(
    ("args", "count", "more", "requests"),
    [
        ({}, 24, True, 1),
        ({"per_page": 100, "page": 3}, 40, False, 1),
        ({"limit": 10}, 10, True, 1),
        ({"limit": 150}, 150, True, 2),
        ({"limit": 1000}, 200, False, 3),
    ],
)
async def test_pages(many: FakeGitHub, args: dict[str, int], count: int, more: bool, requests: int) -> None:
    result = await ask(many, "list_issues", **args)
    assert (len(result["items"]), result["more"], len(many.requests)) == (count, more, requests)
    numbers = of("number")(result)
    assert numbers == sorted(set(numbers))


async def test_a_next_page_at_another_host_is_not_asked_for(server: FakeGitHub) -> None:
    server.answer(reply([], headers={"link": '<https://evil.example/?page=2>; rel="next"'}))
    with pytest.raises(ToolError, match="at another host"):
        await ask(server, "list_issues", limit=5)
    assert len(server.requests) == 1


# --- files ------------------------------------------------------------------------------------------------------------


async def test_a_large_file_is_asked_for_as_it_is(server: FakeGitHub) -> None:
    server.files["big.txt"] = b"x" * 1_000_001
    assert len((await ask(server, "get_file", path="big.txt"))["text"]) == 1_000_001
    assert [sent.headers["accept"] for sent in server.requests][1] == "application/vnd.github.raw+json"


@pytest.mark.parametrize(("path", "problem"), [("src", "is a folder"), ("bin", "no text in UTF-8")])
async def test_what_is_no_text_file_is_not_read(server: FakeGitHub, path: str, problem: str) -> None:
    server.files["bin"] = b"\xff\xfe\x00"
    with pytest.raises(ToolError, match=problem):
        await ask(server, "get_file", path=path)


async def test_a_submodule_is_no_file(server: FakeGitHub) -> None:
    server.answer(reply({"type": "submodule", "path": "src"}))
    with pytest.raises(ToolError, match="is no file"):
        await ask(server, "get_file", path="src")


# --- writes -----------------------------------------------------------------------------------------------------------


async def test_writes_go_one_after_the_other_with_a_pause(server: FakeGitHub) -> None:
    tool, gate = opened(server, pause=0.05), asyncio.Event()
    server.answer(reply([], gate=gate))
    loop = asyncio.get_running_loop()
    first = asyncio.create_task(tool.call("add_labels", {"number": 1, "labels": ["a"]}))
    await server.hanging.wait()
    second = asyncio.create_task(tool.call("add_labels", {"number": 1, "labels": ["b"]}))
    await tool.call("get_issue", {"number": 1})  # reading waits for nobody
    assert [sent.method for sent in server.requests] == ["POST", "GET"]
    begun = loop.time()
    gate.set()
    await asyncio.gather(first, second)
    assert loop.time() - begun >= 0.05
    await tool.close()


def test_a_declaration_without_anything_is_the_public_service() -> None:
    assert isinstance(tool_factory("GitHub")(ToolConfig("Repo", "GitHub", {}, Path())), GitHub)
