"""What GitHub's REST API refuses: a request in, the refusal that it would get out.

Written from the service's documentation and not from our client, so that the two check each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fakes.wire import Received

VERSIONS = ("2022-11-28", "2026-03-10")
MEDIA = ("application/vnd.github+json", "application/vnd.github.raw+json", "application/json", "*/*")
PAGES = "per_page page"


class Refused(Exception):
    """A refusal with this status, message and `errors`."""

    def __init__(self, status: int, message: str, errors: list[dict[str, str]] | None = None) -> None:
        super().__init__(f"{status} {message} {errors or ''}")
        self.status, self.message, self.errors = status, message, errors


@dataclass(frozen=True)
class Rule:
    """An operation: which query it takes, and its body's fields with their types; `!` marks those it must have."""

    name: str
    method: str
    path: str
    query: str = ""
    body: dict[str, type | tuple[type, ...]] | None = None
    resource: str = "Issue"


@dataclass(frozen=True)
class Asked:
    """A request that is in order: the operation, the parts of its path, its query and its body."""

    name: str
    parts: dict[str, str]
    query: dict[str, str]
    body: Any


_N = r"(?P<number>\d+)"
RULES = (
    Rule("get_repo", "GET", r""),
    Rule("list_issues", "GET", r"/issues", f"state labels assignee creator since sort direction {PAGES} after"),
    Rule("create_issue", "POST", r"/issues", body={
        "title!": (str, int), "body": str, "labels": list, "assignees": list, "milestone": (int, str), "type": str}),
    Rule("get_issue", "GET", rf"/issues/{_N}"),
    Rule("update_issue", "PATCH", rf"/issues/{_N}", body={
        "title": str, "body": str, "state": str, "state_reason": str, "labels": list, "assignees": list,
        "milestone": int, "type": str}),
    Rule("list_comments", "GET", rf"/issues/{_N}/comments", f"since {PAGES}"),
    Rule("create_comment", "POST", rf"/issues/{_N}/comments", body={"body!": str}, resource="IssueComment"),
    Rule("add_labels", "POST", rf"/issues/{_N}/labels", body={"labels": list}, resource="Label"),
    Rule("set_labels", "PUT", rf"/issues/{_N}/labels", body={"labels": list}, resource="Label"),
    Rule("remove_label", "DELETE", rf"/issues/{_N}/labels/(?P<name>[^/]+)"),
    Rule("add_assignees", "POST", rf"/issues/{_N}/assignees", body={"assignees": list}),
    Rule("list_pulls", "GET", r"/pulls", f"state head base sort direction {PAGES}"),
    Rule("create_pull", "POST", r"/pulls", resource="PullRequest", body={
        "head!": str, "base!": str, "title": str, "body": str, "draft": bool, "issue": int,
        "maintainer_can_modify": bool, "head_repo": str}),
    Rule("get_pull", "GET", rf"/pulls/{_N}"),
    Rule("list_files", "GET", rf"/pulls/{_N}/files", PAGES),
    Rule("create_review", "POST", rf"/pulls/{_N}/reviews", resource="PullRequestReview",
         body={"event": str, "body": str, "comments": list, "commit_id": str}),
    Rule("merge_pull", "PUT", rf"/pulls/{_N}/merge",
         body={"merge_method": str, "sha": str, "commit_title": str, "commit_message": str}),
    Rule("get_file", "GET", r"/contents/(?P<path>.*)", "ref"),
    Rule("put_file", "PUT", r"/contents/(?P<path>.+)", body={
        "content!": str, "message!": str, "sha": str, "branch": str, "committer": dict, "author": dict}),
    Rule("list_tree", "GET", r"/git/trees/(?P<ref>[^/]+)", "recursive"),
    Rule("list_commits", "GET", r"/commits", f"sha path author committer since until {PAGES}"),
    Rule("compare", "GET", r"/compare/(?P<base>[^/]+?)\.\.\.(?P<head>[^/]+)", PAGES),
    Rule("list_checks", "GET", r"/commits/(?P<ref>[^/]+)/check-runs", f"check_name status filter app_id {PAGES}"),
    Rule("list_workflow_runs", "GET", r"/actions/runs",
         f"actor branch event status created exclude_pull_requests check_suite_id head_sha {PAGES}"),
)  # fmt: skip
SEARCHES = tuple(
    Rule(f"search_{name}", "GET", rf"/search/{name}", f"q sort order {PAGES}")
    for name in ("issues", "code", "repositories")
)
CHOICES = {
    "state": ("open", "closed", "all"), "direction": ("asc", "desc"), "sort": ("created", "updated", "comments"),
    "event": ("APPROVE", "REQUEST_CHANGES", "COMMENT"), "merge_method": ("merge", "squash", "rebase"),
    "state_reason": ("completed", "not_planned", "duplicate", "reopened"),
}  # fmt: skip


def read(request: Received, base: str, repo: str, repo_id: int, token: str | None) -> Asked:
    """The request as an operation. Raises Refused."""
    _check_headers(request.headers, token)
    parts = urlsplit(request.path)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    rule, found = _route(request.method, parts.path.removeprefix(base), repo, repo_id, "after" in query)
    if unknown := query.keys() - set(rule.query.split()):
        raise Refused(422, f"the query has {sorted(unknown)}")
    _check_values(rule, query)
    _check_body(rule, request.body)
    return Asked(rule.name, {name: unquote(text) for name, text in found.groupdict().items()}, query, request.body)


def _check_headers(headers: dict[str, str], token: str | None) -> None:
    if not headers.get("user-agent"):
        raise Refused(403, "Request forbidden by administrative rules. Please make sure your request has a User-Agent")
    if headers.get("accept", "*/*") not in MEDIA:
        raise Refused(415, f"Unsupported 'Accept' header: {headers['accept']}")
    if headers.get("x-github-api-version", VERSIONS[0]) not in VERSIONS:
        raise Refused(400, "Invalid API version")
    sent = headers.get("authorization")
    if sent is not None and sent not in (f"Bearer {token}", f"token {token}"):
        raise Refused(401, "Bad credentials")
    if sent is None and token is not None:
        raise Refused(404, "Not Found")  # what is private is not there for strangers


def _route(method: str, path: str, repo: str, repo_id: int, paged: bool) -> tuple[Rule, re.Match[str]]:
    """The operation at a path. A repository's id stands for its name in links to next pages, with their cursor."""
    for rule in SEARCHES:
        if rule.method == method and (found := re.fullmatch(rule.path, path)):
            return rule, found
    for prefix in (f"/repos/{repo}", *([f"/repositories/{repo_id}"] if paged else [])):
        for rule in RULES if path.startswith(prefix) else ():
            if rule.method == method and (found := re.fullmatch(rule.path, path.removeprefix(prefix))):
                return rule, found
    raise Refused(404, "Not Found")


def _check_values(rule: Rule, query: dict[str, str]) -> None:
    for name in ("per_page", "page"):
        if name in query and not re.fullmatch(r"[1-9]\d*", query[name]):
            raise Refused(422, f"{name} is {query[name]}")
    if int(query.get("per_page", "30")) > 100:
        raise Refused(422, "per_page is over 100")
    if rule.name.startswith("search") and not query.get("q", "").strip():
        raise Refused(422, "Validation Failed", [{"resource": "Search", "field": "q", "code": "missing"}])
    if rule.name == "list_workflow_runs":
        return
    for name in query.keys() & CHOICES.keys():
        if query[name] not in CHOICES[name]:
            raise Refused(422, f"{name} is {query[name]}")


def _check_body(rule: Rule, body: Any) -> None:
    if rule.body is None:
        if body is not None:
            raise Refused(400, "Body should be empty")
        return
    if not isinstance(body, dict):
        raise Refused(400, "Problems parsing JSON")
    fields = {name.rstrip("!"): kind for name, kind in rule.body.items()}
    for name in (name[:-1] for name in rule.body if name.endswith("!")):
        if body.get(name) in (None, ""):
            missing = {"resource": rule.resource, "field": name, "code": "missing_field"}
            raise Refused(422, "Validation Failed", [missing])
    for name, value in body.items():
        if name not in fields:
            raise Refused(422, f'Invalid request. "{name}" is not a permitted key.')
        if not _is_right(name, value, fields[name]):
            raise Refused(422, f"Invalid request. For '{name}', {value!r} is not right.")


def _is_right(name: str, value: Any, kind: type | tuple[type, ...]) -> bool:
    if value is None:
        return True
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return False
    if name in ("labels", "assignees"):
        return all(isinstance(item, str | dict) for item in value)
    return name not in CHOICES or value in CHOICES[name]
