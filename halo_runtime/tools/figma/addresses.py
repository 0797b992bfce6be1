"""What people copy out of Figma: addresses of files, and nodes as these write them (reference 2.4). Pure functions."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from halo_lang.records import record
from halo_runtime.errors import ToolError

_KEY: Final = re.compile(r"[A-Za-z0-9]{1,128}")
_PATH: Final = re.compile(
    r"/(?:file|design|proto|board|slides|deck|buzz|site|make)/([A-Za-z0-9]{1,128})"
    r"(?:/branch/([A-Za-z0-9]{1,128}))?(?:/[^/]*)?/?"
)
_NODE: Final = re.compile(r"(I?)(-?\d{1,12})[:-](-?\d{1,12})")
_HOSTS: Final = ("figma.com", "www.figma.com")


@record
class Place:
    """A file by its key, and the node that its address points to, if any."""

    key: str
    node: str | None = None


def place_of(text: str) -> Place:
    """A file's key as it is, or that of its address; of a branch, the branch's. Raises ToolError."""
    text = text.strip()
    if _KEY.fullmatch(text):
        return Place(text)
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        found = _PATH.fullmatch(parts.path) if parts.hostname in _HOSTS else None
    except ValueError:
        found, parts = None, urlsplit("")
    if found is None:
        raise ToolError("key is a file's key, or its address such as https://www.figma.com/design/KEY/name")
    node = parse_qs(parts.query).get("node-id")
    return Place(found[2] or found[1], node_id(node[0]) if node else None)


def node_id(text: str) -> str:
    """A node's id as the API writes it, `1:2`; addresses have `1-2`. Raises ToolError."""
    segments = [_NODE.fullmatch(part) for part in unquote(text).strip().split(";")]
    known = [found for found in segments if found is not None]
    if len(known) < len(segments):
        raise ToolError('a node\'s id is written "1:2", or "1-2" as in addresses')
    return ";".join(f"{found[1]}{found[2]}:{found[3]}" for found in known)
