"""A server on loopback that speaks Slack's Web API for one workspace; see wire.py.

    async with FakeSlack() as server:
        server.say("general", "hello")
        server.answer(refusal("not_in_channel"))

It keeps what it is told, pages with cursors, answers failures with status 200, and refuses as Slack does.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.fakes.slack_rules import ID, PERSON, Asked, Wrong, read
from tests.fakes.wire import Answer, FakeService, Received, Refused, reply

TOKEN = "xoxb-fake-0123456789-abcdef"
BOT = "U00000BOT1"
ADA = "U00000ADA1"
Document = dict[str, Any]


def refusal(code: str, **more: Any) -> Answer:
    """An error in Slack's shape: the status says nothing of it."""
    return reply({"ok": False, "error": code, **more})


def limited(seconds: int | None = 30) -> Answer:
    """The refusal of a rate limit."""
    headers = {} if seconds is None else {"retry-after": str(seconds)}
    return reply({"ok": False, "error": "ratelimited"}, 429, headers=headers)


class FakeSlack(FakeService):
    """The server; see the module. `scopes`: what the token may do; None for everything."""

    json_only = False

    def __init__(self, *, scopes: frozenset[str] | None = None, refusals_expected: bool = False) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self.channels: dict[str, Document] = {}
        self.messages: dict[str, list[Document]] = {}
        self.files: dict[str, Document] = {}
        self.bytes_sent: dict[str, str] = {}
        self.asked: list[Asked] = []
        self.people: dict[str, Document] = {
            ADA: {"id": ADA, "name": "ada", "real_name": "Ada Lovelace", "is_bot": False, "deleted": False,
                  "profile": {"real_name": "Ada Lovelace", "display_name": "ada", "email": "ada@example.org"}},
        }  # fmt: skip
        self._scopes = scopes
        self._clock = 1_764_000_000
        for name in ("general", "random", "secret"):
            self.add_channel(name, member=name != "secret")

    @property
    def url(self) -> str:
        """What SLACK_API_URL is set to."""
        return f"{self.address}/api"

    def add_channel(self, name: str, *, member: bool = True) -> str:
        """Another channel; its id."""
        id_ = f"C{len(self.channels) + 1:09}"
        self.channels[id_] = {
            "id": id_, "name": name, "is_channel": True, "is_private": False, "is_member": member, "is_archived": False,
            "num_members": 3, "topic": {"value": f"about {name}", "creator": "", "last_set": 0},
            "purpose": {"value": "", "creator": "", "last_set": 0},
        }  # fmt: skip
        self.messages[id_] = []
        return id_

    def id_of(self, name: str) -> str:
        """A channel's id by its name."""
        return next(id_ for id_, channel in self.channels.items() if channel["name"] == name)

    def say(self, channel: str, text: str, *, user: str = ADA, thread: str | None = None) -> str:
        """Another message; its timestamp. `text` as it goes over the wire."""
        self._clock += 1
        ts = f"{self._clock}.000100"
        told = {"type": "message", "ts": ts, "user": user, "text": text} | ({"thread_ts": thread} if thread else {})
        self.messages[self.id_of(channel)].append(told)
        return ts

    def check(self, request: Received) -> None:
        """Raise Refused for what Slack would not take."""
        if request.path.startswith("/upload/"):
            self._check_upload(request)
            return
        try:
            self.asked.append(read(request, "/api", TOKEN, self._scopes))
        except Wrong as wrong:
            raise Refused(str(wrong), refusal(wrong.code, **wrong.more)) from None

    def usual(self, request: Received) -> Answer:
        """What Slack answers, as things stand."""
        if request.path.startswith("/upload/"):
            self.bytes_sent[request.path.rsplit("/", 1)[1]] = request.body
            return Answer(body=f"OK - {len(request.body)}".encode(), content_type="text/plain")
        asked = self.asked[-1]
        try:
            document = getattr(self, "_" + asked.name.replace(".", "_"))(asked.args)
        except Wrong as wrong:  # what only the state of things refuses is an answer, as it is for whoever meets it
            return refusal(wrong.code, **wrong.more)
        return reply({"ok": True, **document})

    def _check_upload(self, request: Received) -> None:
        place = urlsplit(request.path).path.rsplit("/", 1)[1]
        if request.method != "POST" or place not in self.files or "authorization" in request.headers:
            raise Refused("upload", Answer(400, b"bad upload", content_type="text/plain"))

    def _channel(self, given: str, *, member: bool = True) -> str:
        name = given.removeprefix("#")
        found = given if given in self.channels else next(
            (id_ for id_, channel in self.channels.items() if channel["name"] == name), None
        )  # fmt: skip
        if found is None:
            raise Wrong("channel_not_found")
        if member and not self.channels[found]["is_member"]:
            raise Wrong("not_in_channel")
        return found

    def _message(self, args: Document, name: str = "ts", *, own: str | None = None) -> Document:
        channel = self._channel(args["channel"])
        found = next((one for one in self.messages[channel] if one["ts"] == args[name]), None)
        if found is None:
            raise Wrong("message_not_found")
        if own is not None and found["user"] != BOT:
            raise Wrong(own)
        return found

    # --- methods ------------------------------------------------------------------------------------------------

    def _auth_test(self, args: Document) -> Document:
        return {"url": "https://acme.slack.com/", "team": "Acme", "user": "halo", "user_id": BOT}

    def _chat_postMessage(self, args: Document) -> Document:  # noqa: N802 - the service's names
        given = args["channel"]
        if PERSON.fullmatch(given):
            given = self._conversations_open({"users": given})["channel"]["id"]
        if not args.get("text") and not args.get("blocks"):
            raise Wrong("no_text")
        channel = self._channel(given)
        ts = self.say(self.channels[channel]["name"], args.get("text", ""), user=BOT, thread=args.get("thread_ts"))
        message = self.messages[channel][-1]
        message |= {"blocks": args["blocks"]} if "blocks" in args else {}
        return {"channel": channel, "ts": ts, "message": message}

    def _chat_update(self, args: Document) -> Document:
        message = self._message(args, own="cant_update_message")
        message |= {"text": args.get("text", ""), "edited": {"user": BOT, "ts": f"{self._clock}.000000"}}
        return {"channel": args["channel"], "ts": args["ts"], "text": message["text"], "message": message}

    def _chat_delete(self, args: Document) -> Document:
        message = self._message(args, own="cant_delete_message")
        self.messages[args["channel"]].remove(message)
        return {"channel": args["channel"], "ts": args["ts"]}

    def _chat_postEphemeral(self, args: Document) -> Document:  # noqa: N802
        self._channel(args["channel"])
        if args["user"] not in self.people:
            raise Wrong("user_not_in_channel")
        self._clock += 1
        return {"message_ts": f"{self._clock}.000100"}

    def _conversations_history(self, args: Document) -> Document:
        channel = self._channel(args["channel"])
        tops = [one for one in self.messages[channel] if one.get("thread_ts") in (None, one["ts"])]
        return self._paged("messages", list(reversed(tops)), args, has_more=True)

    def _conversations_replies(self, args: Document) -> Document:
        channel = self._channel(args["channel"])
        thread = [one for one in self.messages[channel] if args["ts"] in (one["ts"], one.get("thread_ts"))]
        if not thread:
            raise Wrong("thread_not_found")
        return self._paged("messages", thread, args, has_more=True)

    def _conversations_list(self, args: Document) -> Document:
        return self._paged("channels", list(self.channels.values()), args)

    def _conversations_open(self, args: Document) -> Document:
        people = args["users"].split(",")
        if not all(person in self.people for person in people):
            raise Wrong("user_not_found")
        name = "dm-" + "-".join(people)
        found = next((id_ for id_, channel in self.channels.items() if channel["name"] == name), None)
        return {"channel": {"id": found or self.add_channel(name)}}

    def _reactions_add(self, args: Document) -> Document:
        message = self._message(args, "timestamp")
        reactions = message.setdefault("reactions", [])
        if any(one["name"] == args["name"] for one in reactions):
            raise Wrong("already_reacted")
        reactions.append({"name": args["name"], "count": 1, "users": [BOT]})
        return {}

    def _users_info(self, args: Document) -> Document:
        if args["user"] not in self.people:
            raise Wrong("user_not_found")
        return {"user": self.people[args["user"]]}

    def _users_lookupByEmail(self, args: Document) -> Document:  # noqa: N802
        found = [one for one in self.people.values() if one["profile"]["email"] == args["email"]]
        if not found:
            raise Wrong("users_not_found")
        return {"user": found[0]}

    def _files_getUploadURLExternal(self, args: Document) -> Document:  # noqa: N802
        id_ = f"F{len(self.files) + 1:09}"
        self.files[id_] = {"id": id_, "name": args["filename"], "length": int(args["length"])}
        return {"upload_url": f"{self.address}/upload/v1/{id_}", "file_id": id_}

    def _files_completeUploadExternal(self, args: Document) -> Document:  # noqa: N802
        done: list[Document] = []
        if "channel_id" in args:
            if not ID.fullmatch(args["channel_id"]):
                raise Wrong("invalid_channel")
            self._channel(args["channel_id"])
        for one in args["files"]:
            file = self.files.get(one["id"])
            sent = self.bytes_sent.get(one["id"])
            if file is None or sent is None:
                raise Wrong("file_not_found")
            if len(sent.encode(errors="surrogateescape")) != file["length"]:
                raise Wrong("file_upload_size_mismatch")
            file |= {"title": one.get("title", file["name"]), "channel": args.get("channel_id")}
            done.append({"id": file["id"], "title": file["title"]})
        return {"files": done}

    def _paged(self, name: str, items: list[Document], args: Document, **more: Any) -> Document:
        start = 0
        if args.get("cursor"):
            if not args["cursor"].startswith("at="):
                raise Wrong("invalid_cursor")
            start = int(args["cursor"].removeprefix("at=").rstrip("="))
        end = start + int(args.get("limit", 100))
        following = f"at={end}=" if end < len(items) else ""
        shown = {"has_more": bool(following)} if more else {}
        return {name: items[start:end], "response_metadata": {"next_cursor": following}} | shown
