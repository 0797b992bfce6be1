"""What is asked of Linear: GraphQL documents, and the fields that people and models read (reference 2.3).

Linear counts a query's complexity, 10,000 at most: a tenth for a field, one for an object, and a connection's times the
page that is asked for. So pages have PAGE entries, and what lies below an issue is short.
"""

from __future__ import annotations

from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_list, is_object

PAGE: Final = 100

_LABELS: Final = "labels(first:50){nodes{id name}}"
ISSUE: Final = (
    "id identifier title description priority priorityLabel estimate dueDate url branchName createdAt updatedAt "
    "completedAt canceledAt archivedAt state{id name type} team{id key name} assignee{id name email} creator{id name} "
    f"project{{id name}} cycle{{id number name}} parent{{id identifier title}} {_LABELS}"
)
COMMENT: Final = "id body url createdAt user{id name} parent{id}"
ATTACHMENT: Final = "id title url"
USER: Final = "id name displayName email"
CREATED: Final = "id identifier url"


@record
class Listing:
    """A connection at the root: its `field`, what is kept of each entry, and the types of its own variables."""

    field: str
    kept: str
    variables: tuple[tuple[str, str], ...]
    total: bool = False

    @property
    def document(self) -> str:
        """The query for a page."""
        types = (("first", "Int!"), ("after", "String"), *self.variables)
        declared = ",".join(f"${name}:{type_}" for name, type_ in types)
        given = ",".join(f"{name}:${name}" for name, _ in types)
        total = " totalCount" if self.total else ""
        found = f"nodes{{{self.kept}}} pageInfo{{hasNextPage endCursor}}{total}"
        return f"query({declared}){{{self.field}({given}){{{found}}}}}"


_ARCHIVED: Final = ("includeArchived", "Boolean")
LISTINGS: Final = {
    "list_issues": Listing(
        "issues", ISSUE, (("filter", "IssueFilter"), ("orderBy", "PaginationOrderBy"), _ARCHIVED)
    ),
    "search_issues": Listing(
        "searchIssues", ISSUE, (("term", "String!"), ("filter", "IssueFilter"), _ARCHIVED), total=True
    ),
    "list_teams": Listing("teams", "id key name description private", ()),
    "list_states": Listing(
        "workflowStates", "id name type position team{id key}", (("filter", "WorkflowStateFilter"),)
    ),
    "list_labels": Listing(
        "issueLabels", "id name color description isGroup team{id key} parent{id name}",
        (("filter", "IssueLabelFilter"),),
    ),
    "list_users": Listing("users", f"{USER} active admin", ()),
    "list_projects": Listing("projects", "id name description url status{id name} startDate targetDate progress", ()),
}  # fmt: skip

GET_ISSUE: Final = (
    f"query($id:String!){{issue(id:$id){{{ISSUE} comments(first:100){{nodes{{{COMMENT}}} pageInfo{{hasNextPage}}}} "
    f"attachments(first:50){{nodes{{{ATTACHMENT}}}}}}}}}"
)
VIEWER: Final = f"query{{viewer{{{USER}}}}}"
PROBE: Final = "query{viewer{name} organization{name}}"
TEAM_OF_ISSUE: Final = "query($id:String!){issue(id:$id){team{id}}}"


@record
class Change:
    """A mutation: its `field`, what it takes, and what is kept of the `part` of its payload."""

    field: str
    variables: tuple[tuple[str, str], ...]
    part: str | None
    kept: str

    @property
    def document(self) -> str:
        """The mutation."""
        declared = ",".join(f"${name}:{type_}" for name, type_ in self.variables)
        given = ",".join(f"{name}:${name}" for name, _ in self.variables)
        part = f" {self.part}{{{self.kept}}}" if self.part else ""
        return f"mutation({declared}){{{self.field}({given}){{success{part}}}}}"


_BY_ID: Final = ("id", "String!")
_BY_LABEL: Final = (_BY_ID, ("labelId", "String!"))
CHANGES: Final = {
    "create_issue": Change("issueCreate", (("input", "IssueCreateInput!"),), "issue", CREATED),
    "update_issue": Change("issueUpdate", (_BY_ID, ("input", "IssueUpdateInput!")), "issue", ISSUE),
    "add_comment": Change("commentCreate", (("input", "CommentCreateInput!"),), "comment", COMMENT),
    "add_label": Change("issueAddLabel", _BY_LABEL, "issue", ISSUE),
    "remove_label": Change("issueRemoveLabel", _BY_LABEL, "issue", ISSUE),
    "archive": Change("issueArchive", (_BY_ID,), None, ""),
    "attach_link": Change(
        "attachmentLinkURL", (("issueId", "String!"), ("url", "String!"), ("title", "String")), "attachment", ATTACHMENT
    ),
}  # fmt: skip


def flattened(value: Json) -> Json:
    """`value` with each connection as the list of its nodes."""
    if is_list(value):
        return [flattened(item) for item in value]
    if not is_object(value):
        return value
    nodes: Json = value.get("nodes")
    if is_list(nodes):
        return [flattened(item) for item in nodes]
    return {name: flattened(field) for name, field in value.items()}


def whole_issue(issue: JsonObject) -> JsonObject:
    """The issue of `get_issue`; `moreComments` where it has more of them than are read."""
    comments: Json = issue.get("comments")
    page: Json = comments.get("pageInfo") if is_object(comments) else None
    more = is_object(page) and page.get("hasNextPage") is True
    flat: JsonObject = flattened(issue)
    return flat | ({"moreComments": True} if more else {})
