"""GitHub (reference 2.2): methods keep the service's snake_case names."""

from __future__ import annotations

from halo_lang.catalog.signature import Effect, Method, Parameter, Signature, optional, required
from halo_lang.catalog.specs import ProviderSpec

_NUMBER = required(
    "number", "integer", "The number of the issue or pull request; left out, that of the issue which flows in.",
    minimum=1, flows=True,
)  # fmt: skip
_REPO = optional("repo", "string", "owner/name, when not that of the declaration.", named_only=True)
_PER_PAGE = optional("per_page", "integer", "How many on a page.", default=30, minimum=1, maximum=100)
_PAGE = optional("page", "integer", "Which page.", minimum=1)
_LIMIT = optional("limit", "integer", "So many in all, over as many pages as that takes.", minimum=1, maximum=1000)
_PAGES = (_PER_PAGE, _PAGE, _LIMIT)
_STATE = optional("state", "string", "Which ones.", default="open", choices=("open", "closed", "all"))
_LABELS = required("labels", "list", "Their names.", items="string")
_BODY = required("body", "string", "The text, in Markdown.")
_BODY_TOO = optional("body", "string", "The text, in Markdown.")
_Q = (required("q", "string", "The search, in GitHub's syntax."), *_PAGES)
_REF = optional("ref", "string", "A branch, tag or commit.")


def _method(
    name: str,
    parameters: tuple[Parameter, ...],
    result: str,
    doc: str,
    effect: Effect = "read",
    idempotent: bool = True,
) -> Method:
    arguments = ", ".join(f"{p.name}: {p.name}" for p in parameters if p.required)
    signature = Signature((*parameters, _REPO))
    return Method(name, signature, result, effect, idempotent, doc, f"Repo.{name}({arguments})")


_ISSUES = (
    _method(
        "list_issues",
        (_STATE, optional("labels", "list", items="string"), optional("assignee", "string"),
         optional("creator", "string"), optional("since", "string"), optional("sort", "string"),
         optional("direction", "string", choices=("asc", "desc")), *_PAGES),
        "{items, more}, without pull requests",
        "List issues.",
    ),
    _method("get_issue", (_NUMBER,), "the issue", "Read an issue."),
    _method(
        "create_issue",
        (required("title", "string", "The title."), _BODY_TOO, optional("labels", "list", items="string"),
         optional("assignees", "list", items="string"), optional("milestone", "integer"), optional("type", "string")),
        "the issue",
        "Open an issue.",
        "write",
        False,
    ),
    _method(
        "update_issue",
        (_NUMBER, optional("title", "string"), _BODY_TOO, optional("state", "string", choices=("open", "closed")),
         optional("labels", "list", "They replace those there are.", items="string"),
         optional("assignees", "list", items="string"), optional("milestone", "integer")),
        "the issue",
        "Change an issue.",
        "write",
    ),
    _method(
        "close_issue",
        (_NUMBER, optional("state_reason", "string", default="completed",
                           choices=("completed", "not_planned", "duplicate"))),
        "the issue",
        "Close an issue.",
        "write",
    ),
    _method("list_comments", (_NUMBER, *_PAGES), "{items, more}", "Read the comments."),
    _method("create_comment", (_NUMBER, _BODY), "the comment", "Add a comment.", "write", False),
    _method("add_labels", (_NUMBER, _LABELS), "the labels", "Add labels.", "write"),
    _method("remove_label", (_NUMBER, required("name", "string", "The label.")), "the labels", "Remove a label.",
            "write"),
    _method("set_labels", (_NUMBER, _LABELS), "the labels", "Replace all labels.", "write"),
    _method("add_assignees", (_NUMBER, required("assignees", "list", "Logins.", items="string")), "the issue",
            "Add assignees.", "write"),
)  # fmt: skip

_PULLS = (
    _method("list_pulls", (_STATE, optional("head", "string"), optional("base", "string"), *_PAGES),
            "{items, more}", "List pull requests."),
    _method("get_pull", (_NUMBER,), "the pull request", "Read a pull request."),
    _method(
        "create_pull",
        (required("head", "string", "The branch to merge."), required("base", "string", "The branch to merge into."),
         required("title", "string", "The title."), _BODY_TOO, optional("draft", "boolean", default=False)),
        "the pull request",
        "Open a pull request.",
        "write",
        False,
    ),
    _method("list_files", (_NUMBER, *_PAGES), "{items, more}", "List the changed files."),
    _method(
        "create_review",
        (_NUMBER, required("event", "string", "The verdict.", choices=("APPROVE", "REQUEST_CHANGES", "COMMENT")),
         _BODY_TOO, optional("comments", "list", "Comments on lines.", items="object")),
        "the review",
        "Review a pull request.",
        "write",
        False,
    ),
    _method(
        "merge_pull",
        (_NUMBER, optional("merge_method", "string", default="merge", choices=("merge", "squash", "rebase")),
         optional("sha", "string", "The commit that must be its head.")),
        "{merged, sha}",
        "Merge a pull request.",
        "destructive",
        False,
    ),
)  # fmt: skip

_CODE = (
    _method("get_repo", (), "the repository", "Read the repository."),
    _method("get_file", (required("path", "string", "The path."), _REF), "{path, text, sha}", "Read a file."),
    _method(
        "put_file",
        (required("path", "string", "The path."), required("content", "string", "The whole text."),
         required("message", "string", "The commit message."), optional("sha", "string", "The file's sha, to update."),
         optional("branch", "string")),
        "{path, sha, commit}",
        "Write a file.",
        "write",
        False,
    ),
    _method("list_tree", (_REF,), "{items, truncated}", "List all files."),
    _method("list_commits", (optional("sha", "string"), optional("path", "string"), optional("since", "string"),
                             optional("until", "string"), *_PAGES), "{items, more}", "List commits."),
    _method("compare", (required("base", "string", "The older end."), required("head", "string", "The newer end.")),
            "{commits, files}", "Compare two commits."),
    _method("list_checks", (required("ref", "string", "A branch, tag or commit."), *_PAGES), "{items, more}",
            "List the checks of a commit."),
    _method("list_workflow_runs", (optional("branch", "string"), optional("status", "string"), *_PAGES),
            "{items, more}", "List workflow runs."),
    _method("search_issues", _Q, "{items, more, total, incomplete}", "Search issues and pull requests."),
    _method("search_code", _Q, "{items, more, total, incomplete}", "Search code."),
    _method("search_repositories", _Q, "{items, more, total, incomplete}", "Search repositories."),
)  # fmt: skip

GITHUB = ProviderSpec(
    "GitHub",
    Signature(
        (
            optional("token", "string", "A token; the public API when left out.", secret=True,
                     variables=("GITHUB_TOKEN", "GH_TOKEN")),
            optional("repo", "string", "owner/name.", named_only=True),
            optional("baseUrl", "string", "The API's address, for an enterprise server.", named_only=True,
                     variables=("GITHUB_API_URL",)),
        )
    ),
    (*_ISSUES, *_PULLS, *_CODE),
    "Issues, pull requests and files of GitHub.",
    'tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")',
)  # fmt: skip

PROVIDERS: tuple[ProviderSpec, ...] = (GITHUB,)
