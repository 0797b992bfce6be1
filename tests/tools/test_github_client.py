"""githubkit against the same fake: what our fake takes and gives is what a client that is not ours sends and reads."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest

from tests.fakes.github_documents import sha
from tests.fakes.github_server import TOKEN, FakeGitHub

githubkit: Any = pytest.importorskip("githubkit")
WHERE = {"owner": "acme", "repo": "api"}


async def test_a_client_that_is_not_ours_is_at_home_at_the_fake() -> None:
    """Its models read every document with all fields that GitHub promises; one test, as loading them takes seconds."""
    async with FakeGitHub() as server:
        server.add_issue("It is broken", labels=("bug",))
        server.add_pull("Mend it")
        server.files = {"a.txt": b"one\n"}
        async with githubkit.GitHub(
            TOKEN, base_url=server.url + "/", http_cache=False, auto_retry=False, trust_env=False
        ) as client:
            rest = client.rest
            await _issues(rest)
            await _pulls(rest)
            await _repository(rest)
            await _searches(rest)
            with pytest.raises(githubkit.exception.RequestFailed) as caught:
                await rest.issues.async_get(**WHERE, issue_number=99)
            assert caught.value.response.status_code == 404


async def _issues(rest: Any) -> None:
    issues = rest.issues
    assert (await issues.async_get(**WHERE, issue_number=1)).parsed_data.title == "It is broken"
    made = (await issues.async_create(**WHERE, title="New", labels=["bug"], assignees=["ada"])).parsed_data
    assert (made.number, made.user.login) == (3, "ada")
    assert (await issues.async_update(**WHERE, issue_number=3, state="closed")).parsed_data.state == "closed"
    listed = (await issues.async_list_for_repo(**WHERE, state="all", per_page=2)).parsed_data
    assert [issue.number for issue in listed] == [1, 2]
    assert (await issues.async_create_comment(**WHERE, issue_number=1, body="Seen.")).parsed_data.body == "Seen."
    assert len((await issues.async_list_comments(**WHERE, issue_number=1)).parsed_data) == 1
    added = (await issues.async_add_labels(**WHERE, issue_number=1, labels=["a b"])).parsed_data
    assert [label.name for label in added] == ["bug", "a b"]
    left = (await issues.async_remove_label(**WHERE, issue_number=1, name="a b")).parsed_data
    assert [label.name for label in left] == ["bug"]
    await issues.async_set_labels(**WHERE, issue_number=1, labels=["x"])
    assigned = (await issues.async_add_assignees(**WHERE, issue_number=1, assignees=["ada"])).parsed_data
    assert [user.login for user in assigned.assignees] == ["ada"]


async def _pulls(rest: Any) -> None:
    pulls = rest.pulls
    assert (await pulls.async_get(**WHERE, pull_number=2)).parsed_data.head.ref == "fix"
    assert len((await pulls.async_list(**WHERE)).parsed_data) == 1
    await pulls.async_create(**WHERE, title="N", head="new", base="main", draft=True)
    assert (await pulls.async_list_files(**WHERE, pull_number=2)).parsed_data[0].filename == "a.txt"
    reviewed = await pulls.async_create_review(**WHERE, pull_number=2, event="APPROVE", body="Good.")
    assert reviewed.parsed_data.state == "APPROVED"
    assert (await pulls.async_merge(**WHERE, pull_number=2, merge_method="squash")).parsed_data.merged


async def _repository(rest: Any) -> None:
    repos = rest.repos
    assert (await repos.async_get(**WHERE)).parsed_data.default_branch == "main"
    file = (await repos.async_get_content(**WHERE, path="a.txt")).parsed_data
    assert b64decode(file.content) == b"one\n"
    content = b64encode(b"two\n").decode()
    await repos.async_create_or_update_file_contents(
        **WHERE, path="a.txt", message="m", content=content, sha=sha("one\n")
    )
    tree = (await rest.git.async_get_tree(**WHERE, tree_sha="HEAD", recursive="1")).parsed_data
    assert [entry.path for entry in tree.tree] == ["a.txt"]
    assert (await repos.async_list_commits(**WHERE)).parsed_data[0].commit.message == "Fix it"
    compared = (await repos.async_compare_commits(**WHERE, basehead="main...dev")).parsed_data
    assert compared.ahead_by == 1
    assert (await rest.checks.async_list_for_ref(**WHERE, ref="main")).parsed_data.total_count == 2
    runs = (await rest.actions.async_list_workflow_runs_for_repo(**WHERE, branch="dev")).parsed_data
    assert runs.workflow_runs[0].head_branch == "dev"


async def _searches(rest: Any) -> None:
    search = rest.search
    assert (await search.async_issues_and_pull_requests(q="broken")).parsed_data.total_count == 1
    assert (await search.async_code(q="two")).parsed_data.items[0].path == "a.txt"
    assert (await search.async_repos(q="api")).parsed_data.items[0].full_name == "acme/api"
