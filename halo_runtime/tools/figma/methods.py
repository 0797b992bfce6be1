"""Each method of `Figma` as the request that it makes and what it keeps of the answer (reference 2.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.pick import pick

_WHO: Final = ("user.id", "user.handle")
COMMENT: Final = (
    "id", "message", "created_at", "resolved_at", "parent_id", "order_id", "client_meta", "file_key", *_WHO,
    "reactions.emoji", "reactions.user.handle",
)  # fmt: skip
VERSION: Final = ("id", "created_at", "label", "description", *_WHO)
_PUBLISHED: Final = ("key", "node_id", "name", "description", "created_at", "updated_at", *_WHO)
COMPONENT: Final = (*_PUBLISHED, "containing_frame.nodeId", "containing_frame.name", "containing_frame.pageName")
STYLE: Final = (*_PUBLISHED, "style_type")
NODES: Final = ("name", "lastModified", "version", "nodes")

Result = Callable[[JsonObject, JsonObject], Json]
"""Makes a method's result of the service's document and what was asked. Raises ToolError."""


@record
class Route:
    """A method's request: `{key}` and `{comment_id}` in `path` are arguments, `query` and `body` name those there.

    `ids` is the query's name for node ids, `needs_ids` says that there is nothing to ask for without any. `large`:
    asking for fewer levels or nodes makes the answer smaller.
    """

    path: str
    result: Result
    verb: str = "GET"
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    ids: str | None = None
    needs_ids: bool = False
    large: bool = False


def _whole(document: JsonObject, asked: JsonObject) -> Json:
    return document


def _kept(*fields: str) -> Result:
    return lambda document, asked: pick(document, fields).value


def _listed(name: str, fields: tuple[str, ...] | None = None, *, inside: str | None = None) -> Result:
    """`{name: […]}` with the fields of each entry; `inside` is the part of the document that has the list."""

    def result(document: JsonObject, asked: JsonObject) -> Json:
        found: Json = _part(document, inside).get(name)
        return {name: pick(found, fields).value if is_list(found) else []}

    return result


def _done(document: JsonObject, asked: JsonObject) -> Json:
    return True


def _rendered(document: JsonObject, asked: JsonObject) -> Json:
    """`{images, failed}`. Figma gives null for a node that it could not render. Raises ToolError where that is all."""
    found: Json = document.get("images")
    images = {name: url for name, url in found.items() if url} if is_object(found) else {}
    failed = [name for name in asked["ids"] if name not in images]
    if failed and not images:
        why = "it is not there, is invisible, or has nothing to show"
        raise ToolError(f"Figma could not render {', '.join(failed[:5])}: {why}")
    return {"images": images, "failed": failed}


def _in_meta(*names: str) -> Result:
    def result(document: JsonObject, asked: JsonObject) -> Json:
        found = _part(document, "meta")
        return {name: _part(found, name) for name in names}

    return result


def _part(document: JsonObject, name: str | None) -> JsonObject:
    found: Json = document if name is None else document.get(name)
    return found if is_object(found) else {}


_FILE: Final = "/v1/files/{key}"
_DETAIL: Final = ("depth", "geometry", "version")

ROUTES: Final[dict[str, Route]] = {
    "get_file": Route(_FILE, _whole, query=_DETAIL, ids="ids", large=True),
    "get_nodes": Route(f"{_FILE}/nodes", _kept(*NODES), query=_DETAIL, ids="ids", needs_ids=True, large=True),
    "get_images": Route(
        "/v1/images/{key}", _rendered, query=("format", "scale", "version"), ids="ids", needs_ids=True
    ),
    "get_image_fills": Route(f"{_FILE}/images", _in_meta("images")),
    "get_versions": Route(f"{_FILE}/versions", _listed("versions", VERSION), query=("page_size", "before")),
    "get_meta": Route(f"{_FILE}/meta", lambda document, asked: _part(document, "file")),
    "list_comments": Route(f"{_FILE}/comments", _listed("comments", COMMENT), query=("as_md",)),
    "post_comment": Route(
        f"{_FILE}/comments", _kept(*COMMENT), "POST", body=("message", "comment_id", "client_meta")
    ),
    "delete_comment": Route(f"{_FILE}/comments/{{comment_id}}", _done, "DELETE"),
    "components": Route(f"{_FILE}/components", _listed("components", COMPONENT, inside="meta")),
    "styles": Route(f"{_FILE}/styles", _listed("styles", STYLE, inside="meta")),
    "variables": Route(f"{_FILE}/variables/local", _in_meta("variables", "variableCollections")),
    "dev_resources": Route(f"{_FILE}/dev_resources", _listed("dev_resources"), ids="node_ids"),
    "me": Route("/v1/me", _kept("id", "handle", "email")),
}  # fmt: skip
"""Every method of the catalogue."""
