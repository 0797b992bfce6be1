"""Results of tools, from the wire to values. Pure.

Structured content comes before text; several texts are joined. Values are JSON, so that what is neither, pictures and
sounds, is told of and left out.
"""

from __future__ import annotations

from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.tools.mcp.limits import MAX_TEXT
from halo_runtime.tools.web.client import clean
from halo_runtime.values import compact

_LINK_PARTS: Final = ("uri", "name", "title", "description", "mimeType")


def read_result(document: JsonObject) -> Json:
    """What `tools/call` brought.

    The structured content, else the text; where there is more than text, `{structured?, text?, attachments}`. Raises
    ToolError for a result that is an error, and for a server that asks something back.
    """
    if document.get("resultType") == "input_required":
        raise ToolError(
            "the server wants to ask a person or a model before it answers, which Halo lets no server do; "
            "give the tool all that it needs as arguments"
        )
    blocks: Json = document.get("content")
    content = [block for block in blocks if is_object(block)] if is_list(blocks) else []
    text = _cut("\n".join(_text(block) for block in content if _is_text(block)))
    if document.get("isError") is True:
        raise ToolError(f"the tool failed: {_cut(text, 2_000) or 'it does not say why'}", detail=clean(text) or None)
    structured = document.get("structuredContent")
    attachments: list[Json] = [_attachment(block) for block in content if not _is_text(block)]
    value: Json = text if structured is None else _bounded(structured, text)
    if not attachments:
        return value
    name = "text" if structured is None else "structured"
    return {**({name: value} if value != "" else {}), "attachments": attachments}


def _is_text(block: JsonObject) -> bool:
    return block.get("type") == "text"


def _text(block: JsonObject) -> str:
    return str(block.get("text") or "")


def _attachment(block: JsonObject) -> JsonObject:
    """What a block is; of its bytes only how many there are."""
    kind = str(block.get("type"))
    if kind == "resource_link":
        return {"type": kind} | {name: _cut(str(block[name]), 2_000) for name in _LINK_PARTS if block.get(name)}
    resource: Json = block.get("resource") if kind == "resource" else block
    source: JsonObject = resource if is_object(resource) else {}
    told: JsonObject = {name: source[name] for name in ("uri", "mimeType") if source.get(name)}
    if isinstance(source.get("text"), str):
        told["text"] = _cut(source["text"])
    data = source.get("data") or source.get("blob")
    if isinstance(data, str):
        told["bytes"] = len(data.rstrip("=")) * 3 // 4  # base64
    return {"type": kind, **told}


def _bounded(structured: Json, text: str) -> Json:
    """Structured content as it is; where it is too large, the text that says the same, cut."""
    written = compact(structured)
    return structured if len(written) <= MAX_TEXT else text or _cut(written)


def _cut(text: str, most: int = MAX_TEXT) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[… {len(text) - most:,} of {len(text):,} characters left out; ask for a part of it]"
