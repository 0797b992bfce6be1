"""What strangers and agents could try with a mailbox, and what keeps it safe (reference 2.6); settings in no output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools.email.provider import Email
from tests.services.mail import CERTIFICATE, PASSWORD, Dovecot, Post, Wire
from tests.tools.mailing import Box, ask, mail, opened, sending


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


@pytest.fixture
def box(mailboxes: Dovecot) -> Box:
    made = Box(mailboxes)
    made.put(mail('The "code" is \\1234.', subject='He said "hello"'), mail("Other.", subject="Second"))
    return made


@pytest.fixture
async def tool(box: Box, tmp_path: Path) -> AsyncIterator[Email]:
    made = opened(box.settings, tmp_path)
    yield made
    await made.close()


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.dovecot
@pytest.mark.parametrize(
    ("term", "found"),
    [
        ('said "hello"', ["1"]),
        ('x" UNSEEN (OR FROM "', []),
        ('" ALL', []),
        ("\\", []),
        ("{5}", []),
        ("{3+}", []),
        ("(ALL)", []),
        ("*", []),
        ("%", []),
        ("&AOQ-", []),
        ("+ADw-", []),
        ("é" * 200, []),
        ("second", ["2"]),
        ("日本", []),
    ],
)
async def test_terms_of_a_search_are_only_looked_for(tool: Email, term: str, found: list[str]) -> None:
    assert [one["uid"] for one in await ask(tool, "search", subject=term)] == found
    assert await ask(tool, "search", text=term, subject=term, since="2020-01-01") == [
        one for one in await ask(tool, "list") if one["uid"] in found
    ]


@pytest.mark.dovecot
async def test_quotes_and_backslashes_are_found(tool: Email) -> None:
    for term in ('"code"', "\\1234", '"code" is \\1'):
        assert [one["uid"] for one in await ask(tool, "search", text=term)] == ["1"]


CONTROLS = ["a\r\nA1 DELETE INBOX", "a\nb", "a\rb", "a\0b", "a\x1bb", "a\ud800"]
OF_COMMANDS: list[tuple[str, str, dict[str, Any]]] = [
    ("search", "from", {}),
    ("search", "subject", {}),
    ("search", "text", {}),
    ("list", "folder", {}),
    ("move", "to", {"uid": "1"}),
    ("delete", "folder", {"uid": "1"}),
]


@pytest.mark.parametrize("text", CONTROLS)
@pytest.mark.parametrize(("method", "argument", "more"), OF_COMMANDS)
async def test_no_text_ends_its_command(method: str, argument: str, more: dict[str, Any], text: str) -> None:
    tool = opened({"imap": "127.0.0.1:1", "user": "u", "password": PASSWORD})
    with pytest.raises(ToolError, match=rf"^Post\.{method}: {argument} holds a line break or control characters"):
        await ask(tool, method, **more, **{argument: text})
    await tool.close()


@pytest.mark.parametrize(
    "uid", ["", "0", "-1", "1:*", "*", "1,2", "1 (BODY[])", "4294967296", "1\r\nA1 LOGOUT", "٣", "01"]
)
@pytest.mark.parametrize("method", ["read", "delete", "markRead", "reply", "attachment", "move"])
async def test_a_uid_is_one_number(method: str, uid: str) -> None:
    tool = opened({**sending(1), "imap": "127.0.0.1:1"})
    args = {"attachment": {"name": "x"}, "reply": {"text": "t"}, "move": {"to": "x"}}.get(method, {})
    with pytest.raises(ToolError, match="uid is the number that list and search give"):
        await ask(tool, method, uid=uid, **args)
    await tool.close()


async def test_a_date_is_a_date() -> None:
    tool = opened({"imap": "127.0.0.1:1", "user": "u", "password": PASSWORD})
    with pytest.raises(ToolError, match="since is a date such as 2026-01-31"):
        await ask(tool, "search", since="1-Jan-2020 ALL")
    await tool.close()


# --- who answers ------------------------------------------------------------------------------------------------------


@pytest.mark.dovecot
@pytest.mark.parametrize(
    "sender",
    [
        "a@ok.example, evil@bad.example",
        "Ada <evil@bad.example>",
        '"ada@ok.example" <evil@bad.example>',
        "ada@ok.example <evil@bad.example>",
        "friends: evil@bad.example;",
        "=?utf-8?q?ada=40ok.example?= <evil@bad.example>",
        "ada@оk.example",
        "",
    ],
)
async def test_an_answer_goes_only_to_who_is_allowed(mailboxes: Dovecot, sender: str) -> None:
    box = Box(mailboxes)
    box.put(f"From: ada@ok.example\r\nReply-To: {sender}\r\nSubject: s\r\n\r\nx".encode())
    async with Post() as post:
        tool = opened({**sending(post.port), **box.settings, "allowRecipients": ["@ok.example"]})
        with pytest.raises(ToolError, match="nothing was sent") if sender else nullcontext():
            await ask(tool, "reply", uid="1", text="t")
        await tool.close()
        assert [sent.recipients for sent in post.sent] == ([] if sender else [("ada@ok.example",)])


# --- attachments ------------------------------------------------------------------------------------------------------


def everything(folder: Path) -> list[Path]:
    """All that is in a folder, in order."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


@pytest.mark.dovecot
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("a.pdf", "attachments/a.pdf"),
        ("../../../tmp/evil", "attachments/evil"),
        ("/etc/cron.d/evil", "attachments/evil"),
        (".bashrc", "attachments/bashrc"),
    ],
)
async def test_what_came_along_is_kept_in_its_own_folder(
    mailboxes: Dovecot, tmp_path: Path, name: str, kept: str
) -> None:
    box = Box(mailboxes)
    box.put(mail(files={name: b"content"}))
    tool = opened(box.settings, tmp_path)
    [listed] = (await ask(tool, "read", uid="1"))["attachments"]
    assert await ask(tool, "attachment", uid="1", name=listed["name"]) == {"path": kept, "size": 7}
    assert (tmp_path / kept).read_bytes() == b"content"
    assert [*map(str, everything(tmp_path))] == ["attachments", kept]
    assert (tmp_path / kept).stat().st_mode & 0o777 == 0o600
    await tool.close()


@pytest.mark.dovecot
async def test_keys_are_kept_nowhere(mailboxes: Dovecot, tmp_path: Path) -> None:
    box = Box(mailboxes)
    box.put(mail(files={"id.pem": b"x"}))
    tool = opened(box.settings, tmp_path)
    with pytest.raises(ToolError, match="is closed"):
        await ask(tool, "attachment", uid="1", name="id.pem")
    await tool.close()


@pytest.mark.dovecot
async def test_nothing_is_replaced_and_the_same_is_kept_once(mailboxes: Dovecot, tmp_path: Path) -> None:
    box = Box(mailboxes)
    box.put(mail(files={"a.pdf": b"new"}))
    (tmp_path / "attachments").mkdir()
    (tmp_path / "attachments/a.pdf").write_bytes(b"old")
    tool = opened(box.settings, tmp_path)
    for _ in range(2):
        assert (await ask(tool, "attachment", uid="1", name="a.pdf"))["path"] == "attachments/a (2).pdf"
    assert (tmp_path / "attachments/a.pdf").read_bytes() == b"old"
    await tool.close()


@pytest.mark.dovecot
async def test_links_in_the_way_are_not_followed(mailboxes: Dovecot, tmp_path: Path) -> None:
    box = Box(mailboxes)
    box.put(mail(files={"a.pdf": b"new"}))
    room, outside = tmp_path / "room", tmp_path / "outside"
    (room / "attachments").mkdir(parents=True)
    outside.mkdir()
    (room / "attachments/a.pdf").symlink_to(outside / "a.pdf")
    tool = opened({**box.settings, "files": "room"}, tmp_path)
    assert (await ask(tool, "attachment", uid="1", name="a.pdf"))["path"] == "attachments/a (2).pdf"
    (room / "attachments/a.pdf").unlink()
    (room / "attachments/a (2).pdf").unlink()
    (room / "attachments").rmdir()
    (room / "attachments").symlink_to(outside)
    with pytest.raises(ToolError, match="leads out"):
        await ask(tool, "attachment", uid="1", name="a.pdf")
    assert list(outside.iterdir()) == []
    await tool.close()


@pytest.mark.dovecot
async def test_an_attachment_that_is_not_there(tool: Email) -> None:
    with pytest.raises(ToolError, match="the mail has no attachment `x`; there are none"):
        await ask(tool, "attachment", uid="1", name="x")


# --- large mails ------------------------------------------------------------------------------------------------------


@pytest.mark.dovecot
async def test_of_a_huge_mail_the_beginning_is_read(
    mailboxes: Dovecot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from halo_runtime.tools.email import reading

    monkeypatch.setattr(reading, "MAX_READ_BYTES", 20_000)
    monkeypatch.setattr(reading, "MAX_MAIL_BYTES", 2_000_000)
    box = Box(mailboxes)
    box.put(mail("Read me.\n", files={"big.pdf": b"x" * 3_000_000}), mail("y" * 500 * 100))
    tool = opened(box.settings, tmp_path)
    found = await ask(tool, "read", uid="1")
    assert found["text"].startswith("Read me.\n[… the mail has 4,")
    assert found["text"].endswith("only the first 20,000 were read]")
    assert len((await ask(tool, "read", uid="2"))["text"]) < 21_000
    with pytest.raises(ToolError, match="of more than 1 MB nothing is kept"):
        await ask(tool, "attachment", uid="1", name="big.pdf")
    await tool.close()


async def hostile(*lines: bytes) -> ToolError:
    """The error that a server gets that answers each of our commands with the next of some lines."""
    gone = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(b"* OK hello\r\n")
            for line in lines:
                command = await reader.readline()
                writer.write(line.replace(b"TAG", command.split(b" ")[0]))
            await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        tool = opened({"imap": f"127.0.0.1:{port}", "user": "u", "password": PASSWORD, "timeout": "500ms"})
        with pytest.raises(ToolError) as caught:
            await ask(tool, "list")
        await tool.close()
        await gone.wait()
    assert PASSWORD not in caught.value.message
    return caught.value


LOGGED_IN = (
    b"* CAPABILITY IMAP4rev1\r\nTAG OK done\r\n",
    b"TAG OK done\r\n",
    b"* CAPABILITY IMAP4rev1\r\nTAG OK done\r\n",
    b"* 1 EXISTS\r\nTAG OK [READ-ONLY]\r\n",
)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((b"garbage\r\n",), "cannot be reached|broke the connection"),
        ((b"* CAPABILITY IMAP4rev1\r\nTAG OK done\r\n", b"TAG NO you said zq-7731-hidden\r\n"), "you said .REDACTED."),
        ((*LOGGED_IN, b"* SEARCH 1\r\nTAG OK done\r\n", b"* 1 FETCH (UID 1 BODY[] {999999999999}\r\n"), "is too much"),
        ((*LOGGED_IN, b"* SEARCH " + b"x" * 100 + b"\r\nTAG OK done\r\n"), "broke the connection"),
        ((*LOGGED_IN, b"* BYE go away\r\n"), "broke the connection|no complete answer"),
        (
            (*LOGGED_IN, b"* SEARCH 1\r\nTAG OK done\r\n", b"* 1 FETCH (UID 1 BODY[] {50}\r\nabc"),
            "no complete answer within",
        ),
    ],
)
async def test_a_hostile_server_does_no_harm(lines: tuple[bytes, ...], words: str) -> None:
    error = await hostile(*lines)
    with pytest.raises(ToolError, match=words):
        raise error


# --- the way to the server --------------------------------------------------------------------------------------------


@pytest.mark.dovecot
async def test_a_wrong_password(box: Box) -> None:
    tool = opened({**box.settings, "password": "zq-0000-other"})
    with pytest.raises(ToolError, match=r"does not take the user and password; check user: and password: \(") as caught:
        await ask(tool, "list")
    assert not caught.value.retryable
    assert "zq-0000" not in caught.value.message
    await tool.close()


@pytest.mark.dovecot
@pytest.mark.parametrize("password", ['pass"wörd\\', "päss"])
async def test_a_password_may_have_any_letters(box: Box, password: str) -> None:
    tool = opened({**box.settings, "password": password})
    with pytest.raises(ToolError, match="does not take the user and password"):
        await ask(tool, "list")
    await tool.close()


@pytest.mark.dovecot
async def test_the_offer_of_starttls_cannot_be_taken_away(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.tools.test_email_sending import away

    away(monkeypatch)
    async with Wire(box.server.plain) as wire:
        tool = opened({**box.settings, "imap": f"imap://models.test:{wire.port}"})
        with pytest.raises(ToolError, match="offers no STARTTLS, so mail and password could be read on their way"):
            await ask(tool, "list")
        await tool.close()
    tool = opened({**box.settings, "imap": f"imap://models.test:{box.server.plain}"})
    assert len(await ask(tool, "list")) == 2
    await tool.close()


@pytest.mark.dovecot
@pytest.mark.parametrize("scheme", ["imap", "imaps"])
async def test_a_certificate_for_another_name_is_refused(
    box: Box, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    from tests.tools.test_email_sending import away

    away(monkeypatch)
    port = box.server.secure if scheme == "imaps" else box.server.plain
    tool = opened({**box.settings, "imap": f"{scheme}://other.test:{port}"})
    with pytest.raises(ToolError, match="shows a certificate that is not trusted: Hostname mismatch"):
        await ask(tool, "list")
    await tool.close()


async def test_a_server_that_is_gone() -> None:
    tool = opened({"imap": "127.0.0.1:1", "user": "u", "password": PASSWORD})
    with pytest.raises(ToolError, match=r"127\.0\.0\.1:1 cannot be reached: .*; is the address right\?") as caught:
        await ask(tool, "list")
    assert caught.value.retryable
    await tool.close()


def test_an_account_shows_no_password() -> None:
    tool = opened({**sending(25), "imap": "localhost"})
    assert PASSWORD not in json.dumps(repr(vars(tool)))
