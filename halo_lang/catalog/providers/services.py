"""Linear and Figma (reference 2.3 and 2.4): methods keep the reference's snake_case names."""

from __future__ import annotations

from halo_lang.catalog.signature import Effect, Method, Parameter, Signature, optional, required
from halo_lang.catalog.specs import ProviderSpec


def _method(
    tool: str,
    name: str,
    parameters: tuple[Parameter, ...],
    result: str,
    doc: str,
    effect: Effect = "read",
    idempotent: bool = True,
) -> Method:
    arguments = ", ".join(f"{p.name}: {p.name}" for p in parameters if p.required)
    return Method(name, Signature(parameters), result, effect, idempotent, doc, f"{tool}.{name}({arguments})")


_ID = required(
    "id", "string", "The issue's id, or its short name such as ENG-123; left out, that of the issue which flows in.",
    flows=True,
)  # fmt: skip
_TEAM = optional("team", "string", "The team's key, name or id, when not that of the declaration.")
_TEAMS = optional("team", "string", 'The team\'s key, name or id, when not that of the declaration; "*" for all.')
_FIRST = optional("first", "integer", "How many at most.", default=50, minimum=1, maximum=250)
_AFTER = optional("after", "string", "The cursor of the page before.")
_LIMIT = optional("limit", "integer", "So many in all, over as many pages as that takes.", minimum=1, maximum=1000)
_PAGES = (_FIRST, _AFTER, _LIMIT)
_ARCHIVED = optional("includeArchived", "boolean", "Archived ones too.")
_LABEL = required("label", "string", "The label's name or id.")
_DETAILS = (
    optional("description", "string", "In Markdown."),
    optional("assignee", "string", 'The person\'s e-mail address, name or id, or "me".'),
    optional("labels", "list", "Names or ids; they replace those there are.", items="string"),
    optional("priority", "integer", "0 none, 1 urgent to 4 low.", minimum=0, maximum=4),
    optional("project", "string", "Its name or id."),
    optional("state", "string", "Its name or id."),
    optional("parent", "string", "The issue it is a part of, by id or short name."),
    optional("dueDate", "string", "A date, YYYY-MM-DD."),
    optional("estimate", "integer", "In the team's points.", minimum=0),
    optional("cycle", "string", "Its number, name or id, or `current` or `next`."),
)

LINEAR = ProviderSpec(
    "Linear",
    Signature(
        (
            optional("key", "string", "An API key.", secret=True, variables=("LINEAR_API_KEY",)),
            optional("team", "string", "The team's key, name or id.", named_only=True),
            optional("baseUrl", "string", "The API's address.", named_only=True, variables=("LINEAR_API_URL",)),
        )
    ),
    (
        _method("Plan", "get_issue", (_ID,), "the issue, with comments and attachments", "Read an issue."),
        _method("Plan", "list_issues",
                (optional("filter", "object", "In Linear's own form."), _TEAMS,
                 optional("state", "string", "The state's name or id."),
                 optional("assignee", "string", 'The person\'s e-mail address, name or id, or "me".'),
                 optional("labels", "list", "Names of labels that all are there.", items="string"), *_PAGES,
                 optional("orderBy", "string", "What the order goes by.", choices=("createdAt", "updatedAt")),
                 _ARCHIVED),
                "{items, cursor}", "List issues."),
        _method("Plan", "search_issues", (required("term", "string", "The words."), _TEAMS, *_PAGES, _ARCHIVED),
                "{items, cursor, total}", "Search issues."),
        _method("Plan", "create_issue", (required("title", "string", "The title."), *_DETAILS, _TEAM),
                "{id, identifier, url}", "Open an issue.", "write", False),
        _method("Plan", "update_issue",
                (_ID, optional("title", "string", "The title."), *_DETAILS,
                 optional("addLabels", "list", "Labels that are added to those there are.", items="string"),
                 optional("removeLabels", "list", "Labels that are taken away.", items="string"),
                 optional("team", "string", "The team it moves to.")),
                "the issue", "Change an issue; an empty text clears a field.", "write"),
        _method("Plan", "add_comment",
                (_ID, required("body", "string", "In Markdown."),
                 optional("parent", "string", "The id of the comment that is answered.")),
                "{id, url, body, createdAt}", "Add a comment.", "write", False),
        _method("Plan", "add_label", (_ID, _LABEL), "the issue", "Add a label.", "write"),
        _method("Plan", "remove_label", (_ID, _LABEL), "the issue", "Remove a label.", "write"),
        _method("Plan", "archive", (_ID,), "true", "Archive an issue.", "destructive"),
        _method("Plan", "attach_link",
                (_ID, required("url", "string", "The link."), optional("title", "string", "What it says.")),
                "{id, title, url}", "Attach a link.", "write", False),
        _method("Plan", "list_teams", _PAGES, "{items, cursor}", "List teams."),
        _method("Plan", "list_states", (_TEAMS, *_PAGES), "{items, cursor}", "List the states of a team."),
        _method("Plan", "list_labels", (_TEAMS, *_PAGES), "{items, cursor}",
                "List labels: a team's own and those of all teams."),
        _method("Plan", "list_users", _PAGES, "{items, cursor}", "List people."),
        _method("Plan", "list_projects", _PAGES, "{items, cursor}", "List projects."),
        _method("Plan", "viewer", (), "{id, name, displayName, email}", "Read whose key it is."),
    ),
    "Issues of Linear.",
    'tool Plan : Linear(Env.LINEAR_API_KEY, team: "ENG")',
)  # fmt: skip

_FILE = required("key", "string", "The file's key, or its address.")
_IDS = optional("ids", "list", "Node ids; left out, the one that the file's address has.", items="string")
_DEPTH = optional("depth", "integer", "How many levels of the tree.", minimum=1)
_GEOMETRY = optional("geometry", "string", "With vector data.", choices=("paths",))
_VERSION = optional("version", "string", "The id of an older version.")
_COMMENT = required("comment_id", "string", "The comment.")

FIGMA = ProviderSpec(
    "Figma",
    Signature(
        (
            optional("token", "string", "An access token.", secret=True, variables=("FIGMA_TOKEN",)),
            optional("baseUrl", "string", "The API's address.", named_only=True, variables=("FIGMA_API_URL",)),
        )
    ),
    (
        _method("Design", "get_file",
                (_FILE, optional("ids", "list", "Only these nodes and what is above and below them.", items="string"),
                 _DEPTH, _GEOMETRY, _VERSION), "the file", "Read a file."),
        _method("Design", "get_nodes", (_FILE, _IDS, _DEPTH, _GEOMETRY, _VERSION),
                "{name, lastModified, version, nodes}", "Read single nodes."),
        _method("Design", "get_images",
                (_FILE, _IDS,
                 optional("format", "string", "Of the pictures.", default="png", choices=("jpg", "png", "svg", "pdf")),
                 optional("scale", "number", "Of the pictures.", default=1, minimum=0.01, maximum=4), _VERSION),
                "{images, failed}", "Render nodes."),
        _method("Design", "get_image_fills", (_FILE,), "{images}", "List the images used."),
        _method("Design", "get_versions",
                (_FILE, optional("limit", "integer", "How many at most.", default=30, minimum=1, maximum=1000),
                 optional("before", "string", "The cursor of the page before.")),
                "{versions, cursor}, newest first", "List versions."),
        _method("Design", "get_meta", (_FILE,), "{name, last_touched_at, …}", "Read what is known about a file."),
        _method("Design", "list_comments",
                (_FILE, optional("as_md", "boolean", "Texts as Markdown.", default=False)), "{comments}",
                "Read the comments."),
        _method("Design", "post_comment",
                (_FILE, required("message", "string", "The text."),
                 optional("comment_id", "string", "The comment to answer, the first of its thread."),
                 optional("client_meta", "object", "Where it stands.")),
                "the comment", "Add a comment.", "write", False),
        _method("Design", "delete_comment", (_FILE, _COMMENT), "true", "Remove a comment.", "destructive"),
        _method("Design", "components", (_FILE,), "{components}", "List published components."),
        _method("Design", "styles", (_FILE,), "{styles}", "List published styles."),
        _method("Design", "variables", (_FILE,), "{variables, variableCollections}",
                "List variables (Enterprise)."),
        _method("Design", "dev_resources",
                (_FILE, optional("ids", "list", "Only those of these nodes.", items="string")), "{dev_resources}",
                "List developer resources."),
        _method("Design", "me", (), "{id, handle, email}", "Read whose token it is."),
    ),
    "Files and comments of Figma.",
    "tool Design : Figma(Env.FIGMA_TOKEN)",
)  # fmt: skip

PROVIDERS: tuple[ProviderSpec, ...] = (LINEAR, FIGMA)
