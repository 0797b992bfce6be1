"""What Linear refuses, in words: limits with their waits, keys, complexity; configuration; Linear in programs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halo_lang
from halo_runtime import Cassette, ConfigError, RunResult
from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.linear.errors import errors_of, explain
from halo_runtime.tools.web.client import WebAnswer, WebRequest
from tests.durability.support import Project
from tests.fakes.linear_server import KEY, FakeLinear, limited, refusal, uuid
from tests.fakes.wire import Answer, reply
from tests.runtime.support import runtime
from tests.tools.test_linear import ask, opened

NOW = 1_764_500_000


async def refused(server: FakeLinear, answer: Answer, method: str = "get_issue", **args: Any) -> ToolError:
    """The error of a call at NOW."""
    server.answer(answer)
    tool = opened(server, now=float(NOW))
    with pytest.raises(ToolError) as caught:
        await ask(tool, method, **(args or {"id": "ENG-1"}))
    await tool.close()
    return caught.value


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (limited(reset=NOW + 90), 90.0),
        (limited(reset=NOW + 90, limit="complexity"), 90.0),
        (limited(reset=NOW - 5), 0.0),
        (limited(reset=NOW + 90, more={"retry-after": "17"}), 17.0),
        (limited(reset=NOW + 90, limit="none", more={"x-ratelimit-requests-reset": "soon"}), 60.0),
        (refusal("Slow down", "RATELIMITED", "ratelimited", status=400), 60.0),
        (refusal("Slow down", "OTHER", "ratelimited"), 60.0),
        (reply({"errors": [{"message": "Slow down"}]}, 429, headers={"retry-after": "3"}), 3.0),
    ],
)
@pytest.mark.parametrize("method", ["get_issue", "add_comment"])
async def test_a_limit_passes_and_says_when(answer: Answer, wait: float, method: str) -> None:
    async with FakeLinear() as server:
        error = await refused(server, answer, method, **({"body": "b"} if method == "add_comment" else {}), id="ENG-1")
    assert (error.retryable, error.retry_after) == (True, wait)


async def test_a_used_up_limit_names_its_end() -> None:
    async with FakeLinear() as server:
        error = await refused(server, limited(reset=NOW + 90))
    assert "asks for fewer requests: Rate limit exceeded; the limit ends 10:54:50 UTC" in error.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            refusal("not authenticated", "AUTHENTICATION_ERROR", "authentication error", status=401),
            "refused: not authenticated; check the key: in the declaration, or in LINEAR_API_KEY",
        ),
        (reply({"errors": [{"message": "no"}]}, 403), "refused: no; the key may not do this"),
        (refusal("Plan", "X", "feature not accessible"), "the workspace's plan does not have this"),
        (refusal("Query too complex.", "INPUT_ERROR", "invalid input", status=400), "ask for less: first:, limit:"),
        (
            refusal("Entity not found: Issue", "INPUT_ERROR", "invalid input", shown="Could not find it."),
            "Entity not found: Issue; Could not find it; there is no such thing, or the key may not see it",
        ),
        (refusal("", "X", "user error"), "refused: user error$"),
        (reply({"errors": ["odd", 7]}), "refused: odd; 7$"),
        (reply({"errors": [{"message": "x" * 1000}]}), "refused: x{300}…$"),
        (reply({"message": "no"}, 400), "answered 400 to POST /graphql: no"),
        (Answer(502, b"<html>", content_type="text/html"), "answered 502 to POST /graphql$"),
        (Answer(body=b"<html>"), "did not answer as Linear does; check baseUrl: or LINEAR_API_URL"),
        (reply([1]), "did not answer as Linear does"),
        (reply({"data": None}), "did not answer as Linear does"),
        (reply({"data": {"issue": None}}), "did not answer as Linear does"),
        (reply({"errors": [], "data": {}}), "did not answer as Linear does"),
        (Answer(body=b'{"data": "' + b"x" * (16 << 20) + b'"}'), "more than 16 MiB; ask for less"),
    ],
)
async def test_a_refusal_says_what_and_what_to_do(answer: Answer, words: str) -> None:
    async with FakeLinear() as server:
        error = await refused(server, answer)
    with pytest.raises(ToolError, match=rf"^Plan\.get_issue: .*{words}"):
        raise error


@pytest.mark.parametrize("method", ["get_issue", "create_issue"])
async def test_a_failure_of_linears_own_is_not_repeated_where_something_may_have_been_done(method: str) -> None:
    """A part of the data was there, the rest was not: nobody knows what was done."""
    async with FakeLinear() as server:
        answer = refusal("oops", "INTERNAL_SERVER_ERROR", "internal error", data={"issueCreate": None})
        args = {"id": "ENG-1"} if method == "get_issue" else {"title": "t", "team": uuid(2, 1)}
        assert (await refused(server, answer, method, **args)).retryable is (method == "get_issue")


WORDS = st.sampled_from(["RATELIMITED", "ratelimited", "internal error", "Query too complex", "not found", ""])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS, lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner)
)
ERROR = st.fixed_dictionaries(
    {},
    optional={
        "message": ANYTHING,
        "extensions": ANYTHING | st.fixed_dictionaries({"code": ANYTHING, "type": ANYTHING}),
    },
)
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "x-ratelimit-requests-reset", "x-ratelimit-complexity-reset"]), st.text(max_size=20)
)


@given(st.lists(ERROR | ANYTHING, min_size=1), st.sampled_from([200, 400, 401, 429, 500]), HEADERS)
def test_whatever_is_wrong_is_told(errors: list[Any], status: int, headers: dict[str, str]) -> None:
    request = WebRequest("Plan", "POST", "https://api.linear.app/graphql", repeatable=False)
    error = explain(request, WebAnswer(status, headers, b""), errors_of({"errors": errors}), float(NOW))
    assert error.message.startswith("Plan: api.linear.app ")
    assert error.retryable is (error.retry_after is not None)


@pytest.mark.parametrize(("key", "authorization"), [(KEY, KEY), ("lin_oauth_0123", "Bearer lin_oauth_0123")])
async def test_only_an_applications_token_goes_behind_bearer(key: str, authorization: str) -> None:
    async with FakeLinear(authorization=authorization) as server:
        tool = opened(server, key=key)
        assert (await ask(tool, "viewer"))["name"] == "Ada Lovelace"
        await tool.close()


async def test_a_wrong_key_is_told() -> None:
    async with FakeLinear(refusals_expected=True) as server:
        tool = opened(server, key="lin_api_wrong0123456789")
        with pytest.raises(ToolError, match=r"not authenticated; check the key") as caught:
            await ask(tool, "viewer")
        await tool.close()
    assert "lin_api" not in caught.value.message


async def test_settings_are_tried_without_changing_anything() -> None:
    async with FakeLinear() as server:
        for team, found in ((None, "Ada Lovelace in Acme"), ("ENG", "Ada Lovelace in Acme, team ENG")):
            tool = opened(server, team=team)
            assert await tool.probe() == found
            await tool.close()
        tool = opened(server, team="NO")
        with pytest.raises(ToolError, match='there is no team "NO" that the key can see; list_teams'):
            await tool.probe()
        await tool.close()
        assert not any(asked.mutates for asked in server.asked)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "key: is missing; give an API key .*LINEAR_API_KEY"),
        ({"key": "Bearer x"}, "the key holds white space"),
        ({"key": "k", "baseUrl": "http://linear.example/graphql"}, "plain http to another machine"),
        ({"key": "k", "baseUrl": "ftp://x"}, r"baseUrl \(or LINEAR_API_URL\) is no http or https address"),
    ],
)
def test_settings_that_cannot_work_are_told_first(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        tool_factory("Linear")(ToolConfig("Plan", "Linear", settings, Path()))


# --- in programs ------------------------------------------------------------------------------------------------------

CREATE = 'tool Plan : Linear(team: "ENG")\npipeline Main(x: String) -> Result: |> Plan.create_issue(x) as made'


def environment(server: FakeLinear) -> dict[str, str]:
    return {"LINEAR_API_KEY": KEY, "LINEAR_API_URL": server.url}


async def play(text: str, env: dict[str, str], replies: dict[str, Any] | None = None, **options: Any) -> RunResult:
    return await runtime(replies, env=env, **options).run(halo_lang.parse(text), "Main", {"x": "hello"})


async def test_issues_flow_into_the_methods_that_take_one() -> None:
    text = (
        'tool Plan : Linear(Env.LINEAR_API_KEY, team: "ENG")\n'
        "pipeline Main(x: String) -> Result:\n"
        "  |> Plan.listIssues() as found\n"
        '  |* each(issue in context.data.found.items) => Plan.addLabel(label: "Docs") as labeled'
    )
    async with FakeLinear() as server:
        server.add_issue("one", description=f"I am {KEY}")
        server.add_issue("two")
        result = await play(text, environment(server))
        assert [server.label_names(issue) for issue in server.issues] == [["Docs"], ["Docs"]]
    assert result.context.data["found"]["items"][0]["description"] == "I am [REDACTED]"


async def test_a_limit_is_waited_for_by_retry() -> None:
    async with FakeLinear() as server:
        server.answer(limited(reset=NOW, more={"retry-after": "0"}))
        result = await play(CREATE.replace("pipeline", "@retry(2)\npipeline"), environment(server))
        assert len(server.issues) == 1
    assert result.output["identifier"] == "ENG-1"


async def test_a_key_that_a_server_repeats_is_in_no_output() -> None:
    async with FakeLinear() as server:
        server.answer(refusal(f"bad {KEY}", "X", "user error"))
        seen: list[str] = []
        made = runtime(env=environment(server))
        made.subscribe(lambda event: seen.append(repr(event)))
        result = await made.run(halo_lang.parse(CREATE), "Main", {"x": "hello"})
    assert result.error is not None
    assert "bad [REDACTED]" in result.error.message
    assert KEY not in f"{seen} {result}"


async def test_an_agent_reads_and_opens_issues() -> None:
    text = (
        'tool Plan : Linear(team: "ENG")\nagent A [openai/gpt-4o-mini] equips Plan\n'
        "pipeline Main(x: String) -> Result: x |> A.go(tools: [Plan])"
    )
    calls = [
        {"tool_calls": [{"tool": "Plan_get_issue", "args": {"id": "ENG-1"}}]},
        {"tool_calls": [{"tool": "Plan_create_issue", "args": {"title": "t", "priority": 9}}]},
        {"tool_calls": [{"tool": "Plan_create_issue", "args": {"title": "t", "priority": 1.0, "assignee": None}}]},
        "done",
    ]
    async with FakeLinear() as server:
        server.add_issue("one")
        result = await play(text, environment(server), {"A.go": calls})
        assert (len(server.issues), server.issues[1]["priority"]) == (2, 1)
    read, wrong, opened_ = result.context.meta["calls"][0]["tools"]
    assert read["result"]["title"] == "one"
    assert "priority takes" in wrong["error"]
    assert opened_["result"]["identifier"] == "ENG-2"


async def test_a_run_that_goes_on_opens_nothing_twice(tmp_path: Path) -> None:
    project = Project(tmp_path)
    async with FakeLinear() as server:
        project.env = environment(server)
        text = f'{CREATE} |! yield("Go on?")'.replace("pipeline", "@checkpoint\npipeline")
        assert (await project.run(text, {"x": "hi"}, run_id="r")).status == "paused"
        assert (await project.runtime().signal("r", True)).status == "completed"
        assert len(server.issues) == 1
    assert KEY.encode() not in project.bytes_of("r")


async def test_a_run_that_broke_off_while_an_issue_was_opened_asks(tmp_path: Path) -> None:
    project = Project(tmp_path)
    async with FakeLinear() as server:
        project.env = environment(server)
        teams = {"nodes": [{"id": uuid(2, 1), "key": "ENG", "name": "Engineering"}]}
        server.answer(reply({"data": {"teams": teams}}), Answer(hang=True))
        text = CREATE.replace("pipeline", "@checkpoint\npipeline")
        task = asyncio.create_task(project.run(text, {"x": "hi"}, run_id="r"))
        await server.hanging.wait()
        task.cancel()
        await asyncio.wait([task])
        result = await project.runtime().resume("r")
        assert [question.kind for question in result.interrupts] == ["in_doubt"]
        assert (len(server.requests), server.asked[-1].fields) == (2, ["issueCreate"])


async def test_a_cassette_answers_in_place_of_linear(tmp_path: Path) -> None:
    async with FakeLinear() as server:
        first = await play(CREATE, environment(server), cassette=Cassette.record(tmp_path / "tape"))
    again = await play(CREATE, {}, cassette=Cassette.replay(tmp_path / "tape"))
    assert again.output == first.output
