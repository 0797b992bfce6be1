"""Each method of `GitHub` as the request that it makes and what it keeps of the answer (reference 2.2).

GitHub's objects are large: an issue has some hundred addresses for programs to follow. What is kept are the fields that
people and models read, under GitHub's own names and in their places, so that its documentation holds.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.pick import pick

ISSUE: Final = (
    "number", "title", "state", "state_reason", "body", "html_url", "user.login", "labels.name", "assignees.login",
    "milestone.number", "milestone.title", "type.name", "comments", "locked", "created_at", "updated_at", "closed_at",
    "pull_request.html_url",
)  # fmt: skip
COMMENT: Final = ("id", "body", "html_url", "user.login", "author_association", "created_at", "updated_at")
LABEL: Final = ("name", "color", "description")
PULL: Final = (
    "number", "title", "state", "draft", "body", "html_url", "user.login", "labels.name", "assignees.login",
    "requested_reviewers.login", "head.ref", "head.sha", "head.repo.full_name", "base.ref", "base.sha", "merged",
    "mergeable", "mergeable_state", "merge_commit_sha", "additions", "deletions", "changed_files", "commits",
    "comments", "review_comments", "created_at", "updated_at", "closed_at", "merged_at",
)  # fmt: skip
CHANGED_FILE: Final = (
    "filename", "previous_filename", "status", "additions", "deletions", "changes", "patch", "sha",
)  # fmt: skip
REVIEW: Final = ("id", "state", "body", "html_url", "user.login", "commit_id", "submitted_at")
MERGED: Final = ("merged", "sha", "message")
REPOSITORY: Final = (
    "full_name", "description", "private", "visibility", "archived", "fork", "default_branch", "language", "topics",
    "license.spdx_id", "stargazers_count", "forks_count", "open_issues_count", "html_url", "created_at", "updated_at",
    "pushed_at",
)  # fmt: skip
COMMIT: Final = (
    "sha", "html_url", "author.login", "commit.message", "commit.author.name", "commit.author.date", "parents.sha",
)  # fmt: skip
TREE_ENTRY: Final = ("path", "type", "mode", "size", "sha")
COMPARED: Final = (
    "status", "ahead_by", "behind_by", "total_commits", "html_url",
    *(f"commits.{field}" for field in COMMIT), *(f"files.{field}" for field in CHANGED_FILE),
)  # fmt: skip
CHECK: Final = (
    "id", "name", "status", "conclusion", "html_url", "started_at", "completed_at", "output.title", "output.summary",
    "app.slug",
)  # fmt: skip
RUN: Final = (
    "id", "name", "display_title", "event", "status", "conclusion", "head_branch", "head_sha", "run_number",
    "run_attempt", "html_url", "created_at", "updated_at",
)  # fmt: skip
FOUND_CODE: Final = ("name", "path", "sha", "html_url", "repository.full_name")

Result = Callable[[Json, JsonObject], Json]
"""Makes a method's result of the service's document and the call's arguments."""


@record
class Route:
    """A method's request. In `path`, `{name}` is an argument; `repo` is in front of it unless it begins with `/search`.

    `query` and `body` name the arguments that go there, where they are given; `fixed` is in the body always. A method
    that lists has its items at `items` of the document ("" where the document is the list) and keeps `keep` of each.
    """

    verb: str
    path: str
    keep: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    fixed: JsonObject | None = None
    items: str | None = None
    result: Result | None = None

    def made(self, document: Json, arguments: JsonObject) -> Json:
        """The method's result."""
        return pick(document, self.keep).value if self.result is None else self.result(document, arguments)


def dropped(document: JsonObject, arguments: JsonObject) -> JsonObject:
    """What was asked for and silently left out: GitHub ignores labels and assignees of who may not push."""
    found: JsonObject = {}
    for field, name in (("labels", "name"), ("assignees", "login")):
        there = {str(item.get(name)).lower() for item in document.get(field) or () if is_object(item)}
        missing = [wanted for wanted in arguments.get(field) or () if str(wanted).lower() not in there]
        if missing:
            found[field] = missing
    return found


def _issue_with_dropped(document: Json, arguments: JsonObject) -> Json:
    """The issue; what of the labels and assignees was not taken stands in `dropped`."""
    issue: JsonObject = pick(document, ISSUE).value
    left_out = dropped(document, arguments)
    return issue | {"dropped": left_out} if left_out else issue


def _written_file(document: Json, arguments: JsonObject) -> Json:
    """`{path, sha, commit}` of what `put_file` has written."""
    content: Json = document.get("content") or {}
    commit: Json = document.get("commit") or {}
    return {"path": content.get("path"), "sha": content.get("sha"), "commit": commit.get("sha")}


def _tree(document: Json, arguments: JsonObject) -> Json:
    """`{items, truncated}`: GitHub itself cuts trees of more than 100,000 entries."""
    tree: Json = document.get("tree")
    return {
        "items": pick(tree, TREE_ENTRY).value if is_list(tree) else [],
        "truncated": bool(document.get("truncated")),
    }


def encoded(text: str) -> str:
    """A file's text as GitHub takes it."""
    return b64encode(text.encode("utf-8", "replace")).decode("ascii")


_ISSUE: Final = "/issues/{number}"
_PULL: Final = "/pulls/{number}"

ROUTES: Final[dict[str, Route]] = {
    "list_issues": Route(
        "GET", "/issues", ISSUE, query=("state", "labels", "assignee", "creator", "since", "sort", "direction"),
        items="",
    ),
    "get_issue": Route("GET", _ISSUE, ISSUE),
    "create_issue": Route(
        "POST", "/issues", body=("title", "body", "labels", "assignees", "milestone", "type"),
        result=_issue_with_dropped,
    ),
    "update_issue": Route(
        "PATCH", _ISSUE, body=("title", "body", "state", "labels", "assignees", "milestone"),
        result=_issue_with_dropped,
    ),
    "close_issue": Route("PATCH", _ISSUE, ISSUE, body=("state_reason",), fixed={"state": "closed"}),
    "list_comments": Route("GET", f"{_ISSUE}/comments", COMMENT, items=""),
    "create_comment": Route("POST", f"{_ISSUE}/comments", COMMENT, body=("body",)),
    "add_labels": Route("POST", f"{_ISSUE}/labels", LABEL, body=("labels",)),
    "remove_label": Route("DELETE", f"{_ISSUE}/labels/{{name}}", LABEL),
    "set_labels": Route("PUT", f"{_ISSUE}/labels", LABEL, body=("labels",)),
    "add_assignees": Route("POST", f"{_ISSUE}/assignees", body=("assignees",), result=_issue_with_dropped),
    "list_pulls": Route("GET", "/pulls", PULL, query=("state", "head", "base"), items=""),
    "get_pull": Route("GET", _PULL, PULL),
    "create_pull": Route("POST", "/pulls", PULL, body=("head", "base", "title", "body", "draft")),
    "list_files": Route("GET", f"{_PULL}/files", CHANGED_FILE, items=""),
    "create_review": Route("POST", f"{_PULL}/reviews", REVIEW, body=("event", "body", "comments")),
    "merge_pull": Route("PUT", f"{_PULL}/merge", MERGED, body=("merge_method", "sha")),
    "get_repo": Route("GET", "", REPOSITORY),
    "get_file": Route("GET", "/contents/{path}", query=("ref",)),
    "put_file": Route(
        "PUT", "/contents/{path}", body=("content", "message", "sha", "branch"), result=_written_file
    ),
    "list_tree": Route("GET", "/git/trees/{ref}?recursive=1", result=_tree),
    "list_commits": Route("GET", "/commits", COMMIT, query=("sha", "path", "since", "until"), items=""),
    "compare": Route("GET", "/compare/{base}...{head}", COMPARED),
    "list_checks": Route("GET", "/commits/{ref}/check-runs", CHECK, items="check_runs"),
    "list_workflow_runs": Route("GET", "/actions/runs", RUN, query=("branch", "status"), items="workflow_runs"),
    "search_issues": Route("GET", "/search/issues", ISSUE, query=("q",), items="items"),
    "search_code": Route("GET", "/search/code", FOUND_CODE, query=("q",), items="items"),
    "search_repositories": Route("GET", "/search/repositories", REPOSITORY, query=("q",), items="items"),
}  # fmt: skip
"""Every method of the catalogue."""
