"""`Slack(token)`: messages, threads, people and files of a workspace, by Slack's Web API (reference 2.5)."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from html import unescape
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from halo_lang.catalog.providers.messages import SLACK
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.pick import pick
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.slack.errors import explain, failed
from halo_runtime.tools.threads import Workers
from halo_runtime.tools.web.client import WebClient, WebRequest
from halo_runtime.tools.web.service import Service, failures_of
from halo_runtime.tools.workspace.taking import take_files

SERVICE: Final = Service("Slack", "https://slack.com/api", "SLACK_API_URL")
MAX_TEXT: Final = 40_000
MAX_BLOCKS: Final = 50
MAX_UPLOAD_BYTES: Final = 50 * 1024 * 1024
MAX_PAGES: Final = 50
"""Pages of 200 channels that are looked through for a name."""

MESSAGE: Final = (
    "ts", "user", "bot_id", "username", "subtype", "text", "thread_ts", "reply_count", "edited.ts", "files.id",
    "files.name", "reactions.name", "reactions.count",
)  # fmt: skip
CHANNEL: Final = ("id", "name", "is_private", "is_member", "num_members", "topic.value", "purpose.value")
PUBLIC: Final = "public_channel"

_ID: Final = re.compile(r"[CDGUW][A-Z0-9]{2,20}")
_TS: Final = re.compile(r"\d{1,12}\.\d{6}")
_LIVE: Final = {"exclude_archived": "true"}
_JSON: Final = "application/json; charset=utf-8"


class Slack:
    """One workspace, as one bot. The ids of channels are remembered."""

    def __init__(self, name: str, base: str, client: WebClient, token: str, folder: Path, channel: str | None) -> None:
        self._name = name
        self._base = base
        self._client = client
        self._token = token
        self._folder = folder
        self._channel = channel
        self._workers = Workers(name)
        self._ids: dict[str, str] = {}
        self._types = f"{PUBLIC},private_channel"
        self._methods: dict[str, Callable[[str, JsonObject], Awaitable[Json]]] = {
            "post": self._post, "update": self._update, "delete": self._delete, "ephemeral": self._ephemeral,
            "history": self._history, "replies": self._replies, "channels": self._channels, "openDm": self._open_dm,
            "react": self._react, "user": self._user, "upload": self._upload,
        }  # fmt: skip

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError."""
        do = self._methods.get(method)
        if do is None:
            raise ToolError(f"{self._name}.{method}: there is no such method; there are {', '.join(self._methods)}")
        with failures_of(self._name, method):
            return await do(method, args)

    async def close(self) -> None:
        """Close the connections."""
        self._workers.close()
        await self._client.close()

    async def notify(self, subject: str, text: str) -> None:
        """Post the text to the declaration's channel. Raises ToolError where there is none."""
        await self.call("post", {"text": text})

    async def probe(self) -> str:
        """Ask who the token belongs to."""
        found = await self._answer(WebRequest(self._name, "GET", f"{self._base}/auth.test", self._headers()))
        return f"{found.get('user')} in {found.get('team')}"

    # --- messages -----------------------------------------------------------------------------------------------

    async def _post(self, method: str, args: JsonObject) -> Json:
        channel = args.get("channel") or self._channel
        if not channel:
            raise ToolError('no channel is named; give channel: "#general" to the declaration or the call')
        body = _content(args) | {"channel": channel}
        found = await self._tell(method, "chat.postMessage", body | _unfolded() | _in_thread(args))
        return {"channel": found.get("channel"), "ts": found.get("ts")}

    async def _update(self, method: str, args: JsonObject) -> Json:
        body = _content(args) | {"channel": await self._id(method, args["channel"]), "ts": _ts(args["ts"], "ts")}
        found = await self._tell(method, "chat.update", body)
        return {"channel": found.get("channel"), "ts": found.get("ts")}

    async def _delete(self, method: str, args: JsonObject) -> Json:
        body = {"channel": await self._id(method, args["channel"]), "ts": _ts(args["ts"], "ts")}
        return await self._done(method, "chat.delete", body, otherwise={"message_not_found": False})

    async def _ephemeral(self, method: str, args: JsonObject) -> Json:
        body = _content(args) | {"channel": await self._id(method, args["channel"]), "user": args["user"]}
        found = await self._tell(method, "chat.postEphemeral", body | _in_thread(args))
        return {"ts": found.get("message_ts")}

    async def _react(self, method: str, args: JsonObject) -> Json:
        channel, ts = await self._id(method, args["channel"]), _ts(args["ts"], "ts")
        body = {"channel": channel, "timestamp": ts, "name": args["name"].strip().strip(":")}
        return await self._done(method, "reactions.add", body, otherwise={"already_reacted": True})

    async def _done(self, method: str, api: str, body: JsonObject, *, otherwise: Mapping[str, bool]) -> Json:
        """True, or what a refusal means that says how things are already."""
        try:
            await self._tell(method, api, body)
        except ToolError as error:
            if error.detail is None or error.detail not in otherwise:
                raise
            return otherwise[error.detail]
        return True

    # --- reading ------------------------------------------------------------------------------------------------

    async def _history(self, method: str, args: JsonObject) -> Json:
        return await self._messages(method, "conversations.history", args, {})

    async def _replies(self, method: str, args: JsonObject) -> Json:
        return await self._messages(method, "conversations.replies", args, {"ts": _ts(args["ts"], "ts")})

    async def _messages(self, method: str, api: str, args: JsonObject, more: JsonObject) -> Json:
        query = _page(args) | more | {"channel": await self._id(method, args["channel"])}
        found = await self._ask(method, api, query)
        messages: Json = pick(_listed(found, "messages"), MESSAGE).value
        for message in messages:
            if isinstance(message.get("text"), str):
                message["text"] = unescape(message["text"])
        return {"messages": messages, "cursor": _next(found)}

    async def _channels(self, method: str, args: JsonObject) -> Json:
        found = await self._list(method, _page(args))
        return {"channels": pick(_listed(found, "channels"), CHANNEL).value, "cursor": _next(found)}

    async def _user(self, method: str, args: JsonObject) -> Json:
        if args.get("id"):
            found = await self._ask(method, "users.info", {"user": args["id"]})
        else:
            found = await self._ask(method, "users.lookupByEmail", {"email": args["email"]})
        user: JsonObject = found.get("user") or {}
        profile: JsonObject = user.get("profile") or {}
        return {
            "id": user.get("id"),
            "name": profile.get("display_name") or user.get("name"),
            "realName": profile.get("real_name") or user.get("real_name"),
            "email": profile.get("email"),
            "isBot": bool(user.get("is_bot")),
            "deleted": bool(user.get("deleted")),
        }

    async def _open_dm(self, method: str, args: JsonObject) -> Json:
        found = await self._tell(method, "conversations.open", {"users": args["user"].replace(" ", "")})
        channel: Json = found.get("channel")
        return {"channel": channel.get("id") if is_object(channel) else None}

    # --- files --------------------------------------------------------------------------------------------------

    async def _upload(self, method: str, args: JsonObject) -> Json:
        """Three steps: ask for an address, send the bytes there, say what to do with them."""
        paths = (args["path"],)
        [file] = await self._workers.do(
            lambda stop: take_files(self._folder, "of the program", paths, MAX_UPLOAD_BYTES, stop)
        )
        if not file.content:
            raise ToolError(f"`{args['path']}` is empty, which Slack does not take")
        channel = await self._id(method, args["channel"])
        place = await self._ask(
            method, "files.getUploadURLExternal", {"filename": file.name, "length": str(len(file.content))}
        )
        await self._put(method, str(place.get("upload_url")), file.content)
        files = [{"id": place.get("file_id"), "title": args.get("title") or file.name}]
        await self._tell(
            method, "files.completeUploadExternal", {"files": files, "channel_id": channel} | _in_thread(args)
        )
        return {"id": place.get("file_id")}

    async def _put(self, method: str, url: str, content: bytes) -> None:
        """Send a file's bytes where Slack has said; the token does not go there."""
        address, base = urlsplit(url), urlsplit(self._base)
        if address.scheme != "https" and (address.scheme, address.hostname) != (base.scheme, base.hostname):
            raise ToolError("Slack gives an address for the file that is not https; nothing was uploaded")
        headers = {"content-type": "application/octet-stream"}
        request = WebRequest(f"{self._name}.{method}", "POST", url, headers, content, repeatable=False)
        answer = await self._client.send(request)
        if answer.status != 200:
            raise failed(request, answer)

    # --- the service --------------------------------------------------------------------------------------------

    async def _id(self, method: str, channel: str) -> str:
        """The id of a channel by its name; ids stay as they are. Most methods take nothing else."""
        name = channel.strip().removeprefix("#")
        if _ID.fullmatch(name):
            return name
        name = name.lower()
        if name not in self._ids:
            await self._look_for(method, name)
        return self._ids[name]

    async def _look_for(self, method: str, name: str) -> None:
        """Look through the channels for a name. Raises ToolError where there is none."""
        query: JsonObject = {"limit": "200"}
        for _ in range(MAX_PAGES):
            found = await self._list(method, query)
            for one in _listed(found, "channels"):
                self._ids[str(one.get("name"))] = str(one.get("id"))
            cursor = _next(found)
            if name in self._ids:
                return
            if cursor is None:
                break
            query = query | {"cursor": cursor}
        raise ToolError(f"there is no channel #{name} that the bot can see: invite it there, or give the channel's id")

    async def _list(self, method: str, page: JsonObject) -> JsonObject:
        """A page of the channels: private ones too, where the token may see such channels at all."""
        try:
            return await self._ask(method, "conversations.list", page | {"types": self._types, **_LIVE})
        except ToolError as error:
            if error.detail != "missing_scope" or self._types == PUBLIC:
                raise
            self._types = PUBLIC
            return await self._list(method, page)

    async def _ask(self, method: str, api: str, query: JsonObject) -> JsonObject:
        """A method of Slack's that reads; not all of these take JSON."""
        url = f"{self._base}/{api}" + (f"?{urlencode(query, errors='replace')}" if query else "")
        return await self._answer(WebRequest(f"{self._name}.{method}", "GET", url, self._headers()))

    async def _tell(self, method: str, api: str, body: JsonObject) -> JsonObject:
        """A method of Slack's that changes something."""
        entry = SLACK.method(method)
        repeatable = entry is not None and entry.idempotent
        content = json.dumps(body).encode()
        headers = self._headers() | {"content-type": _JSON}
        return await self._answer(
            WebRequest(f"{self._name}.{method}", "POST", f"{self._base}/{api}", headers, content, repeatable)
        )

    async def _answer(self, request: WebRequest) -> JsonObject:
        answer = await self._client.send(request)
        if answer.status != 200:
            raise failed(request, answer)
        document = SERVICE.read(request, answer)
        if not is_object(document) or "ok" not in document:
            raise SERVICE.unreadable(request)
        if document["ok"] is not True:
            raise explain(request, document)
        return document

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token}", "accept": "application/json"}


def open_slack(config: ToolConfig) -> Slack:
    """The workspace of a declaration; nothing is connected to yet. Raises ConfigError."""
    settings = config.settings
    base = SERVICE.address(settings)
    token = SERVICE.secret(settings, "token", base)
    if token is None:
        raise ConfigError("token: is missing; give a bot's token (xoxb-…), or set SLACK_BOT_TOKEN")
    return Slack(config.name, base, SERVICE.client(base), token, config.folder, settings.get("channel"))


def escaped(text: str) -> str:
    """A text of which Slack reads nothing as a mention or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _content(args: JsonObject) -> JsonObject:
    """Text and blocks as Slack takes them. Raises ToolError."""
    text: str = (args.get("text") or "").encode("utf-8", "replace").decode()
    blocks: Json = args.get("blocks")
    if not text.strip() and not blocks:
        raise ToolError("the text is empty, which Slack does not take")
    if blocks is not None and len(blocks) > MAX_BLOCKS:
        raise ToolError(f"there are {len(blocks)} blocks; Slack takes {MAX_BLOCKS}")
    sent = text if args.get("markup") else escaped(text)
    if len(sent) > MAX_TEXT:
        raise ToolError(f"the text has {len(sent):,} characters, Slack takes {MAX_TEXT:,}; upload it as a file")
    return {"text": sent} | ({"blocks": blocks} if blocks else {})


def _unfolded() -> JsonObject:
    """No previews: to show one, Slack fetches the address, with whatever somebody has put into it."""
    return {"unfurl_links": False, "unfurl_media": False}


def _in_thread(args: JsonObject) -> JsonObject:
    return {"thread_ts": _ts(args["thread"], "thread")} if args.get("thread") else {}


def _ts(text: str, what: str) -> str:
    if _TS.fullmatch(text) is None:
        raise ToolError(f"{what} is a message's timestamp, a text such as 1764000000.000100")
    return text


def _page(args: JsonObject) -> JsonObject:
    cursor: Json = args.get("cursor")
    return {"limit": str(int(args["limit"]))} | ({"cursor": cursor} if cursor else {})


def _listed(document: JsonObject, name: str) -> list[JsonObject]:
    found: Json = document.get(name)
    return [one for one in found if is_object(one)] if is_list(found) else []


def _next(document: JsonObject) -> str | None:
    """Where the next page begins; Slack says "" at the end."""
    metadata: Json = document.get("response_metadata")
    cursor: Json = metadata.get("next_cursor") if is_object(metadata) else None
    return cursor if isinstance(cursor, str) and cursor else None
