"""REST, GET and POST as programs use them: stages, agents, keys, and settings that cannot work (spec 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import ConfigError, RunResult
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from tests.fakes.wire import reply
from tests.runtime.support import runtime
from tests.tools.test_rest import Echo


@pytest.fixture
async def server() -> AsyncIterator[Echo]:
    async with Echo() as echo:
        yield echo


async def play(text: str, env: dict[str, str], replies: dict[str, Any] | None = None) -> RunResult:
    return await runtime(replies, env=env).run(halo_lang.parse(text), "Main", {"x": "Oslo"})


def declared(server: Echo, more: str = "") -> str:
    return f'tool Api : REST("{server.address}", allowHosts: ["127.0.0.1"]{more})\n'


async def test_a_program_asks_a_path_and_goes_on_with_the_body(server: Echo) -> None:
    server.answer(reply({"temp": 4}))
    stages = "x |> Api.weather(city: x) |> System.Value(context.data.Api.weather.body.temp)"
    result = await play(f"{declared(server)}pipeline Main(x: String) -> Result: {stages}", {})
    assert (result.output, server.requests[0].path) == (4, "/weather?city=Oslo")


async def test_a_key_from_the_environment_is_sent_and_never_shown(server: Echo) -> None:
    server.answer(reply({"you sent": "Bearer zq-4471-hidden"}))
    text = declared(server, ', apiKey: Env.KEY, headers: [["X-Key", Env.KEY]]')
    result = await play(f'{text}pipeline Main(x: String) -> Result: |> Api.get("/")', {"KEY": "zq-4471-hidden"})
    sent = server.requests[0].headers
    assert (sent["authorization"], sent["x-key"]) == ("Bearer zq-4471-hidden", "zq-4471-hidden")
    assert result.output["body"] == {"you sent": "Bearer [REDACTED]"}


async def test_a_failure_is_an_error_in_a_stage_and_a_result_for_an_agent(server: Echo) -> None:
    server.answer(reply({"message": "no such city"}, 404), reply({"message": "no such city"}, 404))
    head = declared(server)
    failed = await play(f'{head}pipeline Main(x: String) -> Result: |> Api.get("/x")', {})
    assert failed.error is not None
    assert "no such city; check the path" in failed.error.message
    agent = (
        f"{head}agent A [openai/gpt-4o-mini] equips Api\npipeline Main(x: String) -> Result: x |> A.go(tools: [Api])"
    )
    replies = {"A.go": [{"tool_calls": [{"tool": "Api_get", "args": {"path": "/x"}}]}, "none"]}
    chosen = await play(agent, {}, replies)
    (tool,) = chosen.context.meta["calls"][0]["tools"]
    assert (chosen.output, "no such city" in tool["error"]) == ("none", True)


async def test_an_agent_can_post_to_a_hook(server: Echo) -> None:
    text = (
        f'tool Hook : POST("{server.address}/in", allowHosts: ["127.0.0.1"])\n'
        "agent A [openai/gpt-4o-mini] equips Hook\npipeline Main(x: String) -> Result: x |> A.go(tools: [Hook])"
    )
    replies = {"A.go": [{"tool_calls": [{"tool": "Hook_post", "args": {"n": 1}}]}, "sent"]}
    assert (await play(text, {}, replies)).output == "sent"
    assert server.requests[0].body == {"n": 1}


async def test_settings_that_cannot_work_are_told_before_a_run_starts_all_at_once() -> None:
    text = (
        'tool A : REST("ftp://example.com")\ntool B : GET("https://u:p@example.com")\n'
        'tool C : POST("https://example.com", headers: ["X: Env.KEY"])\ntool D : REST("x.example", apiKey: Env.NO)\n'
        "pipeline Main(x: String) -> Result: |> A.get() |> B.get() |> C.go() |> D.get()"
    )
    with pytest.raises(ConfigError) as caught:
        await play(text, {})
    lines = caught.value.message.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["tool A", "tool B", "tool C", "tool D"]
    assert "no http or https address" in lines[0]
    assert "holds a user or a password" in lines[1]
    assert '["x", Env.KEY]' in lines[2]
    assert "NO is not set" in lines[3]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"apiKey": "two words"}, "apiKey holds white space"),
        ({"apiKey": "k", "headers": ["Authorization: x"]}, "leave one out"),
        ({"headers": 5}, "headers takes"),
    ],
)
def test_declared_headers_are_looked_at_first(settings: dict[str, Any], problem: str) -> None:
    config = ToolConfig("Api", "REST", {"base": "api.example.com", **settings}, Path())
    with pytest.raises(ConfigError, match=problem):
        tool_factory("REST")(config)


def test_a_configuration_does_not_show_its_key() -> None:
    assert "zq-1" not in repr(ToolConfig("Api", "REST", {"apiKey": "zq-1"}, Path(), {"A": "zq-1"}))
