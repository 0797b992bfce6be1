"""A server on loopback that speaks Figma's REST API for one file; see wire.py.

    async with FakeFigma() as server:
        server.answer(refusal(403, "Invalid token"))

What it is asked and what it answers is held to Figma's own description.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.fakes.figma_rules import Asked, Wrong, check_answer, is_shaped, read
from tests.fakes.wire import Answer, FakeService, Received, Refused, reply

TOKEN = "figd_fake0123456789-abcdef"
FILE = "aBcD1234"
NOW = "2026-01-02T03:04:05Z"
ADA = {"id": "u1", "handle": "Ada", "img_url": "https://example.org/a.png"}
Document = dict[str, Any]


def refusal(status: int, message: str, *, shaped: bool = False, headers: Mapping[str, str] | None = None) -> Answer:
    """An error in one of Figma's two shapes."""
    document = {"error": True, "status": status, "message": message} if shaped else {"status": status, "err": message}
    return reply(document, status, headers=headers or {})


def _node(id_: str, name: str, kind: str, children: tuple[Document, ...] = ()) -> Document:
    return {"id": id_, "name": name, "type": kind} | ({"children": list(children)} if children else {})


class FakeFigma(FakeService):
    """The server; see the module. Node 1:3 cannot be rendered. `enterprise`: whether there are variables."""

    def __init__(
        self, *, headers: dict[str, str] | None = None, enterprise: bool = True, refusals_expected: bool = False
    ) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self.asked: list[Asked] = []
        self.comments: list[Document] = []
        self.versions: list[Document] = [
            {"id": str(1000 - number), "created_at": NOW, "label": None, "description": None, "user": ADA,
             "thumbnail_url": "https://example.org/t.png"}
            for number in range(3)
        ]  # fmt: skip
        leaves = (_node("1:2", "Button", "FRAME"), _node("1:3", "Empty", "GROUP"), _node("I1:2;3:4", "Part", "TEXT"))
        self.document = _node("0:0", "Document", "DOCUMENT", (_node("0:1", "Page", "CANVAS", leaves),))
        self._headers = {"x-figma-token": TOKEN} if headers is None else headers
        self._enterprise = enterprise
        self.say("First")

    @property
    def url(self) -> str:
        """What FIGMA_API_URL is set to."""
        return self.address

    def say(self, message: str, parent: str = "", where: Any = None) -> Document:
        """Another comment."""
        comment = {
            "id": str(len(self.comments) + 1), "file_key": FILE, "parent_id": parent, "user": ADA, "created_at": NOW,
            "resolved_at": None, "message": message, "client_meta": where or {"x": 0, "y": 0}, "order_id": "1",
            "reactions": [],
        }  # fmt: skip
        self.comments.append(comment)
        return comment

    def check(self, request: Received) -> None:
        """Raise Refused for what Figma would not take."""
        try:
            self.asked.append(read(request, self._headers))
        except Wrong as wrong:
            raise Refused(str(wrong), refusal(wrong.status, wrong.message, shaped=wrong.shaped)) from None

    def usual(self, request: Received) -> Answer:
        """What Figma answers, as things stand."""
        asked = self.asked[-1]
        operation = asked.path.removeprefix("/v1/").replace("files/{file_key}", "file").replace("/", "_")
        name = f"_{asked.verb}_{operation}".replace("{file_key}", "file").replace("{comment_id}", "one")
        try:
            if asked.parts.get("file_key", FILE) != FILE:
                raise Wrong(404, "Not found")
            document = getattr(self, name)(asked)
        except Wrong as wrong:  # what only the state of things refuses is an answer, as it is for whoever meets it
            answer = refusal(wrong.status, wrong.message, shaped=is_shaped(asked, wrong.status))
            check_answer(asked, wrong.status, json.loads(answer.body))
            return answer
        check_answer(asked, 200, document)
        return reply(document)

    # --- files --------------------------------------------------------------------------------------------------

    def _about(self) -> Document:
        return {"name": "Shop", "role": "owner", "lastModified": NOW, "editorType": "figma", "version": "1000",
                "thumbnailUrl": "https://example.org/t.png"}  # fmt: skip

    def _get_file(self, asked: Asked) -> Document:
        depth = int(asked.query.get("depth", 99))
        return self._about() | {"document": _cut(self.document, depth), "components": {}, "componentSets": {},
                                "schemaVersion": 0, "styles": {}}  # fmt: skip

    def _nodes(self, ids: str) -> dict[str, Document | None]:
        page = self.document["children"][0]
        there = {node["id"]: node for node in (self.document, page, *page["children"])}
        return {id_: there.get(id_) for id_ in ids.split(",")}

    def _get_file_nodes(self, asked: Asked) -> Document:
        nodes = {
            id_: {"document": node, "components": {}, "componentSets": {}, "schemaVersion": 0, "styles": {}}
            for id_, node in self._nodes(asked.query["ids"]).items()
            if node is not None
        }
        if not nodes:
            raise Wrong(404, "Not found")
        return self._about() | {"nodes": nodes}

    def _get_images_file(self, asked: Asked) -> Document:
        kind = asked.query.get("format", "png")
        nodes = self._nodes(asked.query["ids"])
        shown = {id_: node is not None and node["id"] != "1:3" for id_, node in nodes.items()}
        return {
            "err": None,
            "images": {id_: f"https://example.org/{id_}.{kind}" if there else None for id_, there in shown.items()},
        }

    def _get_file_images(self, asked: Asked) -> Document:
        return {"error": False, "status": 200, "meta": {"images": {"ref": "https://example.org/ref.png"}}}

    def _get_file_meta(self, asked: Asked) -> Document:
        return {"file": {"name": "Shop", "folder_name": "Web", "last_touched_at": NOW, "creator": ADA,
                         "editorType": "figma", "version": "1000"}}  # fmt: skip

    def _get_file_versions(self, asked: Asked) -> Document:
        size, before = int(asked.query.get("page_size", 30)), int(asked.query.get("before", 10**9))
        older = [one for one in self.versions if int(one["id"]) < before]
        more = len(older) > size
        pages = {"next_page": f"{self.url}/v1/files/{FILE}/versions?before={older[size - 1]['id']}"} if more else {}
        return {"versions": older[:size], "pagination": pages}

    # --- comments -----------------------------------------------------------------------------------------------

    def _get_file_comments(self, asked: Asked) -> Document:
        return {"comments": self.comments}

    def _post_file_comments(self, asked: Asked) -> Document:
        body = asked.body
        answered = next((one for one in self.comments if one["id"] == body.get("comment_id")), None)
        if "comment_id" in body and (answered is None or answered["parent_id"]):
            raise Wrong(400, "Comment to reply to is not a root comment")
        return self.say(body["message"], body.get("comment_id", ""), body.get("client_meta"))

    def _delete_file_comments_one(self, asked: Asked) -> Document:
        there = [one for one in self.comments if one["id"] == asked.parts["comment_id"]]
        if not there:
            raise Wrong(404, "Comment not found")
        self.comments.remove(there[0])
        return {"status": 200, "error": False}

    # --- libraries ----------------------------------------------------------------------------------------------

    def _published(self, kind: str) -> Document:
        return {"key": f"{kind}1", "file_key": FILE, "node_id": "1:2", "name": kind, "description": "",
                "created_at": NOW, "updated_at": NOW, "user": ADA}  # fmt: skip

    def _get_file_components(self, asked: Asked) -> Document:
        frame = {"nodeId": "0:1", "name": "Page", "pageId": "0:1", "pageName": "Page"}
        component = self._published("Button") | {"thumbnail_url": "https://example.org/t", "containing_frame": frame}
        return {"status": 200, "error": False, "meta": {"components": [component]}}

    def _get_file_styles(self, asked: Asked) -> Document:
        style = self._published("Red") | {"style_type": "FILL", "sort_position": "a", "thumbnail_url": "https://e/t"}
        return {"status": 200, "error": False, "meta": {"styles": [style]}}

    def _get_file_variables_local(self, asked: Asked) -> Document:
        if not self._enterprise:
            raise Wrong(403, "Limited by Figma plan")
        meta = {"variables": {"VariableID:1:1": {"name": "red"}}, "variableCollections": {}}
        return {"status": 200, "error": False, "meta": meta}

    def _get_file_dev_resources(self, asked: Asked) -> Document:
        resource = {"id": "d1", "name": "Code", "url": "https://example.org", "file_key": FILE, "node_id": "1:2"}
        wanted = asked.query.get("node_ids", "1:2").split(",")
        return {"dev_resources": [resource] if "1:2" in wanted else []}

    def _get_me(self, asked: Asked) -> Document:
        return ADA | {"email": "ada@example.org"}


def _cut(node: Document, depth: int) -> Document:
    """A tree's upper levels."""
    below = [_cut(child, depth - 1) for child in node.get("children", ())] if depth > 0 else []
    return {name: value for name, value in node.items() if name != "children"} | ({"children": below} if below else {})
