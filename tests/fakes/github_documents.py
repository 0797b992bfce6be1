"""GitHub's objects in full, as its documentation lists their fields; githubkit's models read them."""

from __future__ import annotations

import hashlib
from base64 import encodebytes
from typing import Any

API = "https://api.github.com"
WEB = "https://github.com"
REPO, REPO_ID = "acme/api", 1296269
NOW = "2026-11-30T10:00:00Z"
Document = dict[str, Any]

_USER_URLS = "followers following gists starred subscriptions organizations repos events received_events"
_REPO_URLS = (
    "archive assignees blobs branches collaborators comments commits compare contents contributors deployments "
    "downloads events forks git_commits git_refs git_tags git issue_comment issue_events issues keys labels languages "
    "merges milestones notifications pulls releases ssh stargazers statuses subscribers subscription tags teams trees "
    "clone hooks svn"
)


def sha(text: str | bytes) -> str:
    """Forty hex digits that stand for a content."""
    return hashlib.sha1(text.encode() if isinstance(text, str) else text).hexdigest()


def urls(names: str, url: str) -> Document:
    return {f"{name}_url": f"{url}/{name}" for name in names.split()}


def user(login: str) -> Document:
    url = f"{API}/users/{login}"
    about = {"login": login, "id": len(login), "node_id": "U_1", "type": "User", "site_admin": False}
    return about | urls(_USER_URLS, url) | {
        "url": url, "html_url": f"{WEB}/{login}", "avatar_url": f"{WEB}/{login}.png", "gravatar_id": "",
    }  # fmt: skip


def label(name: str) -> Document:
    return {
        "id": 208045946, "node_id": "L_1", "url": f"{API}/repos/{REPO}/labels/{name}", "name": name,
        "description": None, "color": "f29513", "default": False, "archived_at": None, "archived_by": None,
    }  # fmt: skip


def repository() -> Document:
    url = f"{API}/repos/{REPO}"
    counts = "forks_count stargazers_count watchers_count size open_issues_count subscribers_count network_count forks"
    flags = "private fork has_issues has_projects has_wiki has_pages has_discussions has_downloads archived disabled"
    return (
        urls(_REPO_URLS, url)
        | dict.fromkeys(f"{counts} open_issues watchers".split(), 1)
        | dict.fromkeys(flags.split(), False)
        | {
            "id": REPO_ID, "node_id": "R_1", "name": "api", "full_name": REPO, "owner": user("acme"), "url": url,
            "html_url": f"{WEB}/{REPO}", "description": "An API.", "mirror_url": None, "homepage": None,
            "language": "Python", "default_branch": "main", "visibility": "public", "topics": ["api"],
            "license": {"key": "mit", "name": "MIT License", "url": None, "spdx_id": "MIT", "node_id": "M"},
            "pushed_at": NOW, "created_at": NOW, "updated_at": NOW,
        }
    )  # fmt: skip


def issue(number: int, title: str, body: str | None = None, **more: Any) -> Document:
    url = f"{API}/repos/{REPO}/issues/{number}"
    return {
        **urls("comments events labels", url), "id": number, "node_id": "I_1", "url": url,
        "repository_url": f"{API}/repos/{REPO}", "html_url": f"{WEB}/{REPO}/issues/{number}", "number": number,
        "state": "open", "state_reason": None, "title": title, "body": body, "user": user("ada"), "labels": [],
        "assignee": None, "assignees": [], "milestone": None, "locked": False, "comments": 0, "closed_at": None,
        "created_at": NOW, "updated_at": NOW, "author_association": "MEMBER", "type": None,
    } | more  # fmt: skip


def comment(number: int, body: str) -> Document:
    url = f"{API}/repos/{REPO}/issues/comments/1"
    return {
        "id": 1, "node_id": "C_1", "url": url, "html_url": f"{WEB}/{REPO}/issues/{number}#c1", "body": body,
        "user": user("ada"), "created_at": NOW, "updated_at": NOW, "author_association": "MEMBER",
        "issue_url": f"{API}/repos/{REPO}/issues/{number}",
    }  # fmt: skip


def pull(number: int, title: str, head: str, base: str, body: str | None = None, *, draft: bool = False) -> Document:
    url = f"{API}/repos/{REPO}/pulls/{number}"
    names = "diff patch issue commits review_comments review_comment comments statuses"
    links = "comments commits statuses html issue review_comments review_comment self"
    counts = "comments review_comments commits additions deletions changed_files"
    return (
        urls(names, url)
        | dict.fromkeys(counts.split(), 1)
        | {
            "id": number, "node_id": "PR_1", "url": url, "html_url": f"{WEB}/{REPO}/pull/{number}", "number": number,
            "state": "open", "locked": False, "title": title, "body": body, "user": user("ada"), "labels": [],
            "milestone": None, "assignee": None, "assignees": [], "requested_reviewers": [], "requested_teams": [],
            "draft": draft, "created_at": NOW, "updated_at": NOW, "closed_at": None, "merged_at": None,
            "merge_commit_sha": None, "head": _side(head), "base": _side(base), "author_association": "MEMBER",
            "_links": {name: {"href": url} for name in links.split()}, "auto_merge": None, "merged": False,
            "mergeable": True, "mergeable_state": "clean", "merged_by": None, "maintainer_can_modify": True,
        }
    )  # fmt: skip


def _side(ref: str) -> Document:
    side = {"label": f"acme:{ref}", "ref": ref, "sha": sha(ref), "user": user("acme")}
    return side | {"repo": repository()}


def changed_file(name: str) -> Document:
    return {
        "sha": sha(name), "filename": name, "status": "modified", "additions": 1, "deletions": 1, "changes": 2,
        "blob_url": f"{WEB}/b", "raw_url": f"{WEB}/r", "contents_url": f"{API}/c", "patch": "@@ -1 +1 @@\n-a\n+b",
    }  # fmt: skip


def review(number: int, state: str, body: str) -> Document:
    link = {"href": f"{WEB}/{REPO}/pull/{number}"}
    return {
        "id": 80, "node_id": "PRR_1", "user": user("ada"), "body": body, "state": state, "html_url": link["href"],
        "pull_request_url": f"{API}/repos/{REPO}/pulls/{number}", "_links": {"html": link, "pull_request": link},
        "submitted_at": NOW, "commit_id": sha("head"), "author_association": "MEMBER",
    }  # fmt: skip


def content_file(path: str, content: bytes) -> Document:
    """A file below 1 MB with its content in lines of base64, a larger one without it."""
    small = len(content) <= 1_000_000
    url = f"{API}/repos/{REPO}/contents/{path}"
    return {
        "type": "file", "encoding": "base64" if small else "none", "size": len(content), "path": path,
        "name": path.rpartition("/")[2], "content": encodebytes(content).decode() if small else "",
        "sha": sha(content), "url": url, "git_url": url, "html_url": url, "download_url": url,
        "_links": {"self": url, "git": url, "html": url},
    }  # fmt: skip


def commit(message: str) -> Document:
    url, who = f"{API}/repos/{REPO}/commits/{sha(message)}", {"name": "Ada", "email": "ada@acme.example", "date": NOW}
    return {
        "url": url, "sha": sha(message), "node_id": "C_2", "html_url": url, "comments_url": url, "author": user("ada"),
        "committer": user("ada"), "parents": [{"sha": sha("parent"), "url": url, "html_url": url}],
        "commit": {
            "url": url, "author": who, "committer": who, "message": message, "comment_count": 0,
            "tree": {"sha": sha("tree"), "url": url},
        },
    }  # fmt: skip


def check_run(name: str) -> Document:
    output = {"title": "Passed", "summary": "All of it", "text": None, "annotations_count": 0, "annotations_url": API}
    return {
        "id": 4, "head_sha": sha("head"), "node_id": "CR_1", "external_id": "", "url": API, "html_url": WEB,
        "details_url": WEB, "status": "completed", "conclusion": "success", "started_at": NOW, "completed_at": NOW,
        "output": output, "name": name, "check_suite": {"id": 5}, "app": None, "pull_requests": [],
    }  # fmt: skip


def workflow_run(name: str, branch: str) -> Document:
    names = "jobs logs check_suite artifacts cancel rerun workflow"
    head_commit = {
        "id": sha("head"), "tree_id": sha("tree"), "message": "m", "timestamp": NOW,
        "author": {"name": "Ada", "email": "a@acme.example"}, "committer": {"name": "Ada", "email": "a@acme.example"},
    }  # fmt: skip
    return urls(names, API) | {
        "id": 30433642, "node_id": "WFR_1", "name": name, "head_branch": branch, "head_sha": sha("head"),
        "path": ".github/workflows/ci.yml", "run_number": 5, "run_attempt": 1, "event": "push", "status": "completed",
        "conclusion": "success", "workflow_id": 1, "url": API, "html_url": WEB, "pull_requests": [],
        "created_at": NOW, "updated_at": NOW, "head_commit": head_commit, "repository": repository(),
        "head_repository": repository(), "display_title": name,
    }  # fmt: skip
