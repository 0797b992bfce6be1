"""Every method of Email against real servers: what it does, how it fails, and that it can be cancelled half-way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools.base import Probing
from halo_runtime.tools.email.provider import Email
from tests.services.mail import CERTIFICATE, Dovecot, Post, Wire
from tests.tools.mailing import SPEC, Box, ask, mail, opened, sending

pytestmark = pytest.mark.dovecot

PDF = b"%PDF-1.7 nothing"


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


@pytest.fixture
def box(mailboxes: Dovecot) -> Box:
    """Two mails: 1 with an attachment, 2 the newer one."""
    made = Box(mailboxes)
    made.put(
        mail("See it.\n", subject="The bill", files={"bill.pdf": PDF}, Message_ID="<1@x>"),
        mail(subject="Re: Grüße", sender="Bob <bob@other.example>", Reply_To="desk@other.example", Message_ID="<2@x>",
             References="<0@x> <1@x>"),
    )  # fmt: skip
    made.put(mail(subject="Old"), folder="Archive")
    return made


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    async with Post() as server:
        yield server


@pytest.fixture
async def tool(post: Post, box: Box, tmp_path: Path) -> AsyncIterator[Email]:
    made = opened({**sending(post.port), **box.settings}, tmp_path)
    yield made
    await made.close()


# Method → arguments, what is looked at in the result, what it is.
DONE: dict[str, tuple[dict[str, Any], Callable[[Any], Any], Any]] = {
    "send": (
        {"to": "ada@example.org", "subject": "s", "text": "t"},
        lambda sent: (sent["id"].endswith("@example.org>"), sent["refused"]),
        (True, []),
    ),
    "reply": ({"uid": "2", "text": "Thanks."}, lambda sent: sent["refused"], []),
    "list": (
        {},
        lambda found: [(one["uid"], one["from"], one["subject"], one["seen"]) for one in found],
        [("2", "Bob <bob@other.example>", "Re: Grüße", False), ("1", "Ada <ada@example.org>", "The bill", False)],
    ),
    "read": (
        {"uid": "1"},
        lambda found: {name: found[name] for name in ("text", "date", "to", "attachments")},
        {
            "text": "See it.",
            "date": "2026-11-30T10:00:00+01:00",
            "to": ["me@example.org"],
            "attachments": [{"name": "bill.pdf", "type": "application/pdf", "size": len(PDF)}],
        },
    ),
    "search": ({"subject": "grüße", "since": "2020-01-01"}, lambda found: [one["uid"] for one in found], ["2"]),
    "markRead": ({"uid": "1"}, lambda done: done, True),
    "move": ({"uid": "1", "to": "Archive"}, lambda done: done, True),
    "delete": ({"uid": "1"}, lambda done: done, True),
    "attachment": ({"uid": "1", "name": "bill.pdf"}, lambda kept: kept, {"path": "attachments/bill.pdf", "size": 16}),
}
STOPS = {
    "send": b"DATA", "reply": b"DATA", "list": b"SEARCH", "read": b"FETCH", "search": b"SEARCH", "markRead": b"STORE",
    "move": b"MOVE", "delete": b"STORE", "attachment": b"FETCH",
}  # fmt: skip
"""The command of each method that a wire stops at."""


def test_every_method_of_the_catalogue_is_tried() -> None:
    assert set(DONE) == set(STOPS) == set(SPEC.method_names)


@pytest.mark.parametrize("method", DONE)
async def test_every_method_does_what_it_says(tool: Email, method: str) -> None:
    args, look, expected = DONE[method]
    assert look(await ask(tool, method, **args)) == expected


@pytest.mark.parametrize("method", set(DONE) - {"send"})
async def test_every_method_that_reads_fails_as_the_server_does(tool: Email, method: str) -> None:
    with pytest.raises(ToolError, match=rf"^Post\.{method}: .* does not open `No`: .*there are .*Archive") as caught:
        await ask(tool, method, **DONE[method][0], folder="No")
    assert not caught.value.retryable
    assert len(await ask(tool, "list")) == 2  # the connection still works


@pytest.mark.parametrize("method", ["send", "reply"])
async def test_every_method_that_sends_fails_as_the_server_does(post: Post, tool: Email, method: str) -> None:
    post.says = lambda command, about: "550 5.1.1 no such person" if command == "RCPT" else None
    with pytest.raises(ToolError, match=rf"^Post\.{method}: .* took none .*: 550 5\.1\.1 no such person") as caught:
        await ask(tool, method, **DONE[method][0])
    assert (caught.value.status, caught.value.retryable, post.sent) == (550, False, [])


@asynccontextmanager
async def wired(post: Post, box: Box, word: bytes, folder: Path, **how: Any) -> AsyncIterator[tuple[Email, Wire]]:
    """A tool whose two servers are behind wires that stop at a word; the wire on which it comes."""
    async with Wire(post.port, stop_at=word, **how) as out, Wire(box.server.plain, stop_at=word, **how) as into:
        settings = {**sending(out.port), **box.settings, "imap": f"127.0.0.1:{into.port}"}
        tool = opened(settings, folder)
        yield tool, out if word == b"DATA" else into
        await tool.close()


async def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel once, which must be enough."""
    task.cancel()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()


@pytest.mark.parametrize("method", DONE)
async def test_every_method_can_be_cancelled_half_way(box: Box, tmp_path: Path, method: str) -> None:
    async with (
        Post(tls=False) as post,
        wired(post, box, STOPS[method], tmp_path) as (tool, wire),
        asyncio.timeout(10),
    ):
        task = asyncio.create_task(ask(tool, method, **DONE[method][0]))
        await wire.held.wait()
        await cancel(task)
        await wire.left.wait()
        assert post.sent == []


@pytest.mark.parametrize("method", DONE)
async def test_only_what_may_happen_twice_is_tried_again(box: Box, tmp_path: Path, method: str) -> None:
    async with Post(tls=False) as post, wired(post, box, STOPS[method], tmp_path, cut=True) as (tool, _):
        with pytest.raises(ToolError, match="broke the connection") as caught:
            await ask(tool, method, **DONE[method][0])
    entry = SPEC.method(method)
    assert entry is not None
    assert caught.value.retryable is (entry.effect == "read" or entry.idempotent)
    assert ("may have been" in caught.value.message) is not caught.value.retryable


@pytest.mark.parametrize("server", ["smtp", "smtps", "imap", "imaps"])
async def test_a_server_that_says_nothing_can_be_left(server: str) -> None:
    gone = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()
        gone.set()
        writer.close()

    came = asyncio.Event()
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as silence:
        port = silence.sockets[0].getsockname()[1]
        protocol = server.removesuffix("s")
        tool = opened({**sending(port), "smtp": None, protocol: f"{server}://127.0.0.1:{port}"})
        method = "send" if protocol == "smtp" else "list"
        task = asyncio.create_task(ask(tool, method, **(DONE["send"][0] if method == "send" else {})))
        async with asyncio.timeout(10):
            await came.wait()
            await cancel(task)
            await gone.wait()
        await tool.close()


async def test_a_server_that_takes_too_long_is_left(box: Box, tmp_path: Path) -> None:
    async with Wire(box.server.plain, stop_at=b"SEARCH") as wire:
        tool = opened({**box.settings, "imap": f"127.0.0.1:{wire.port}", "timeout": "200ms"}, tmp_path)
        with pytest.raises(ToolError, match=r"gave no complete answer within 0\.2 s; allow more with timeout:"):
            await ask(tool, "list")
        await wire.left.wait()
        await tool.close()


# --- the mailbox ------------------------------------------------------------------------------------------------------


async def test_reading_and_listing_marks_nothing(tool: Email) -> None:
    for method in ("read", "attachment", "search", "list"):
        await ask(tool, method, **DONE[method][0])
    assert [one["seen"] for one in await ask(tool, "list", unseen=True)] == [False, False]
    await ask(tool, "markRead", uid="1")
    assert [one["uid"] for one in await ask(tool, "list", unseen=True)] == ["2"]
    assert [one["seen"] for one in await ask(tool, "list")] == [False, True]


async def test_a_moved_mail_is_in_the_other_folder_alone(tool: Email) -> None:
    await ask(tool, "move", uid="1", to="Archive")
    assert [one["subject"] for one in await ask(tool, "list")] == ["Re: Grüße"]
    assert sorted(one["subject"] for one in await ask(tool, "list", folder="Archive")) == ["Old", "The bill"]


async def test_one_mail_is_deleted_and_no_other(tool: Email) -> None:
    assert await ask(tool, "delete", uid="1") is True
    assert await ask(tool, "delete", uid="1") is False
    assert [one["uid"] for one in await ask(tool, "list")] == ["2"]


@pytest.mark.parametrize("method", ["read", "markRead", "move", "reply", "attachment"])
async def test_a_mail_that_is_not_there(tool: Email, post: Post, method: str) -> None:
    with pytest.raises(ToolError, match=rf"^Post\.{method}: there is no mail 77 in the folder"):
        await ask(tool, method, **{**DONE[method][0], "uid": "77"})
    assert post.sent == []


async def test_a_folder_to_move_to_that_is_not_there(tool: Email) -> None:
    with pytest.raises(ToolError, match=r"refuses: .*doesn't exist: No .*there are .*Archive"):
        await ask(tool, "move", uid="1", to="No")
    assert len(await ask(tool, "list")) == 2


async def test_folders_may_have_any_letters(box: Box) -> None:
    box.put(mail(subject="Draft"), folder="Entw&APw-rfe")
    tool = opened(box.settings)
    assert [one["subject"] for one in await ask(tool, "list", folder="Entwürfe")] == ["Draft"]
    await tool.close()


async def test_the_newest_mails_come_first_and_no_more_than_asked_for(box: Box) -> None:
    box.put(*(mail(subject=f"n{number}") for number in range(3, 31)))
    tool = opened(box.settings)
    assert [one["subject"] for one in await ask(tool, "list", limit=2)] == ["n30", "n29"]
    assert len(await ask(tool, "list", limit=999)) == 30
    assert [one["subject"] for one in await ask(tool, "search", subject="n1", limit=2)] == ["n19", "n18"]
    await tool.close()


async def test_a_connection_that_the_server_has_ended_is_made_anew(box: Box) -> None:
    async with Wire(box.server.plain) as wire:
        tool = opened({**box.settings, "imap": f"127.0.0.1:{wire.port}"})
        assert len(await ask(tool, "list")) == 2
        assert (len(await ask(tool, "list")), wire.connections) == (2, 1)
        wire.drop()
        await wire.left.wait()
        assert (len(await ask(tool, "list")), wire.connections) == (2, 2)
        await tool.close()


async def test_calls_side_by_side_have_one_connection(box: Box) -> None:
    async with Wire(box.server.plain) as wire:
        tool = opened({**box.settings, "imap": f"127.0.0.1:{wire.port}"})
        found = await asyncio.gather(*(ask(tool, "read", uid=uid) for uid in ("1", "2", "1")))
        assert ([one["uid"] for one in found], wire.connections) == (["1", "2", "1"], 1)
        await tool.close()
        await tool.close()


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uid", "to", "subject", "thread"),
    [
        ("1", "ada@example.org", "Re: The bill", "<1@x>"),
        ("2", "desk@other.example", "Re: Grüße", "<0@x> <1@x> <2@x>"),
    ],
)
async def test_an_answer_goes_to_its_author_in_the_same_thread(
    tool: Email, post: Post, uid: str, to: str, subject: str, thread: str
) -> None:
    await ask(tool, "reply", uid=uid, text="Thanks.", html="<b>Thanks.</b>")
    [sent] = post.sent
    assert sent.recipients == (to,)
    found = post.parsed(0)
    assert (found["Subject"], found["In-Reply-To"]) == (subject, f"<{uid}@x>")
    assert " ".join(found["References"].split()) == thread
    assert found["Auto-Submitted"] == "auto-replied"
    assert found.get_body(("plain",)).get_content().strip() == "Thanks."


# --- trying the settings ----------------------------------------------------------------------------------------------


async def test_settings_are_tried_without_changing_anything(tool: Email, post: Post, box: Box) -> None:
    assert isinstance(tool, Probing)
    assert await tool.probe() == f"127.0.0.1:{post.port} takes mail, 127.0.0.1:{box.server.secure} has 2 unread mails"
    assert (post.sent, post.logins) == ([], [box.user])
