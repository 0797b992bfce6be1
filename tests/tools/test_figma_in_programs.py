"""Figma in programs: variables of the environment, agents, runs that go on, cassettes, and no token anywhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import halo_lang
from halo_runtime import Cassette, RunResult
from tests.durability.support import Project
from tests.fakes.figma_server import FILE, TOKEN, FakeFigma, refusal
from tests.fakes.wire import Answer
from tests.runtime.support import runtime

ADDRESS = f"https://www.figma.com/design/{FILE}/Shop?node-id=1-2"
POST = (
    "tool Design : Figma()\n"
    f'pipeline Main(x: String) -> Result: |> Design.post_comment("{ADDRESS}", x) as posted'
)  # fmt: skip


def environment(server: FakeFigma) -> dict[str, str]:
    return {"FIGMA_TOKEN": TOKEN, "FIGMA_API_URL": server.url + "/"}


async def play(text: str, env: dict[str, str], replies: dict[str, Any] | None = None, **options: Any) -> RunResult:
    return await runtime(replies, env=env, **options).run(halo_lang.parse(text), "Main", {"x": "hello"})


async def test_what_people_copy_out_of_figma_is_enough() -> None:
    text = (
        "tool Design : Figma(Env.FIGMA_TOKEN)\n"
        "pipeline Main(x: String) -> Result:\n"
        f'  |> Design.getImages("{ADDRESS}") as pictures\n'
        f'  |> Design.listComments("{ADDRESS}")'
    )
    async with FakeFigma() as server:
        server.say(f"I am {TOKEN}")
        result = await play(text, environment(server))
    assert result.context.data["pictures"] == {"images": {"1:2": "https://example.org/1:2.png"}, "failed": []}
    assert [one["message"] for one in result.output["comments"]] == ["First", "I am [REDACTED]"]


async def test_a_limit_is_waited_for_by_retry() -> None:
    async with FakeFigma() as server:
        server.answer(refusal(429, "Rate limit exceeded", headers={"retry-after": "0"}))
        result = await play(POST.replace("pipeline", "@retry(2)\npipeline"), environment(server))
        assert [one["message"] for one in server.comments] == ["First", "hello"]
    assert result.status == "completed"


async def test_a_token_that_a_server_repeats_is_in_no_output() -> None:
    async with FakeFigma() as server:
        server.answer(refusal(403, f"bad {TOKEN}"))
        seen: list[str] = []
        made = runtime(env=environment(server))
        made.subscribe(lambda event: seen.append(repr(event)))
        result = await made.run(halo_lang.parse(POST), "Main", {"x": "hello"})
    assert result.error is not None
    assert "bad [REDACTED]" in result.error.message
    assert TOKEN not in f"{seen} {result}"


async def test_an_agent_reads_a_node_and_comments() -> None:
    text = (
        "tool Design : Figma()\nagent A [openai/gpt-4o-mini] equips Design\n"
        "pipeline Main(x: String) -> Result: x |> A.go(tools: [Design])"
    )
    calls = [
        {"tool_calls": [{"tool": "Design_get_nodes", "args": {"key": ADDRESS, "depth": 1}}]},
        {"tool_calls": [{"tool": "Design_get_nodes", "args": {"key": "https://evil.example/file/abc"}}]},
        {"tool_calls": [{"tool": "Design_post_comment", "args": {"key": ADDRESS, "message": "Fine."}}]},
        "done",
    ]
    async with FakeFigma() as server:
        result = await play(text, environment(server), {"A.go": calls})
        assert server.comments[-1]["message"] == "Fine."
    read, refused, _ = result.context.meta["calls"][0]["tools"]
    assert read["result"]["nodes"]["1:2"]["document"]["name"] == "Button"
    assert "key is a file's key, or its address" in refused["error"]


async def test_a_run_that_goes_on_comments_nothing_twice(tmp_path: Path) -> None:
    project = Project(tmp_path)
    async with FakeFigma() as server:
        project.env = environment(server)
        text = f'{POST} |! yield("Go on?")'.replace("pipeline", "@checkpoint\npipeline")
        assert (await project.run(text, {"x": "hi"}, run_id="r")).status == "paused"
        assert (await project.runtime().signal("r", True)).status == "completed"
        assert [one["message"] for one in server.comments] == ["First", "hi"]
    assert TOKEN.encode() not in project.bytes_of("r")


async def test_a_run_that_broke_off_in_the_middle_of_a_comment_asks(tmp_path: Path) -> None:
    project = Project(tmp_path)
    async with FakeFigma() as server:
        project.env = environment(server)
        server.answer(Answer(hang=True))
        text = POST.replace("pipeline", "@checkpoint\npipeline")
        task = asyncio.create_task(project.run(text, {"x": "hi"}, run_id="r"))
        await server.hanging.wait()
        task.cancel()
        await asyncio.wait([task])
        result = await project.runtime().resume("r")
        assert [question.kind for question in result.interrupts] == ["in_doubt"]
        assert len(server.requests) == 1


async def test_a_cassette_answers_in_place_of_figma(tmp_path: Path) -> None:
    async with FakeFigma() as server:
        first = await play(POST, environment(server), cassette=Cassette.record(tmp_path / "tape"))
    again = await play(POST, {}, cassette=Cassette.replay(tmp_path / "tape"))
    assert again.output == first.output
