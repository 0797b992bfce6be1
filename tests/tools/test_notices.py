"""Questions whose `channel:` is a declared Slack or Email are sent there, once, with how to answer (spec 2.6)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime.errors import ConfigError
from halo_runtime.results import Interrupt, RunResult
from halo_runtime.runtime import PAUSE, Runtime
from halo_runtime.store.files import FileRunStore
from tests.fakes.slack_server import TOKEN, FakeSlack

SLACK = 'tool Team : Slack(Env.SLACK_BOT_TOKEN, channel: "#general")\n'
MAIN = """pipeline Main(version: String) -> Result:
  version
    |! yield("Deploy {{version}}?", channel: Team, timeout: 1h, attachments: ["12 files changed"]) as approval
    |? (context.data.approval == "yes")
    |> System.Value("deployed")
"""


def runtime(folder: Path, **env: str) -> Runtime:
    return Runtime(env={"SLACK_BOT_TOKEN": TOKEN, **env}, store=FileRunStore(folder / ".halo"))


def program(text: str = SLACK + MAIN) -> halo_lang.Program:
    return halo_lang.parse(text)


async def start(host: Runtime, text: str = SLACK + MAIN) -> RunResult:
    return await host.run(program(text), "Main", {"version": "1.2"})


def told(server: FakeSlack) -> list[Any]:
    return server.messages[server.id_of("general")]


def test_a_tool_that_is_only_a_channel_is_used() -> None:
    assert halo_lang.check(program()).diagnostics == ()


async def test_a_question_that_waits_is_told_once_with_how_to_answer(tmp_path: Path) -> None:
    async with FakeSlack() as server:
        paused = await start(runtime(tmp_path, SLACK_API_URL=server.url))
        (question,) = paused.interrupts
        (message,) = told(server)
        assert message["text"] == (
            "Deploy 1.2?\n\n12 files changed\n\nAnswers: yes\n\n"
            f"Until: {question.expires_at}\n\n"
            f"Run {paused.run_id} waits for it. Where the run is kept, it goes on with:\n"
            f"halo resume {paused.run_id} --interrupt {question.id} --answer yes"
        )
        again = await runtime(tmp_path, SLACK_API_URL=server.url).resume(paused.run_id)
        assert again.status == "paused"
        done = await runtime(tmp_path, SLACK_API_URL=server.url).signal(paused.run_id, "yes")
        assert (done.status, done.output, len(told(server))) == ("completed", "deployed", 1)


async def test_one_that_is_answered_at_once_is_told_nobody(tmp_path: Path) -> None:
    async def answer(interrupt: Interrupt) -> str:
        return "yes"

    async with FakeSlack() as server:
        host = runtime(tmp_path, SLACK_API_URL=server.url)
        host.on_interrupt(answer)
        assert (await start(host)).status == "completed"
        assert server.requests == []


async def test_while_a_person_thinks_the_others_are_told(tmp_path: Path) -> None:
    async with FakeSlack() as server:
        host = runtime(tmp_path, SLACK_API_URL=server.url)

        async def think(interrupt: Interrupt) -> str:
            async with asyncio.timeout(5):
                while not told(server):  # noqa: ASYNC110 - the fake tells nobody
                    await asyncio.sleep(0.005)
            return "yes"

        host.on_interrupt(think)
        assert (await start(host)).status == "completed"
        assert len(told(server)) == 1


async def test_who_cannot_be_told_is_a_warning_and_the_run_waits(tmp_path: Path) -> None:
    async with FakeSlack(refusals_expected=True) as server:
        host = runtime(tmp_path, SLACK_API_URL=server.url)
        paused = await start(host, SLACK.replace("#general", "#nowhere") + MAIN)
        assert paused.status == "paused"
        (warning,) = paused.context.meta["warnings"]
        assert warning["message"].startswith("nobody was told of the question by Team: Team.post: ")
        assert "channel_not_found" in warning["message"]
        assert (await runtime(tmp_path, SLACK_API_URL=server.url).signal(paused.run_id, "yes")).status == "completed"


async def test_a_declaration_without_a_channel_says_so(tmp_path: Path) -> None:
    paused = await start(runtime(tmp_path), SLACK.replace(', channel: "#general"', "") + MAIN)
    assert paused.status == "paused"
    assert "channel" in paused.context.meta["warnings"][0]["message"]


async def test_a_missing_token_stops_the_run_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SLACK_BOT_TOKEN"):
        await Runtime(env={}, store=FileRunStore(tmp_path / ".halo")).run(program(), "Main", {"version": "1"})


@pytest.mark.parametrize("channel", ['"releases"', "Memory", "Nobody"])
async def test_any_other_channel_is_only_a_name(tmp_path: Path, channel: str) -> None:
    text = 'store Memory : KV("memory.db")\n' + MAIN.replace("channel: Team", f"channel: {channel}")
    paused = await Runtime(env={}).run(halo_lang.parse(text), "Main", {"version": "1"})
    assert (paused.status, paused.context.meta["warnings"]) == ("paused", [])
    assert paused.interrupts[0].channel == channel.strip('"')


async def test_questions_of_nested_pipelines_and_items_are_told_apart(tmp_path: Path) -> None:
    text = (
        SLACK
        + MAIN.replace("pipeline Main", "pipeline One")
        + "pipeline Main(version: String) -> Any:\n"
        + '  version |> System.Value(context.input.version) |* { One("1"), One("2") as second }\n'
    )
    async with FakeSlack() as server:
        paused = await start(runtime(tmp_path, SLACK_API_URL=server.url), text)
        assert len(paused.interrupts) == 2
        texts = [message["text"] for message in told(server)]
        assert sorted(text.partition("\n")[0] for text in texts) == ["Deploy 1?", "Deploy 2?"]
        assert {question.id for question in paused.interrupts} == {
            text.partition("--interrupt ")[2].partition(" ")[0] for text in texts
        }


async def test_secrets_in_a_question_are_told_nobody(tmp_path: Path) -> None:
    async with FakeSlack() as server:
        host = runtime(tmp_path, SLACK_API_URL=server.url, DEPLOY_TOKEN="zq-9876-deploy")
        await host.run(program(), "Main", {"version": "zq-9876-deploy"})
        assert "zq-9876-deploy" not in told(server)[0]["text"]
        assert "Deploy [REDACTED]?" in told(server)[0]["text"]


async def test_by_mail_those_are_told_whom_the_declaration_names(tmp_path: Path) -> None:
    from tests.services.mail import PASSWORD, Post

    declared = 'tool Team : Email(from: "halo@example.org", notify: ["ada@example.org"])\n'
    async with Post(tls=False) as post:
        env: dict[str, Any] = {
            "SMTP_HOST": f"127.0.0.1:{post.port}", "SMTP_USER": "halo", "SMTP_PASSWORD": PASSWORD,
        }  # fmt: skip
        paused = await start(runtime(tmp_path, **env), declared + MAIN)
        (sent,) = post.sent
        assert (paused.status, sent.recipients) == ("paused", ("ada@example.org",))
        assert post.parsed()["subject"] == "Halo asks: Deploy 1.2?"
        host = runtime(tmp_path / "other", **env)
        without = await start(host, declared.replace(', notify: ["ada@example.org"]', "") + MAIN)
        assert 'give it notify: ["ada@example.org"]' in without.context.meta["warnings"][0]["message"]


async def test_a_handler_that_leaves_it_open_pauses_and_tells(tmp_path: Path) -> None:
    async def later(interrupt: Interrupt) -> Any:
        return PAUSE

    async with FakeSlack() as server:
        host = runtime(tmp_path, SLACK_API_URL=server.url)
        host.on_interrupt(later)
        assert (await start(host)).status == "paused"
        assert len(told(server)) == 1
