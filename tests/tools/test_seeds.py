"""The examples of the language's own documents, as written there, with declared providers and what is behind them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime.errors import ConfigError
from halo_runtime.models.scripted import ScriptedModel
from halo_runtime.results import RunResult
from halo_runtime.runtime import Runtime
from tests.fakes.github_documents import REPO
from tests.fakes.github_server import TOKEN, FakeGitHub


async def play(program: str, inputs: dict[str, Any], replies: Any, server: FakeGitHub | None = None) -> RunResult:
    env = {"GITHUB_TOKEN": TOKEN} | ({} if server is None else {"GITHUB_API_URL": server.url})
    runtime = Runtime(env=env, replies=ScriptedModel(replies))
    try:
        return await runtime.run(halo_lang.parse(program), "Main" if "Main" in program else None, inputs)
    finally:
        await runtime.close()


REVIEWER = """tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")
policy Budget : MaxSpend(1.00)

agent Reviewer [anthropic/claude-sonnet-4-5, temp: 0.2]
  system "You are a strict code reviewer."
  equips Repo
  requires Budget

pipeline Review(number: Number) -> Result:
  number |> Reviewer.get_issue("Review this issue and list what is missing.", tool: Repo, number: number)
"""

PICK = """tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")

pipeline Main() -> Any:
  null
    |> Repo.list_issues() as issues
    |> System.Pick(context.data.issues.items, fields: ["number", "title", "labels.name"], maxChars: 1500) as items
"""

LABELS = """tool GitHub : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")

agent Triager [openai/gpt-4o-mini]

pipeline Main() -> Any:
  null
    |> GitHub.list_issues() as found
    |> Triager.label("Give each issue its labels, as a JSON list of {number, labels}: {{found}}") as issues
    |* each(issue in context.data.issues, concurrency: 2) => GitHub.add_labels(labels: issue.labels) as labeled
"""

LOOP = """tool Shell : Bash(allow: ["test"])

agent SWE [openai/gpt-4o-mini]

pipeline Main(task: String) -> Result:
  task
    |> SWE.fix()
    |> Shell.run("test {{context.data.SWE.fix}} = good")
    |<> loop(SWE, "context.data.Shell.run.exitCode != 0", max: 3) as retries
"""


@pytest.mark.parametrize("program", [REVIEWER, PICK, LABELS, LOOP])
def test_they_have_no_errors(program: str) -> None:
    assert halo_lang.check(halo_lang.parse(program)).errors == ()


async def test_a_reviewer_gets_the_issue_that_its_tool_reads() -> None:
    async with FakeGitHub() as server:
        server.add_issue("It is broken", body="Always.")
        result = await play(REVIEWER, {"number": 1}, {"Reviewer.get_issue": "No steps to reproduce."}, server)
        assert (result.status, result.output) == ("completed", "No steps to reproduce.")
        (call,) = result.context.meta["calls"]
        sent = call["messages"][-1]["content"]
        assert sent.startswith("Task: get issue\n\nInstructions:\nReview this issue and list what is missing.")
        assert "Tool result (Repo.get_issue):" in sent
        assert "It is broken" in sent
        assert server.requests[0].path == f"/repos/{REPO}/issues/1"


async def test_of_issues_only_the_picked_fields_go_on() -> None:
    async with FakeGitHub() as server:
        server.add_issue("It is broken", labels=["bug"])
        server.add_issue("It is slow")
        result = await play(PICK, {}, {}, server)
        assert result.output == [
            {"number": 1, "title": "It is broken", "labels": [{"name": "bug"}]},
            {"number": 2, "title": "It is slow", "labels": []},
        ]


async def test_each_issue_gets_its_labels() -> None:
    async with FakeGitHub() as server:
        for title in ("one", "two", "three"):
            server.add_issue(title)
        wanted = {2: ["bug"], 3: ["slow", "bug"], 1: ["ui"]}
        labels = [{"number": number, "labels": names} for number, names in wanted.items()]
        result = await play(LABELS, {}, {"Triager.label": json.dumps(labels)}, server)
        assert (result.status, result.error) == ("completed", None)
        kept = {number: [label["name"] for label in issue["labels"]] for number, issue in server.issues.items()}
        assert kept == wanted
        labeled = [[label["name"] for label in labels] for labels in result.context.data["labeled"]]
        assert labeled == list(wanted.values())


async def test_an_item_that_names_no_issue_is_told() -> None:
    async with FakeGitHub() as server:
        result = await play(LABELS, {}, {"Triager.label": '[{"labels": ["bug"]}]'}, server)
        assert result.status == "failed"
        assert "`number` is left out, and what flows in has no field of that name; write it" in str(result.error)


async def test_a_number_that_flows_in_is_the_issues() -> None:
    async with FakeGitHub() as server:
        server.add_issue("It is broken")
        program = PICK.split("pipeline")[0] + "pipeline Main(n: Number) -> Any:\n  n |> Repo.get_issue()\n"
        assert (await play(program, {"n": 1}, {}, server)).output["title"] == "It is broken"
        assert "number takes a whole number" in str(
            (await play(program.replace("n |>", '"x" |>'), {"n": 1}, {}, server)).error
        )


async def test_an_engineer_tries_again_until_the_command_is_content(tmp_path: Path) -> None:
    result = await play(LOOP, {"task": "mend it"}, {"SWE.fix": ["bad", "worse", "good"]})
    assert result.status == "completed"
    assert result.context.data["retries"] == 2
    assert result.context.data["Shell"]["run"]["exitCode"] == 0
    result = await play(LOOP, {"task": "mend it"}, {"SWE.fix": ["bad"] * 4})
    assert type(result.error).__name__ == "LoopLimitError"


async def test_a_missing_token_is_named_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match="GITHUB_TOKEN"):
        await Runtime(env={}, replies=ScriptedModel({})).run(halo_lang.parse(REVIEWER), "Review", {"number": 1})
