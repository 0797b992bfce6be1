"""A server on loopback that speaks GitHub's REST API for one repository; see wire.py.

    async with FakeGitHub() as server:
        server.add_issue("It is broken", labels=["bug"])
        server.answer(limited(reset=1764500000))
        server.issues[1]["state"]

It keeps what it is told, pages with `Link` (whose next pages have addresses of their own), and refuses as GitHub does.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from tests.fakes import github_documents as documents
from tests.fakes.github_documents import REPO, REPO_ID, Document
from tests.fakes.github_rules import Asked, read
from tests.fakes.github_rules import Refused as Wrong
from tests.fakes.wire import Answer, FakeService, Received, Refused, reply

TOKEN = "ghp_fake0123456789abcdef"
DOCS = "https://docs.github.com/rest"


def refusal(status: int, message: str, errors: Any = None, *, headers: Mapping[str, str] | None = None) -> Answer:
    """An error in GitHub's shape."""
    document = {"message": message, "documentation_url": DOCS, "status": str(status)}
    return reply(document | ({"errors": errors} if errors else {}), status, headers=headers or {})


def limited(*, reset: int, status: int = 403) -> Answer:
    """The refusal of a primary rate limit."""
    headers = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": str(reset),
               "x-ratelimit-resource": "core"}  # fmt: skip
    return refusal(status, "API rate limit exceeded for user ID 1.", headers=headers)


class FakeGitHub(FakeService):
    """The server; see the module. `may_push` false: labels and assignees are silently dropped."""

    def __init__(
        self, *, token: str | None = TOKEN, base: str = "", may_push: bool = True, refusals_expected: bool = False
    ) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self.issues: dict[int, Document] = {}
        self.pulls: dict[int, Document] = {}
        self.comments: dict[int, list[Document]] = {}
        self.files: dict[str, bytes] = {}
        self.asked: list[Asked] = []
        self._token = token
        self._base = base
        self._may_push = may_push

    @property
    def url(self) -> str:
        """What GITHUB_API_URL is set to."""
        return self.address + self._base

    def add_issue(self, title: str, *, labels: tuple[str, ...] = (), **more: Any) -> int:
        """Another issue; its number."""
        number = len(self.issues) + 1
        self.issues[number] = documents.issue(number, title, labels=[documents.label(name) for name in labels], **more)
        return number

    def add_pull(self, title: str, head: str = "fix", base: str = "main", body: str | None = None, *,
                 draft: bool = False) -> int:  # fmt: skip
        """Another pull request, which is an issue too; its number."""
        number = self.add_issue(title, pull_request={"url": "u", "html_url": "h", "diff_url": "d", "patch_url": "p"})
        self.pulls[number] = documents.pull(number, title, head, base, body, draft=draft)
        return number

    def check(self, request: Received) -> None:
        """Raise Refused for what GitHub would not take."""
        try:
            self.asked.append(read(request, self._base, REPO, REPO_ID, self._token))
        except Wrong as wrong:
            raise self._refused(wrong) from None

    def usual(self, request: Received) -> Answer:
        """What GitHub answers, as things stand."""
        asked = self.asked[-1]
        try:
            answer: Answer = getattr(self, f"_{asked.name}")(asked)
        except Wrong as wrong:  # what only the state of things refuses is an answer, as it is for whoever meets it
            return self._refused(wrong).answer
        accepted = request.headers.get("accept", "")
        if "raw" not in accepted:
            return answer
        return replace(answer, body=self.files[asked.parts["path"]], content_type=accepted)

    def _refused(self, wrong: Wrong) -> Refused:
        return Refused(str(wrong), refusal(wrong.status, wrong.message, wrong.errors))

    # --- issues -------------------------------------------------------------------------------------------------

    def _issue(self, asked: Asked) -> Document:
        number = int(asked.parts["number"])
        if number not in self.issues:
            raise Wrong(404, "Not Found")
        return self.issues[number]

    def _list_issues(self, asked: Asked) -> Answer:
        state, wanted = asked.query.get("state", "open"), set(asked.query.get("labels", "").split(",")) - {""}
        found = [
            issue for issue in self.issues.values()
            if state in ("all", issue["state"]) and wanted <= {label["name"] for label in issue["labels"]}
        ]  # fmt: skip
        return self._paged(asked, found)

    def _get_issue(self, asked: Asked) -> Answer:
        return reply(self._issue(asked))

    def _create_issue(self, asked: Asked) -> Answer:
        number = self.add_issue(str(asked.body["title"]), body=asked.body.get("body"))
        self._change(self.issues[number], asked.body)
        return reply(self.issues[number], 201)

    def _update_issue(self, asked: Asked) -> Answer:
        issue = self._issue(asked)
        self._change(issue, asked.body)
        return reply(issue)

    def _change(self, issue: Document, body: Document) -> None:
        issue |= {name: body[name] for name in ("title", "body", "state", "state_reason") if name in body}
        if self._may_push:
            issue |= {"labels": [documents.label(name) for name in body["labels"]]} if "labels" in body else {}
            issue |= {"assignees": [documents.user(name) for name in body["assignees"]]} if "assignees" in body else {}

    def _list_comments(self, asked: Asked) -> Answer:
        self._issue(asked)
        return self._paged(asked, self.comments.get(int(asked.parts["number"]), []))

    def _create_comment(self, asked: Asked) -> Answer:
        self._issue(asked)
        made = documents.comment(int(asked.parts["number"]), asked.body["body"])
        self.comments.setdefault(int(asked.parts["number"]), []).append(made)
        return reply(made, 201)

    def _add_labels(self, asked: Asked) -> Answer:
        issue = self._issue(asked)
        there = [label["name"] for label in issue["labels"]]
        new = [name for name in asked.body["labels"] if name not in there]
        issue["labels"] = issue["labels"] + [documents.label(name) for name in new]
        return reply(issue["labels"])

    def _set_labels(self, asked: Asked) -> Answer:
        issue = self._issue(asked)
        issue["labels"] = [documents.label(name) for name in asked.body["labels"]]
        return reply(issue["labels"])

    def _remove_label(self, asked: Asked) -> Answer:
        issue = self._issue(asked)
        kept = [label for label in issue["labels"] if label["name"] != asked.parts["name"]]
        if len(kept) == len(issue["labels"]):
            raise Wrong(404, "Label does not exist")
        issue["labels"] = kept
        return reply(kept)

    def _add_assignees(self, asked: Asked) -> Answer:
        issue = self._issue(asked)
        self._change(issue, {"assignees": asked.body["assignees"]})
        return reply(issue, 201)

    # --- pull requests ------------------------------------------------------------------------------------------

    def _pull(self, asked: Asked) -> Document:
        number = int(asked.parts["number"])
        if number not in self.pulls:
            raise Wrong(404, "Not Found")
        return self.pulls[number]

    def _list_pulls(self, asked: Asked) -> Answer:
        state = asked.query.get("state", "open")
        return self._paged(asked, [pull for pull in self.pulls.values() if state in ("all", pull["state"])])

    def _get_pull(self, asked: Asked) -> Answer:
        return reply(self._pull(asked))

    def _create_pull(self, asked: Asked) -> Answer:
        body = asked.body
        if any(pull["head"]["ref"] == body["head"] for pull in self.pulls.values()):
            message = f"A pull request already exists for acme:{body['head']}."
            raise Wrong(422, "Validation Failed", [{"resource": "PullRequest", "code": "custom", "message": message}])
        number = self.add_pull(
            body["title"], body["head"], body["base"], body.get("body"), draft=body.get("draft", False)
        )
        return reply(self.pulls[number], 201)

    def _list_files(self, asked: Asked) -> Answer:
        self._pull(asked)
        return self._paged(asked, [documents.changed_file(path) for path in self.files])

    def _create_review(self, asked: Asked) -> Answer:
        self._pull(asked)
        event, body = asked.body.get("event", "PENDING"), asked.body.get("body", "")
        if event in ("REQUEST_CHANGES", "COMMENT") and not body and not asked.body.get("comments"):
            raise Wrong(422, "Unprocessable Entity", [{"message": "Body cannot be blank"}])
        state = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}.get(
            event, event
        )
        return reply(documents.review(int(asked.parts["number"]), state, body))

    def _merge_pull(self, asked: Asked) -> Answer:
        pull = self._pull(asked)
        if asked.body.get("sha", pull["head"]["sha"]) != pull["head"]["sha"]:
            raise Wrong(409, "Head branch was modified. Review and try the merge again.")
        if pull["merged"] or not pull["mergeable"]:
            raise Wrong(405, "Pull Request is not mergeable")
        pull |= {"merged": True, "state": "closed"}
        return reply({"sha": documents.sha("merge"), "merged": True, "message": "Pull Request successfully merged"})

    # --- the repository -----------------------------------------------------------------------------------------

    def _get_repo(self, asked: Asked) -> Answer:
        permissions = {"admin": False, "maintain": False, "push": self._may_push, "triage": True, "pull": True}
        return reply(documents.repository() | {"permissions": permissions})

    def _get_file(self, asked: Asked) -> Answer:
        path = asked.parts["path"]
        if path in self.files:
            return reply(documents.content_file(path, self.files[path]))
        inside = [name for name in self.files if name.startswith(f"{path}/")]
        if not inside:
            raise Wrong(404, "Not Found")
        return reply([documents.content_file(name, b"") | {"content": None} for name in inside])

    def _put_file(self, asked: Asked) -> Answer:
        path, body = asked.parts["path"], asked.body
        old = self.files.get(path)
        if old is not None and "sha" not in body:
            raise Wrong(422, 'Invalid request. "sha" wasn\'t supplied.')
        if old is not None and body["sha"] != documents.sha(old):
            raise Wrong(409, f"{path} does not match {body['sha']}")
        self.files[path] = b64decode(body["content"], validate=True)
        made = documents.content_file(path, self.files[path])
        del made["content"], made["encoding"]
        commit = documents.commit(body["message"])
        return reply({"content": made, "commit": {**commit["commit"], **commit}}, 200 if old is not None else 201)

    def _list_tree(self, asked: Asked) -> Answer:
        tree = [
            {"path": path, "mode": "100644", "type": "blob", "sha": documents.sha(text), "size": len(text), "url": "u"}
            for path, text in self.files.items()
        ]
        return reply({"sha": documents.sha("tree"), "url": "u", "tree": tree, "truncated": False})

    def _list_commits(self, asked: Asked) -> Answer:
        return self._paged(asked, [documents.commit(message) for message in ("Fix it", "Begin")])

    def _compare(self, asked: Asked) -> Answer:
        base, head = documents.commit(asked.parts["base"]), documents.commit(asked.parts["head"])
        compared = documents.urls("html permalink diff patch", "u") | {"url": "u"}
        return reply(compared | {
            "base_commit": base, "merge_base_commit": base, "status": "ahead", "ahead_by": 1, "behind_by": 0,
            "total_commits": 1, "commits": [head], "files": [documents.changed_file("a.py")],
        })  # fmt: skip

    def _list_checks(self, asked: Asked) -> Answer:
        return self._paged(asked, [documents.check_run("test"), documents.check_run("lint")], "check_runs")

    def _list_workflow_runs(self, asked: Asked) -> Answer:
        runs = [documents.workflow_run("CI", asked.query.get("branch", "main"))]
        return self._paged(asked, runs, "workflow_runs")

    # --- searches -----------------------------------------------------------------------------------------------

    def _search_issues(self, asked: Asked) -> Answer:
        word = asked.query["q"].split()[0].lower()
        found = [issue for issue in self.issues.values() if word in issue["title"].lower()]
        return self._paged(
            asked, [issue | {"score": 1.0} for issue in found], "items", incomplete_results=False, search_type="lexical"
        )

    def _search_code(self, asked: Asked) -> Answer:
        files = [documents.content_file(path, text) for path, text in self.files.items()]
        found = [file | {"repository": documents.repository(), "score": 1.0} for file in files]
        return self._paged(asked, found, "items", incomplete_results=False)

    def _search_repositories(self, asked: Asked) -> Answer:
        return self._paged(asked, [documents.repository() | {"score": 1.0}], "items", incomplete_results=False)

    # --- pages --------------------------------------------------------------------------------------------------

    def _paged(self, asked: Asked, items: list[Document], key: str | None = None, **more: Any) -> Answer:
        size, page = int(asked.query.get("per_page", "30")), int(asked.query.get("page", "1"))
        if "after" in asked.query and asked.query["after"] != f"cursor{page}":
            raise Wrong(422, "The cursor is not valid")
        part = items[(page - 1) * size : page * size]
        document = part if key is None else {"total_count": len(items), key: part, **more}
        return reply(document, headers={"link": self._links(asked, page)} if len(items) > page * size else {})

    def _links(self, asked: Asked, page: int) -> str:
        """The way to the next page, whose address has the repository's id and a cursor."""
        path = self.requests[-1].path.partition("?")[0].removeprefix(self._base)
        inside = asked.name == "list_issues"
        path = path.replace(f"/repos/{REPO}", f"/repositories/{REPO_ID}") if inside else path
        query = asked.query | {"page": str(page + 1)} | ({"after": f"cursor{page + 1}"} if inside else {})
        following = f"{self.url}{path}?{urlencode(query)}"
        return f'<{self.url}{path}?page=1>; rel="first", <{following}>; rel="next", <{following}>; rel="last"'
