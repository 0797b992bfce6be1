"""Email as programs use it: stages, agents, variables, journals, cassettes, keys (spec 5, 3.2, 12.5)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import Cassette, ConfigError, RunResult
from tests.durability.support import Project
from tests.runtime.support import runtime
from tests.services.mail import CERTIFICATE, PASSWORD, Dovecot, Post, Wire
from tests.tools.mailing import Box, mail

AGENT = "agent Clerk [openai/gpt-4o-mini]\n  equips Post\n"
SEND = 'pipeline Main(x: String) -> Result: |> Post.send(x, "Hello", "Hi!") as sent'


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    async with Post() as server:
        yield server


def environment(port: int) -> dict[str, str]:
    """The usual variables."""
    named = {"HOST": "127.0.0.1", "PORT": str(port), "USER": "me", "PASSWORD": PASSWORD, "FROM": "me@example.org"}
    return {f"SMTP_{name}": value for name, value in named.items()}


async def play(text: str, env: dict[str, str], replies: dict[str, Any] | None = None, **options: Any) -> RunResult:
    made = runtime(replies, env=env, **options)
    return await made.run(halo_lang.parse(text), "Main", {"x": "ada@example.org"})


async def test_the_usual_variables_say_where_and_who(post: Post) -> None:
    result = await play(f"tool Post : Email()\n{SEND}", environment(post.port))
    assert result.output["refused"] == []
    assert [(sent.user, sent.sender, sent.recipients) for sent in post.sent] == [
        ("me", "me@example.org", ("ada@example.org",))
    ]


@pytest.mark.dovecot
async def test_a_program_reads_what_is_new_and_answers_it(mailboxes: Dovecot, post: Post, tmp_path: Path) -> None:
    box = Box(mailboxes)
    box.put(mail(subject="One"), mail(subject="Two", sender="bob@x.example"))
    text = (
        f'tool Post : Email(imap: "imaps://127.0.0.1:{mailboxes.secure}", user: "{box.user}")\n'
        "pipeline Main(x: String) -> Result:\n  |> Post.list(unseen: true) as mails\n"
        "  |* each(mail in context.data.mails) => Answer(mail)\n"
        'pipeline Answer(mail: Object) -> Result: |> Post.reply(mail.uid, "Seen.") |> Post.markRead(mail.uid)\n'
    )
    env = environment(post.port)
    assert (await play(text, env)).output == [True, True]
    assert sorted(sent.recipients for sent in post.sent) == [("ada@example.org",), ("bob@x.example",)]
    assert (await play(text, env)).output == []


async def test_an_agent_needs_to_be_told_to_whom_it_may_send(post: Post) -> None:
    text = f"tool Post : Email()\n{AGENT}pipeline Main(x: String) -> Result: x |> Clerk.go(tools: [Post])"
    args = {"to": "ada@example.org", "subject": "s", "text": "t"}
    replies = {"Clerk.go": [{"tool_calls": [{"tool": "Post_send", "args": args}]}, "no"]}
    result = await play(text, environment(post.port), replies)
    (tool,) = result.context.meta["calls"][0]["tools"]
    assert "agents send mail only where the declaration says to whom: allowRecipients:" in tool["error"]
    assert (result.output, post.sent) == ("no", [])


@pytest.mark.parametrize(
    ("allowed", "to", "arrives"),
    [
        ('["@example.org"]', "ada@example.org", True),
        ('["@example.org"]', "evil@bad.example", False),
        ('["*"]', "anybody@x.example", True),
        ("[]", "ada@example.org", False),
    ],
)
async def test_an_agent_sends_to_whom_it_may(post: Post, allowed: str, to: str, arrives: bool) -> None:
    text = (
        f"tool Post : Email(allowRecipients: {allowed})\n{AGENT}"
        "pipeline Main(x: String) -> Result: x |> Clerk.go(tools: [Post])"
    )
    args = {"to": to, "subject": "s", "text": "t"}
    replies = {"Clerk.go": [{"tool_calls": [{"tool": "Post_send", "args": args}]}, "done"]}
    result = await play(text, environment(post.port), replies)
    (tool,) = result.context.meta["calls"][0]["tools"]
    assert ("may get no mail from here" in str(tool.get("error"))) is not arrives
    assert len(post.sent) == arrives


async def test_the_list_binds_the_program_too(post: Post) -> None:
    result = await play(f'tool Post : Email(allowRecipients: ["@other.example"])\n{SEND}', environment(post.port))
    assert result.error is not None
    assert "ada@example.org may get no mail from here" in result.error.message
    assert post.sent == []


async def test_settings_that_cannot_work_are_told_before_a_run_starts() -> None:
    with pytest.raises(ConfigError, match=r"tool Post: Email needs a server: smtp: to send \(or SMTP_HOST\)"):
        await play(f"tool Post : Email()\n{SEND}", {})


async def test_greylisting_passes_where_the_program_tries_again(post: Post) -> None:
    answers = iter(["450 4.7.1 come back", None])
    post.says = lambda command, about: next(answers) if command == "RCPT" else None
    result = await play(f"tool Post : Email()\n@retry(3, 1ms)\n{SEND}", environment(post.port))
    assert (result.status, len(post.sent)) == ("completed", 1)


async def test_a_mail_that_may_have_been_sent_is_not_sent_again() -> None:
    async with Post(tls=False) as post, Wire(post.port, stop_after=b"\r\n.\r\n", cut=True) as wire:
        result = await play(f"tool Post : Email()\n@retry(3, 1ms)\n{SEND}", environment(wire.port))
        assert result.error is not None
        assert "it may have been sent" in result.error.message
        assert (len(post.sent), wire.connections) == (1, 1)


async def test_a_run_that_broke_off_between_the_mail_and_its_receipt_asks(tmp_path: Path) -> None:
    async with Post(tls=False) as post, Wire(post.port, stop_after=b"\r\n.\r\n") as wire:
        project = Project(tmp_path)
        project.env = environment(wire.port)
        text = f"tool Post : Email()\n@checkpoint\n{SEND}"
        task = asyncio.create_task(project.run(text, {"x": "ada@example.org"}, run_id="r"))
        await wire.held.wait()
        task.cancel()
        await asyncio.wait([task])
        result = await project.runtime().resume("r")
        [question] = result.interrupts
        assert (question.kind, len(post.sent), wire.connections) == ("in_doubt", 1, 1)
        assert "Post.send had begun when the run broke off; did it take effect?" in question.message
        result = await project.runtime().signal("r", {"skip": {"id": "<1@x>", "refused": []}})
        assert (result.status, len(post.sent), wire.connections) == ("completed", 1, 1)


async def test_a_run_that_goes_on_sends_nothing_twice(post: Post, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.env = environment(post.port)
    text = f'tool Post : Email()\n@checkpoint\n{SEND} |! yield("Go on?") |> System.Value(context.data.sent)'
    paused = await project.run(text, {"x": "ada@example.org"}, run_id="r")
    assert paused.status == "paused"
    done = await project.runtime().signal("r", True)
    assert (done.status, done.output["refused"], len(post.sent)) == ("completed", [], 1)
    assert PASSWORD.encode() not in project.bytes_of("r")


async def test_a_cassette_answers_in_place_of_the_server(post: Post, tmp_path: Path) -> None:
    text, tape = f"tool Post : Email()\n{SEND}", tmp_path / "tape.jsonl"
    first = await play(text, environment(post.port), cassette=Cassette.record(tape))
    again = await play(text, {}, cassette=Cassette.replay(tape))
    assert (again.output, len(post.sent)) == (first.output, 1)
    assert PASSWORD.encode() not in tape.read_bytes()


async def test_the_password_is_in_no_output(post: Post) -> None:
    post.says = lambda command, about: f"550 {PASSWORD}" if command == "RCPT" else None
    seen: list[str] = []
    made = runtime(env=environment(post.port))
    made.subscribe(lambda event: seen.append(repr(event)))
    result = await made.run(halo_lang.parse(f"tool Post : Email()\n{SEND}"), "Main", {"x": "ada@example.org"})
    assert result.error is not None
    assert "550 [REDACTED]" in result.error.message
    assert PASSWORD not in f"{seen} {result}"


async def halo(folder: Path, env: dict[str, str], *arguments: str) -> asyncio.subprocess.Process:
    """The command, begun."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "halo_runtime.cli.main", *arguments, cwd=folder, env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def test_a_process_that_is_killed_between_the_mail_and_its_receipt_asks(tmp_path: Path) -> None:
    (tmp_path / "p.halo").write_text(f"tool Post : Email()\n@checkpoint\n{SEND}\n")
    async with Post(tls=False) as post, Wire(post.port, stop_after=b"\r\n.\r\n") as wire:
        env = environment(wire.port)
        killed = await halo(tmp_path, env, "run", "p.halo", "-i", "x=ada@example.org")
        async with asyncio.timeout(30):
            await wire.held.wait()
        killed.kill()
        await killed.communicate()
        listed, _ = await (await halo(tmp_path, env, "runs", "--json")).communicate()
        [run] = json.loads(listed)["runs"]
        resumed = await halo(tmp_path, env, "resume", run["runId"])
        _, told = await resumed.communicate()
        assert (run["status"], resumed.returncode) == ("interrupted", 4)
        assert b"did it take effect?" in told
        assert (len(post.sent), wire.connections) == (1, 1)
