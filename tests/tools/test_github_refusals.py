"""What GitHub refuses, in words: limits with their waits, tokens, conflicts, and configuration before a run starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import ConfigError, RunResult
from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from tests.fakes.github_documents import sha
from tests.fakes.github_server import TOKEN, FakeGitHub, limited, refusal
from tests.fakes.wire import Answer
from tests.runtime.support import runtime
from tests.tools.test_github import opened

NOW = 1_764_500_000


async def refused(server: FakeGitHub, method: str = "get_issue", **args: Any) -> ToolError:
    """The error of a call at NOW."""
    tool = opened(server, clock=lambda: float(NOW))
    with pytest.raises(ToolError) as caught:
        await tool.call(method, args or {"number": 1})
    await tool.close()
    return caught.value


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (limited(reset=NOW + 90), 90.0),
        (limited(reset=NOW + 90, status=429), 90.0),
        (limited(reset=NOW - 5), 0.0),
        (refusal(403, "You have exceeded a secondary rate limit."), 60.0),
        (refusal(403, "You have exceeded a secondary rate limit.", headers={"retry-after": "17"}), 17.0),
        (refusal(429, "Slow down", headers={"retry-after": "17"}), 17.0),
        (refusal(429, "Slow down"), 60.0),
    ],
)
@pytest.mark.parametrize("method", ["get_issue", "create_comment"])
async def test_a_limit_passes_and_says_when(answer: Answer, wait: float, method: str) -> None:
    async with FakeGitHub() as server:
        server.answer(answer)
        error = await refused(server, method, number=1, body="b")
    assert (error.retryable, error.retry_after) == (True, wait)


async def test_a_used_up_limit_names_it_and_its_end() -> None:
    async with FakeGitHub() as server:
        server.answer(limited(reset=NOW + 90))
        error = await refused(server)
    assert "the limit of 5000 requests (core) is used up until 10:54:50 UTC" in error.message


FORBIDDEN = "Resource not accessible by personal access token"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusal(401, "Bad credentials"), "Bad credentials; check the token: in the declaration, or in GITHUB_TOKEN"),
        (refusal(403, FORBIDDEN, headers={"x-accepted-github-permissions": "issues=write"}), "needs issues=write"),
        (refusal(403, FORBIDDEN, headers={"x-accepted-oauth-scopes": "repo"}), "the token needs repo"),
        (refusal(403, FORBIDDEN), f"{FORBIDDEN}; the token may not do this"),
        (refusal(403, FORBIDDEN, headers={"x-github-sso": "required; url=x"}), "single sign-on"),
        (refusal(404, "Not Found"), "no such thing in acme/api, or the token may not see it"),
        (refusal(405, "Base branch was modified"), "cannot be merged as it is"),
        (refusal(409, "Head branch was modified."), "modified; it has changed meanwhile"),
        (refusal(410, "This issue was deleted"), "it was deleted"),
        (
            refusal(422, "Validation Failed", [
                {"resource": "Issue", "field": "title", "code": "missing_field"},
                {"resource": "PullRequest", "code": "custom", "message": "No commits between a and b"}, "plain",
            ]),
            "Validation Failed; Issue.title: missing_field; PullRequest: No commits between a and b; plain; change",
        ),
        (refusal(422, "Validation Failed", "one text"), "Validation Failed; one text"),
        (Answer(404, b"<html>", content_type="text/html"), "answered 404 to GET /repos/acme/api/issues/1; there is"),
    ],
)  # fmt: skip
async def test_a_refusal_says_what_and_what_to_do(answer: Answer, words: str) -> None:
    async with FakeGitHub() as server:
        server.answer(answer)
        error = await refused(server)
    assert words in error.message
    assert not error.retryable


async def test_the_fakes_own_refusals_are_the_services() -> None:
    async with FakeGitHub() as server:
        server.add_issue("one")
        server.add_pull("two")
        server.files["a"] = b"old"
        write = {"path": "a", "content": "new", "message": "m"}
        for method, args, status, words in (
            ("remove_label", {"number": 1, "name": "no"}, 404, "Label does not exist"),
            ("merge_pull", {"number": 2, "sha": sha("other")}, 409, "Head branch was modified"),
            ("put_file", write, 422, "sha\" wasn't supplied"),
            ("put_file", {**write, "sha": sha("x")}, 409, "does not match"),
            ("create_review", {"number": 2, "event": "COMMENT"}, 422, "Body cannot be blank"),
            ("create_pull", {"head": "fix", "base": "main", "title": "t"}, 422, "already exists for acme:fix"),
        ):
            error = await refused(server, method, **args)
            assert (error.status, words in error.message) == (status, True), method
        tool = opened(server)
        await tool.call("merge_pull", {"number": 2})
        await tool.close()
        assert (await refused(server, "merge_pull", number=2)).status == 405


async def test_a_wrong_token_is_never_repeated() -> None:
    async with FakeGitHub(refusals_expected=True) as server:
        tool = opened(server, token="ghp_wrong_0123456789")
        with pytest.raises(ToolError, match="Bad credentials") as caught:
            await tool.call("get_repo", {})
        await tool.close()
    assert "ghp_" not in caught.value.message


async def test_what_does_not_answer_as_github_does_is_not_believed() -> None:
    async with FakeGitHub() as server:
        for body in (b"<html>", b'"text"', b"{}"):
            server.answer(Answer(body=body))
            assert "check baseUrl: or GITHUB_API_URL" in (await refused(server, "list_issues")).message


# --- in programs ------------------------------------------------------------------------------------------------------

DECLARED = 'tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")\n'


async def play(text: str, env: dict[str, str], replies: dict[str, Any] | None = None, x: Any = 1) -> RunResult:
    return await runtime(replies, env=env).run(halo_lang.parse(text), "Main", {"x": x})


@pytest.mark.parametrize("variable", ["GITHUB_TOKEN", "GH_TOKEN"])
async def test_the_usual_variables_say_where_and_who(variable: str) -> None:
    text = 'tool Repo : GitHub(repo: "acme/api")\npipeline Main(x: Any) -> Result: |> Repo.getIssue(x)'
    async with FakeGitHub(base="/api/v3") as server:
        server.add_issue("one", body=f"I am {TOKEN}")
        result = await play(text, {variable: TOKEN, "GITHUB_API_URL": server.url + "/", "GITHUB_TOKEN_OLD": ""})
    assert (result.output["title"], result.output["body"]) == ("one", "I am [REDACTED]")


async def test_a_review_as_the_tutorial_has_it() -> None:
    text = (
        f"{DECLARED}agent Reviewer [openai/gpt-4o-mini]\n  equips Repo\n"
        "pipeline Main(x: Number) -> Result:\n"
        '  x |> Reviewer.get_issue("Review this issue and list what is missing.", tool: Repo, number: x)'
    )
    async with FakeGitHub() as server:
        server.add_issue("It is broken", body="Always.")
        env = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": server.url}
        result = await play(text, env, {"Reviewer.get_issue": "Steps are missing."})
    prompt = result.context.meta["calls"][0]["messages"][-1]["content"]
    assert result.output == "Steps are missing."
    assert '"title":"It is broken"' in prompt
    assert result.context.data["Repo"]["get_issue"]["number"] == 1


async def test_issues_are_listed_picked_and_labelled() -> None:
    text = (
        'tool GitHub : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")\n'
        "pipeline Main(x: Any) -> Result:\n"
        "  |> GitHub.list_issues() as issues\n"
        '  |> System.Pick(context.data.issues.items, fields: ["number", "title", "labels.name"]) as items\n'
        "  |* each(issue in context.data.items) => GitHub.add_labels(issue.number, labels: x) as labeled"
    )
    async with FakeGitHub() as server:
        server.add_issue("one", labels=("old",))
        env = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": server.url}
        result = await play(text, env, x=["new"])
        assert [label["name"] for label in server.issues[1]["labels"]] == ["old", "new"]
    assert result.context.data["items"] == [{"number": 1, "title": "one", "labels": [{"name": "old"}]}]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"repo": "acme"}, 'repo is written "owner/name", not "acme"'),
        ({"repo": "acme/api/x"}, "owner/name"),
        ({"repo": "acme/.."}, "owner/name"),
        ({"baseUrl": "ftp://x"}, r"baseUrl \(or GITHUB_API_URL\) is no http or https address"),
        ({"token": "two words"}, "the token holds white space"),
        ({"token": "t", "baseUrl": "http://ghe.example/api/v3"}, "plain http to another machine"),
    ],
)
def test_settings_that_cannot_work_are_told_first(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        tool_factory("GitHub")(ToolConfig("Repo", "GitHub", settings, Path()))


async def test_a_missing_token_that_the_program_names_is_told_before_the_run() -> None:
    with pytest.raises(ConfigError, match="tool Repo: the environment variable GITHUB_TOKEN is not set"):
        await play(f"{DECLARED}pipeline Main(x: Any) -> Result: |> Repo.get_repo()", {})


async def test_trying_a_repository_needs_an_answer_as_github_gives_it() -> None:
    async with FakeGitHub() as server:
        tool = opened(server)
        assert "acme/api, which the token may" in await tool.probe()
        server.answer(Answer(body=b'{"path": "/repos/acme/api"}'))
        with pytest.raises(ToolError, match="did not answer as GitHub does"):
            await tool.probe()
        await tool.close()
