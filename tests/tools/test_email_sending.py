"""Sending: what goes over the wire, to whom, and what is said when it does not (reference 2.6)."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools.email import compose, provider
from halo_runtime.tools.email.addresses import parse_address
from halo_runtime.tools.email.compose import Draft, answer_to
from tests.services.mail import CERTIFICATE, PASSWORD, Post, Wire
from tests.tools.mailing import ask, opened, send, sending


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    async with Post() as server:
        yield server


async def refused(post: Post, folder: Path = Path(), settings: dict[str, Any] | None = None, **args: Any) -> ToolError:
    """The error of sending; nothing has arrived, and the password is not in it in any form."""
    with pytest.raises(ToolError) as caught:
        await send(post, folder, settings, **args)
    assert post.sent == []
    text = f"{caught.value!r} {caught.value.detail}"
    for secret in (PASSWORD, b64encode(PASSWORD.encode()).decode(), b64encode(f"\0me\0{PASSWORD}".encode()).decode()):
        assert secret not in text
    return caught.value


# --- what arrives -----------------------------------------------------------------------------------------------------


async def test_a_mail_arrives_as_it_was_meant(post: Post, tmp_path: Path) -> None:
    (tmp_path / "Über uns.pdf").write_bytes(b"%PDF\0\xff")
    sent = await send(
        post, tmp_path, to=["Zoë <zoe@bücher.example>", "ada@example.org"], subject="Grüße ✓", text="Hallo\nWelt ✓",
        html="<b>Hallo</b>", cc="Bob <bob@x.example>", bcc=["eve@x.example"], replyTo="desk@x.example",
        attachments=["Über uns.pdf"],
    )  # fmt: skip
    [got], mail = post.sent, post.parsed()
    assert got.sender == "me@example.org"
    assert got.recipients == ("zoe@xn--bcher-kva.example", "ada@example.org", "bob@x.example", "eve@x.example")
    assert (mail["From"], mail["Subject"], mail["Reply-To"]) == ("Me <me@example.org>", "Grüße ✓", "desk@x.example")
    assert (str(mail["To"]), str(mail["Cc"])) == (
        "Zoë <zoe@xn--bcher-kva.example>, ada@example.org",
        "Bob <bob@x.example>",
    )
    assert mail["Message-ID"] == sent["id"]
    assert mail.get_body(("plain",)).get_content().split() == ["Hallo", "Welt", "✓"]
    assert mail.get_body(("html",)).get_content().strip() == "<b>Hallo</b>"
    [file] = mail.iter_attachments()
    assert (file.get_filename(), file.get_content_type()) == ("Über uns.pdf", "application/pdf")
    assert file.get_content() == b"%PDF\0\xff"
    assert got.data.isascii()


async def test_who_gets_a_blind_copy_is_in_no_header(post: Post) -> None:
    await send(post, bcc=["Eve <eve@secret.example>", "ada@example.org"])
    assert post.sent[0].recipients == ("ada@example.org", "eve@secret.example")
    assert b"eve@" not in post.sent[0].data
    assert b"bcc" not in post.sent[0].data.lower()


async def test_a_blind_copy_alone_is_no_mail_to_nobody(post: Post) -> None:
    await send(post, to=[], bcc="eve@secret.example")
    assert post.parsed()["To"] is None
    assert "nobody is named" in (await refused_more(post, to=[])).message


async def refused_more(post: Post, **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await send(post, **args)
    return caught.value


INJECTED = {
    "subject": "Hello\r\nBcc: evil@bad.example",
    "subject ": "Hello\nX-Evil: 1",
    "subject  ": "=?utf-8?q?Hello=0D=0ABcc:_evil@bad.example?=",
    "to": "Ada\r\nBcc: evil@bad.example\r\n <ada@example.org>",
    "cc": "a@x.example\nevil@bad.example",
    "bcc": "a@x.example>\r\nRCPT TO:<evil@bad.example",
    "replyTo": "a@x.example\0",
}


@pytest.mark.parametrize("argument", INJECTED)
async def test_nothing_breaks_out_of_a_header(post: Post, argument: str) -> None:
    error = await refused(post, **{argument.strip(): INJECTED[argument]})
    assert f"Post.send: {argument.strip()} holds" in error.message
    assert "nothing was sent" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "a\r\n.\r\nMAIL FROM:<evil@bad.example>\r\nRCPT TO:<x@bad.example>\r\nDATA\r\nhi\r\n.\r\n",
        "a\n.\nQUIT\n",
        "a\r.\rQUIT",
        "a\n.\r\nb",
        ".\n..\n.x",
        "nul\0bell\x07 return\r end",
        "half \ud800 a character",
        "x" * 5000,
    ],
)
async def test_no_text_ends_its_mail(post: Post, text: str) -> None:
    await send(post, text=text)
    [got] = post.sent
    content = post.parsed().get_content()
    assert got.recipients == ("ada@example.org",)
    assert content.splitlines() == text.replace("\ud800", "?").splitlines()


def test_ids_of_a_thread_stay_as_they_are_and_a_strangers_headers_add_nothing() -> None:
    long = f"<{'x' * 90}@{'y' * 90}.example>"
    draft = Draft(parse_address("me@x.example", ""), (parse_address("a@x.example", ""),), "", "t")
    made = answer_to(
        draft,
        "Re: a\r\nBcc: evil@bad.example =?utf-8?q?=0A?=",
        f"x {long} \r\nBcc: y",
        [f"<1@x>{long}\r\n<2@x> <a b> <>"],
    )
    assert (made.in_reply_to, made.references) == (long, ("<1@x>", long, "<2@x>"))
    assert made.subject == "Re: a Bcc: evil@bad.example utf-8?q 0A"
    _, data = compose.compose(made, provider.datetime.now(provider.UTC))
    assert f"In-Reply-To: {long}\r\n".encode() in data
    assert b"\r\nBcc" not in data


@pytest.mark.parametrize(
    ("subject", "answered"),
    [
        ("a", "Re: a"),
        ("Re: a", "Re: a"),
        ("RE[2]: a", "RE[2]: a"),
        ("AW: a", "AW: a"),
        ("Reply", "Re: Reply"),
        ("", "Re: "),
    ],
)
def test_re_stands_once(subject: str, answered: str) -> None:
    draft = Draft(parse_address("me@x.example", ""), (), "", "t")
    assert answer_to(draft, subject, "", []).subject == answered


# --- who gets it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argument", ["to", "cc", "bcc"])
async def test_only_who_is_allowed_gets_mail_wherever_they_are_named(post: Post, argument: str) -> None:
    allowed = {"allowRecipients": ["ada@example.org", "@team.example"]}
    error = await refused(post, settings=allowed, **{argument: ["bob@team.example", "evil@bad.example"]})
    assert "evil@bad.example may get no mail from here" in error.message
    await send(post, settings=allowed, **{argument: ["bob@team.example"]})
    assert "bob@team.example" in post.sent[0].recipients


async def test_too_many_recipients(post: Post) -> None:
    error = await refused(post, to=[f"a{n}@x.example" for n in range(101)])
    assert "more than 100 recipients" in error.message


async def test_who_was_refused_is_told_and_the_mail_goes_to_the_others_once(post: Post) -> None:
    post.says = lambda command, about: "550 5.1.1 unknown" if about == "no@x.example" else None
    sent = await send(post, cc="no@x.example")
    assert sent["refused"] == [{"address": "no@x.example", "code": 550, "message": "5.1.1 unknown"}]
    assert [got.recipients for got in post.sent] == [("ada@example.org",)]


# --- what the server says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "reply", "words", "retryable"),
    [
        (
            "RCPT",
            "450 4.7.1 Greylisted, come back",
            "ada@example.org: 450 4.7.1 Greylisted.*may take the mail later",
            True,
        ),
        ("RCPT", "550 5.7.1 no", "took none of the recipients", False),
        ("MAIL", "553 5.7.1 not your address", "did not take the mail: 553 5.7.1 not your address", False),
        ("MAIL", "451 4.3.0 later", "did not take the mail: 451", True),
        ("DATA", "554 5.6.0 spam", "did not take the mail: 554 5.6.0 spam", False),
        ("DATA", "452 4.3.1 full", "did not take the mail: 452", True),
        ("DATA", "552 5.3.4 too big", "552 5.3.4 too big; it is larger than the server takes", False),
    ],
)
async def test_what_the_server_says_is_told(post: Post, command: str, reply: str, words: str, retryable: bool) -> None:
    post.says = lambda asked, about: reply if asked == command else None
    error = await refused(post)
    assert (error.retryable, error.status) == (retryable, int(reply[:3]))
    with pytest.raises(ToolError, match=words):
        raise error


async def test_a_mail_that_is_larger_than_the_server_takes() -> None:
    async with Post(max_size=2000) as post:
        assert "552" in (await refused(post, text="x" * 3000)).message


async def test_a_server_that_repeats_the_password(post: Post) -> None:
    forms = (PASSWORD, b64encode(PASSWORD.encode()).decode(), b64encode(f"\0me\0{PASSWORD}".encode()).decode())
    post.says = lambda command, about: f"550 you said {' and '.join(forms)}" if command == "RCPT" else None
    assert "you said [REDACTED] and [REDACTED] and [REDACTED]" in (await refused(post)).message


async def test_a_wrong_password(post: Post) -> None:
    error = await refused(post, settings={"password": "zq-0000-other"})
    assert "does not take the user and password; check user: and password:: 535" in error.message
    assert not error.retryable
    assert "zq-0000" not in error.message


async def test_a_server_that_takes_no_password() -> None:
    async with Post(auth=False) as post:
        assert "takes no password here" in (await refused(post)).message
        await send(post, settings={"user": None, "password": None})
        assert post.sent[0].user is None


async def test_a_server_that_is_gone() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = Post(port=free.getsockname()[1])
    error = await refused(gone)
    assert "cannot be reached" in error.message
    assert error.retryable


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        ({"stop_at": b"EHLO"}, "cannot be reached: Unexpected EOF"),
        ({"stop_at": b"RCPT"}, "broke the connection"),
        ({"stop_after": b"\r\n.\r\n"}, "it may have been sent"),
    ],
)
@pytest.mark.parametrize("cut", [True, False], ids=["closed", "silent"])
async def test_a_connection_that_ends(stop: dict[str, Any], words: str, cut: bool) -> None:
    async with Post(tls=False) as post, Wire(post.port, cut=cut, **stop) as wire:
        tool = opened(sending(wire.port, timeout="300ms"))
        with pytest.raises(ToolError, match=words if cut else "no answer in time|it may have been sent") as caught:
            await ask(tool, "send", to="ada@example.org", subject="s", text="t")
        await tool.close()
        assert caught.value.retryable is ("stop_at" in stop)
        assert len(post.sent) == ("stop_after" in stop)


async def test_a_goodbye_that_fails_takes_nothing_back() -> None:
    async with Post(tls=False) as post, Wire(post.port, stop_at=b"QUIT", cut=True) as wire:
        tool = opened(sending(wire.port))
        assert (await ask(tool, "send", to="ada@example.org", subject="s", text="t"))["refused"] == []
        await tool.close()
        assert len(post.sent) == 1


# --- TLS --------------------------------------------------------------------------------------------------------------


def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `models.test` and `other.test` lead here, as names of other machines."""
    real = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **more: Any) -> Any:
        return real("127.0.0.1" if host in ("models.test", "other.test") else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "tls"])
async def test_another_machine_is_talked_to_over_tls(implicit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    away(monkeypatch)
    async with Post(implicit=implicit) as post:
        scheme = "smtps://" if implicit else ""
        await send(post, settings={"smtp": f"{scheme}models.test:{post.port}"})
        assert post.sent[0].user == "me"


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "tls"])
async def test_a_certificate_for_another_name_is_refused(implicit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    away(monkeypatch)
    async with Post(implicit=implicit) as post:
        scheme = "smtps://" if implicit else ""
        error = await refused(post, settings={"smtp": f"{scheme}other.test:{post.port}"})
        assert "shows a certificate that is not trusted: Hostname mismatch" in error.message
        assert not error.retryable
        assert post.logins == []


async def test_a_certificate_that_nobody_trusts_is_refused(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    error = await refused(post)
    assert "shows a certificate that is not trusted: self-signed certificate" in error.message
    assert "SSL_CERT_FILE" in error.message
    assert post.logins == []


async def test_the_offer_of_starttls_cannot_be_taken_away(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    away(monkeypatch)
    async with Wire(post.port) as wire:
        error = await refused(post, settings={"smtp": f"models.test:{wire.port}"})
    assert "offers no STARTTLS, so mail and password could be read on their way" in error.message
    assert post.logins == []


async def test_tls_at_a_port_without_it(post: Post) -> None:
    error = await refused(post, settings={"smtp": f"smtps://127.0.0.1:{post.port}"})
    assert "speaks no TLS that can be used" in error.message
    assert "is the port right?" in error.message


# --- attachments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("../secret.txt", "leads up"),
        ("/etc/passwd", "no path inside the root"),
        ("~/x", "no path inside the root"),
        ("link", "leads out of the workspace over a link"),
        (".env", "is closed"),
        ("id.pem", "is closed"),
        (".git/config", "is closed"),
        ("none.txt", "there is no `none.txt`"),
        ("folder", "is a folder"),
        ("pipe", "no regular file"),
    ],
)
async def test_only_files_of_the_folder_go_along(post: Post, tmp_path: Path, path: str, words: str) -> None:
    import os

    room = tmp_path / "room"
    (room / "folder").mkdir(parents=True)
    (room / ".git").mkdir()
    for name in (".env", "id.pem", ".git/config", "../secret.txt"):
        (room / name).write_text("hidden")
    (room / "link").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(room / "pipe")
    error = await refused(post, tmp_path, settings={"files": "room"}, attachments=[path])
    assert words in error.message


async def test_files_have_a_size_that_may_go_along(post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from halo_runtime.tools.email import files

    monkeypatch.setattr(files, "MAX_FILES_BYTES", 1 << 20)
    (tmp_path / "a").write_bytes(b"x" * 600_000)
    await send(post, tmp_path, attachments=["a"])
    post.sent.clear()
    assert (
        "files may have 1 MB together; `a` is too much"
        in (await refused(post, tmp_path, attachments=["a", "a"])).message
    )


async def test_a_mail_as_a_whole_has_a_size(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "MAX_MESSAGE_BYTES", 1 << 20)
    assert "more than 1 MB" in (await refused(post, text="x" * 1_100_000)).message


async def test_mails_side_by_side(post: Post) -> None:
    await asyncio.gather(*(send(post, subject=f"s{number}") for number in range(10)))
    assert len(post.sent) == len(post.logins) == 10
