"""Linear and Figma (reference 2.3 and 2.4): methods keep the reference's snake_case names."""

from __future__ import annotations

from halo_lang.catalog.signature import Effect, Method, Parameter, Signature, optional, required
from halo_lang.catalog.specs import ProviderSpec

_BASE_URL = optional("baseUrl", "string", "The API's address.", named_only=True)


def _method(
    tool: str, name: str, parameters: tuple[Parameter, ...], result: str, doc: str, effect: Effect = "read"
) -> Method:
    arguments = ", ".join(f"{p.name}: {p.name}" for p in parameters if p.required)
    example = f"{tool}.{name}({arguments})"
    return Method(name, Signature(parameters), result, effect, effect == "read", doc, example)


_ID = required("id", "string", "An id, or a short name such as ENG-123.")
_TEAM = optional("team", "string", "The team's key, when not that of the declaration.")
_FIRST = optional("first", "integer", "How many at most.", default=50, minimum=1, maximum=250)
_AFTER = optional("after", "string", "Where the page before ended.")
_LABEL = required("label", "string", "The label's name or id.")
_PRIORITY = optional("priority", "integer", "0 none, 1 urgent to 4 low.", minimum=0, maximum=4)
_DETAILS = (
    optional("description", "string", "In Markdown."),
    optional("assignee", "string"),
    optional("labels", "list", items="string"),
    _PRIORITY,
    optional("project", "string"),
    optional("state", "string"),
    optional("parent", "string"),
    optional("dueDate", "string"),
    optional("estimate", "number"),
    optional("cycle", "string"),
)

LINEAR = ProviderSpec(
    "Linear",
    Signature(
        (
            required("key", "string", "An API key.", secret=True),
            optional("team", "string", "The team's key.", named_only=True),
            _BASE_URL,
        )
    ),
    (
        _method("Plan", "get_issue", (_ID,), "the issue", "Read an issue."),
        _method("Plan", "list_issues", (optional("filter", "object"), _FIRST, _AFTER, optional("orderBy", "string"),
                                        optional("includeArchived", "boolean")), "{items, cursor}", "List issues."),
        _method("Plan", "search_issues", (required("term", "string", "The words."), _FIRST, _AFTER),
                "{items, cursor}", "Search issues."),
        _method("Plan", "create_issue", (required("title", "string", "The title."), *_DETAILS, _TEAM),
                "{id, identifier, url}", "Open an issue.", "write"),
        _method("Plan", "update_issue", (_ID, optional("title", "string"), *_DETAILS), "the issue",
                "Change an issue.", "write"),
        _method("Plan", "add_comment", (_ID, required("body", "string", "In Markdown."), optional("parent", "string")),
                "the comment", "Add a comment.", "write"),
        _method("Plan", "add_label", (_ID, _LABEL), "the issue", "Add a label.", "write"),
        _method("Plan", "remove_label", (_ID, _LABEL), "the issue", "Remove a label.", "write"),
        _method("Plan", "archive", (_ID,), "true", "Archive an issue.", "destructive"),
        _method("Plan", "attach_link", (_ID, required("url", "string", "The link."), optional("title", "string")),
                "the attachment", "Attach a link.", "write"),
        _method("Plan", "list_teams", (_FIRST, _AFTER), "{items, cursor}", "List teams."),
        _method("Plan", "list_states", (_TEAM,), "{items, cursor}", "List the states of a team."),
        _method("Plan", "list_labels", (_TEAM,), "{items, cursor}", "List labels."),
        _method("Plan", "list_users", (_FIRST, _AFTER), "{items, cursor}", "List people."),
        _method("Plan", "list_projects", (_FIRST, _AFTER), "{items, cursor}", "List projects."),
        _method("Plan", "viewer", (), "{id, name, email}", "Read whose key it is."),
    ),
    "Issues of Linear.",
    'tool Plan : Linear(Env.LINEAR_API_KEY, team: "ENG")',
)  # fmt: skip

_FILE = required("key", "string", "The file's key, or its address.")
_IDS = required("ids", "list", "Node ids.", items="string")

FIGMA = ProviderSpec(
    "Figma",
    Signature((required("token", "string", "An access token.", secret=True), _BASE_URL)),
    (
        _method("Design", "get_file", (_FILE, optional("ids", "list", items="string"),
                                       optional("depth", "integer", minimum=1), optional("geometry", "string"),
                                       optional("version", "string")), "the file", "Read a file."),
        _method("Design", "get_nodes", (_FILE, _IDS), "{nodes}", "Read single nodes."),
        _method("Design", "get_images",
                (_FILE, _IDS, optional("format", "string", default="png", choices=("jpg", "png", "svg", "pdf")),
                 optional("scale", "number", default=1, minimum=0.01, maximum=4)),
                "{images}", "Render nodes."),
        _method("Design", "get_image_fills", (_FILE,), "{images}", "List the images used."),
        _method("Design", "get_versions", (_FILE,), "{versions}", "List versions."),
        _method("Design", "get_meta", (_FILE,), "{name, lastModified}", "Read what is known about a file."),
        _method("Design", "list_comments", (_FILE, optional("as_md", "boolean", default=False)), "{comments}",
                "Read the comments."),
        _method("Design", "post_comment", (_FILE, required("message", "string", "The text."),
                                           optional("comment_id", "string", "The comment to answer."),
                                           optional("client_meta", "object", "Where it stands.")),
                "the comment", "Add a comment.", "write"),
        _method("Design", "delete_comment", (_FILE, required("comment_id", "string", "The comment.")), "true",
                "Remove a comment.", "destructive"),
        _method("Design", "components", (_FILE,), "{components}", "List components."),
        _method("Design", "styles", (_FILE,), "{styles}", "List styles."),
        _method("Design", "variables", (_FILE,), "{variables}", "List variables (Enterprise)."),
        _method("Design", "dev_resources", (_FILE,), "{resources}", "List developer resources."),
        _method("Design", "me", (), "{id, handle, email}", "Read whose token it is."),
    ),
    "Files and comments of Figma.",
    "tool Design : Figma(Env.FIGMA_TOKEN)",
)  # fmt: skip

PROVIDERS: tuple[ProviderSpec, ...] = (LINEAR, FIGMA)
