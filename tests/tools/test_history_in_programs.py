"""Equipped File stores: the conversation goes on from call to call and run to run (spec 5; seeds 002 to 004)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import RunResult
from halo_runtime.errors import ModelError, ToolError
from halo_runtime.models.base import ModelRequest
from halo_runtime.policies.base import Decision, Examined, Finding
from halo_runtime.tools.history import Conversation
from tests.durability.support import Project
from tests.runtime.support import stubbed

AGENT = 'store Chat : File("chat.jsonl"{limits})\nagent Bot [openai/gpt-4o-mini]\n  system "Be kind."\n  equips Chat\n'
MAIN = "pipeline Main(x: String) -> Result:\n  x"
TALK = f"{AGENT.format(limits='')}{MAIN} |> Bot.chat()"


def program(folder: Path, text: str = TALK) -> halo_lang.Program:
    return halo_lang.parse(halo_lang.Source(text, str(folder / "main.halo")))


def request_of(result: RunResult, call: int = 0) -> list[tuple[str, str]]:
    """The messages of a call's request: role and text."""
    return [(m["role"], m["content"]) for m in result.context.meta["calls"][call]["messages"]]


async def play(folder: Path, text: str, x: str, *replies: Any, **options: Any) -> RunResult:
    project = Project(folder / ".halo", {"*": [*replies]})
    return await project.runtime().run(program(folder, text), "Main", {"x": x}, **options)


async def kept(folder: Path) -> list[str]:
    """All texts of the conversation."""
    chat = Conversation("Chat", folder / "chat.jsonl")
    said = await chat.call("read", {})
    await chat.close()
    return [turn["text"] for turn in said]


def asked(x: str) -> str:
    return f"Task: chat\n\nInput:\n{x}"


async def test_a_later_run_goes_on_where_the_conversation_was(tmp_path: Path) -> None:
    first = await play(tmp_path, TALK, "hi", "hello")
    assert request_of(first) == [("system", "Be kind."), ("user", asked("hi"))]
    later = await play(tmp_path, TALK, "and you?", "fine")
    assert request_of(later) == [
        ("system", "Be kind."),
        ("user", asked("hi")),
        ("assistant", "hello"),
        ("user", asked("and you?")),
    ]
    assert await kept(tmp_path) == [asked("hi"), "hello", asked("and you?"), "fine"]


async def test_the_next_call_of_the_same_run_knows_of_the_one_before(tmp_path: Path) -> None:
    result = await play(tmp_path, f"{TALK} |> Bot.more()", "hi", "hello", "bye")
    assert [text for _, text in request_of(result, 1)][1:] == [asked("hi"), "hello", "Task: more\n\nInput:\nhello"]


@pytest.mark.parametrize(("limits", "seen"), [(", maxTurns: 2", ["q2", "a2"]), (", maxTokens: 12", ["q2", "a2"])])
async def test_limits_leave_out_the_oldest_turns(tmp_path: Path, limits: str, seen: list[str]) -> None:
    text = f"{AGENT.format(limits=limits)}{MAIN} |> Bot.chat()"
    for x, reply in (("q1", "a1"), ("q2", "a2")):
        await play(tmp_path, text, x, reply)
    result = await play(tmp_path, text, "q3", "a3")
    assert [content for _, content in request_of(result)][1:-1] == [asked(seen[0]), seen[1]]
    assert len(await kept(tmp_path)) == 6


async def test_a_call_that_fails_keeps_nothing(tmp_path: Path) -> None:
    result = await play(tmp_path, TALK, "hi", {"error": 400})
    assert isinstance(result.error, ModelError)
    assert await kept(tmp_path) == []


async def test_of_corrections_only_the_question_and_the_accepted_answer_are_kept(tmp_path: Path) -> None:
    text = (
        'policy Short : MaxLength(5)\nstore Chat : File("chat.jsonl")\n@correct(1)\nagent Bot [openai/gpt-4o-mini]\n'
        f"  equips Chat\n  requires Short\n{MAIN} |> Bot.chat()"
    )
    assert (await play(tmp_path, text, "hi", "much too long", "short")).output == "short"
    assert await kept(tmp_path) == [asked("hi"), "short"]


class HidesMail:
    """A rule that takes addresses out of what goes to the model."""

    points = frozenset({"input"})

    def evaluate(self, examined: Examined) -> Decision:
        found = re.finditer(r"[a-z]+@example.com", examined.text)
        return Decision("redact", findings=tuple(Finding("EMAIL", *m.span(), m.group()) for m in found))


async def test_policies_see_what_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halo_runtime.engine.policies.rule_factory", lambda name: lambda arguments: HidesMail())
    chat = Conversation("Chat", tmp_path / "chat.jsonl")
    await chat.call("append", {"text": "mail bob@example.com", "reply": "will do"})
    await chat.close()
    text = (
        'policy Safe : Redact(Email)\nstore Chat : File("chat.jsonl")\nagent Bot [openai/gpt-4o-mini]\n'
        f"  equips Chat\n  requires Safe\n{MAIN} |> Bot.chat()"
    )
    result = await play(tmp_path, text, "and eve@example.com", "ok")
    assert [content for _, content in request_of(result)] == [
        "mail [EMAIL_1]", "will do", asked("and [EMAIL_2]"),
    ]  # fmt: skip
    assert (await kept(tmp_path))[2:] == [asked("and [EMAIL_2]"), "ok"]


async def test_a_conversation_that_cannot_be_read_stops_the_call_before_it_costs_anything(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text("garbage\n")
    result = await play(tmp_path, TALK, "hi", "hello")
    assert isinstance(result.error, ToolError)
    assert "Chat.read: line 1 of chat.jsonl is no JSON" in result.error.message
    assert result.context.meta["calls"] == []


async def test_an_exchange_that_cannot_be_kept_fails_the_call_and_a_continued_run_does_not_pay_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / ".halo", {"*": ["hello"]})
    call = Conversation.call

    async def full(self: Conversation, method: str, args: dict[str, Any]) -> Any:
        if method == "append":
            raise ToolError("Chat.append: the disk is full; free some space")
        return await call(self, method, args)

    monkeypatch.setattr(Conversation, "call", full)
    failed = await project.runtime().run(program(tmp_path), "Main", {"x": "hi"}, keep=True)
    assert isinstance(failed.error, ToolError)
    monkeypatch.setattr(Conversation, "call", call)
    again = await project.runtime().fork(program(tmp_path), failed.run_id)
    assert (again.status, again.output) == ("completed", "hello")
    assert again.context.meta["calls"][0]["reused"]
    assert await kept(tmp_path) == [asked("hi"), "hello"]


async def test_resumed_and_forked_runs_keep_an_exchange_once(tmp_path: Path) -> None:
    text = f'{TALK} |! yield("ok?") as ok |> Bot.more("Now.")'
    project = Project(tmp_path / ".halo", {"*": ["hello", "bye"]})
    paused = await project.runtime().run(program(tmp_path, text), "Main", {"x": "hi"}, keep=True)
    assert (paused.status, await kept(tmp_path)) == ("paused", [asked("hi"), "hello"])
    done = await project.runtime().signal(paused.run_id, "yes")
    more = "Task: more\n\nInstructions:\nNow.\n\nInput:\nyes"
    assert await kept(tmp_path) == [asked("hi"), "hello", more, "bye"]
    edited = text.replace("Now.", "Later.")
    project.replies = {"*": ["hello", "later"]}
    fork = await project.runtime().fork(program(tmp_path, edited), done.run_id)
    assert (fork.status, fork.output) == ("completed", "later")
    # What is reused is not said again; what is asked anew is said after all that was.
    assert await kept(tmp_path) == [asked("hi"), "hello", more, "bye", more.replace("Now.", "Later."), "later"]


async def test_a_run_that_is_cancelled_while_the_model_thinks_keeps_nothing(tmp_path: Path) -> None:
    thinking = asyncio.Event()

    async def think(request: ModelRequest) -> str:
        thinking.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    runtime, _ = stubbed(think)
    task = asyncio.create_task(runtime.run(program(tmp_path), "Main", {"x": "hi"}))
    await thinking.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await kept(tmp_path) == []


async def test_parallel_calls_keep_their_exchanges_apart(tmp_path: Path) -> None:
    text = f"{AGENT.format(limits='')}{MAIN} |* {{ Bot.a(), Bot.b(), Bot.c() }}"
    project = Project(tmp_path / ".halo", {"Bot.a": "one", "Bot.b": "two", "Bot.c": "three"})
    await project.runtime().run(program(tmp_path, text), "Main", {"x": "hi"})
    said = await kept(tmp_path)
    pairs = {question[6]: answer for question, answer in zip(said[::2], said[1::2], strict=True)}
    assert pairs == {"a": "one", "b": "two", "c": "three"}


async def test_secrets_are_not_kept(tmp_path: Path) -> None:
    project = Project(tmp_path / ".halo", {"*": ["the key is zq-9876-deploy"]})
    project.env = {"DEPLOY_TOKEN": "zq-9876-deploy"}
    await project.runtime().run(program(tmp_path), "Main", {"x": "it is zq-9876-deploy"})
    assert await kept(tmp_path) == [asked("it is [REDACTED]"), "the key is [REDACTED]"]


PRIVATE = TALK.replace("agent Bot", "policy P : Redact(Email{options})\nagent Bot").replace(
    "equips Chat\n", "equips Chat\n  requires P\n"
)


@pytest.mark.parametrize(
    ("options", "mails"),
    [("", ["[EMAIL_1]", "[EMAIL_2]", "[EMAIL_3]"]), (", restore: true", ["[EMAIL#1]", "[EMAIL#2]", "[EMAIL_3]"])],
)
async def test_placeholders_of_other_runs_are_none_of_this_one(tmp_path: Path, options: str, mails: list[str]) -> None:
    text = PRIVATE.replace("{options}", options)
    await play(tmp_path, text, "ann@example.com", "I write to [EMAIL_1].")
    await play(tmp_path, text, "bob@example.com", "I write to [EMAIL_2].")
    third = await play(tmp_path, text, "cy@example.com", "Nobody is [EMAIL_1].")
    said = [content for _, content in request_of(third)[1:]]
    assert said == [
        asked(mails[0]), f"I write to {mails[0]}.", asked(mails[1]), f"I write to {mails[1]}.", asked(mails[2])
    ]  # fmt: skip
    assert third.output == "Nobody is [EMAIL_1]."


async def test_placeholders_of_the_run_itself_stay_what_they_are(tmp_path: Path) -> None:
    text = PRIVATE.replace("{options}", "") + ' |> Bot.chat("Again to ann@example.com.")'
    run = await play(tmp_path, text, "ann@example.com", "[EMAIL_1] it is.", "fine")
    assert [content for _, content in request_of(run, 1)[1:3]] == [asked("[EMAIL_1]"), "[EMAIL_1] it is."]
    assert "Again to [EMAIL_1]." in request_of(run, 1)[3][1]
