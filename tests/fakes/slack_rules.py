"""What Slack's Web API refuses: a request in, the refusal that it would get out.

Written from the service's documentation and not from our client, so that the two check each other.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.fakes.wire import Received

ID = re.compile(r"[CDG][A-Z0-9]{8,}")
PERSON = re.compile(r"[UW][A-Z0-9]{8,}")
TS = re.compile(r"\d{10}\.\d{6}")
COMMON = {"token", "pretty"}


class Wrong(Exception):
    """A refusal: the error's code, and what is said beside it."""

    def __init__(self, code: str, **more: Any) -> None:
        super().__init__(f"{code} {more or ''}")
        self.code, self.more = code, more


@dataclass(frozen=True)
class Rule:
    """A method: its arguments (`!` marks those it must have), whether it takes JSON, the scope that it needs."""

    takes: str
    takes_json: bool
    scope: str
    id_only: bool = True


_MESSAGE = "text blocks attachments metadata mrkdwn parse link_names"
RULES = {
    "auth.test": Rule("", True, ""),
    "chat.postMessage": Rule(
        f"channel! {_MESSAGE} thread_ts reply_broadcast unfurl_links unfurl_media markdown_text username icon_emoji",
        True, "chat:write", id_only=False,
    ),
    "chat.update": Rule(f"channel! ts! {_MESSAGE}", True, "chat:write"),
    "chat.delete": Rule("channel! ts!", True, "chat:write"),
    "chat.postEphemeral": Rule(f"channel! user! {_MESSAGE} thread_ts", True, "chat:write"),
    "conversations.history": Rule("channel! cursor oldest latest inclusive limit include_all_metadata", False,
                                  "channels:history"),
    "conversations.replies": Rule("channel! ts! cursor oldest latest inclusive limit", False, "channels:history"),
    "conversations.list": Rule("types exclude_archived cursor limit team_id", False, "channels:read"),
    "conversations.open": Rule("users channel return_im", True, "im:write"),
    "reactions.add": Rule("channel! timestamp! name!", True, "reactions:write"),
    "users.info": Rule("user! include_locale", False, "users:read"),
    "users.lookupByEmail": Rule("email!", False, "users:read.email"),
    "files.getUploadURLExternal": Rule("filename! length! alt_txt snippet_type", False, "files:write"),
    "files.completeUploadExternal": Rule("files! channel_id channels initial_comment thread_ts blocks", True,
                                         "files:write"),
}  # fmt: skip
_KINDS: dict[str, tuple[type, ...]] = {
    "blocks": (list,), "attachments": (list,), "files": (list,), "unfurl_links": (bool,), "unfurl_media": (bool,),
    "mrkdwn": (bool,), "reply_broadcast": (bool,), "link_names": (bool,), "metadata": (dict,), "return_im": (bool,),
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A request that is in order."""

    name: str
    args: dict[str, Any]


def read(request: Received, base: str, token: str, scopes: frozenset[str] | None) -> Asked:
    """What a request asks. Raises Wrong."""
    parts = urlsplit(request.path)
    name = parts.path.removeprefix(f"{base}/")
    rule = RULES.get(name)
    if rule is None:
        raise Wrong("unknown_method", req_method=name)
    args = _arguments(request, rule, dict(parse_qsl(parts.query)))
    given = request.headers.get("authorization", "").removeprefix("Bearer ") or args.pop("token", "")
    if not given:
        raise Wrong("not_authed")
    if given != token:
        raise Wrong("invalid_auth")
    if scopes is not None and rule.scope and rule.scope not in scopes:
        raise Wrong("missing_scope", needed=rule.scope, provided=",".join(sorted(scopes)))
    if "private_channel" in args.get("types", "") and scopes is not None and "groups:read" not in scopes:
        raise Wrong("missing_scope", needed="groups:read", provided=",".join(sorted(scopes)))
    _check(rule, args)
    return Asked(name, args)


def _arguments(request: Received, rule: Rule, query: dict[str, str]) -> dict[str, Any]:
    kind = request.headers.get("content-type", "")
    if request.method == "GET" or request.body is None:
        return _typed(query)
    if kind.startswith("application/json"):
        if not rule.takes_json:  # Slack does not even look into the body
            raise Wrong("invalid_arguments", response_metadata={"messages": ["[ERROR] missing required field"]})
        if "charset=utf-8" not in kind.replace(" ", "").lower():
            raise Wrong("missing_charset")  # of the service only a warning; here it is a mistake
        document = request.body if isinstance(request.body, dict) else json.loads(request.body)
        return query | document
    if kind.startswith("application/x-www-form-urlencoded"):
        return _typed(query | dict(parse_qsl(request.body)))
    raise Wrong("invalid_post_type")


def _typed(form: dict[str, str]) -> dict[str, Any]:
    """Fields of a form as what they stand for: lists and objects are written as JSON, booleans as words or digits."""
    words = {"true": True, "1": True, "True": True, "false": False, "0": False, "False": False}
    found: dict[str, Any] = {}
    for name, value in form.items():
        if name in _KINDS:
            found[name] = words[value] if bool in _KINDS[name] else json.loads(value)
        else:
            found[name] = value
    return found


def _check(rule: Rule, args: dict[str, Any]) -> None:
    names = rule.takes.split()
    known = {name.rstrip("!") for name in names} | COMMON
    for name, value in args.items():
        if name not in known:
            raise Wrong("invalid_arguments", response_metadata={"messages": [f"[ERROR] unknown field: {name}"]})
        if not isinstance(value, _KINDS.get(name, (str, int) if name in ("limit", "length") else (str,))):
            raise Wrong("invalid_arguments", response_metadata={"messages": [f"[ERROR] wrong type of {name}"]})
    for name in names:
        if name.endswith("!") and not args.get(name[:-1]):
            raise Wrong("invalid_arguments", response_metadata={"messages": [f"[ERROR] missing field: {name[:-1]}"]})
    _check_values(rule, args)


def _check_values(rule: Rule, args: dict[str, Any]) -> None:
    channel = args.get("channel")
    if channel is not None and rule.id_only and not ID.fullmatch(channel):
        raise Wrong("channel_not_found")
    for name in ("ts", "thread_ts", "timestamp"):
        if name in args and not TS.fullmatch(args[name]):
            raise Wrong("invalid_ts" if name == "ts" else "bad_timestamp")
    if "text" in args and len(args["text"]) > 40_000:
        raise Wrong("msg_too_long")
    if "blocks" in args:
        if len(args["blocks"]) > 50:
            raise Wrong("invalid_blocks", response_metadata={"messages": ["[ERROR] no more than 50 items allowed"]})
        if not all(isinstance(block, dict) and "type" in block for block in args["blocks"]):
            raise Wrong("invalid_blocks", errors=["missing required field: type [json-pointer:/blocks/0]"])
    if "blocks" not in args and "text" in args and not args["text"].strip():
        raise Wrong("no_text")
    if "limit" in args and not 1 <= int(args["limit"]) <= 1000:
        raise Wrong("invalid_limit")
    if ":" in args.get("name", ""):
        raise Wrong("invalid_name")
