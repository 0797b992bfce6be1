"""Bash as programs use it: values, secrets, time limits, and what agents choose (spec 5, 12.5)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import ConfigError, RunResult
from tests.runtime.support import runtime
from tests.tools.test_bash import NAP, commands_left, names_in, until_there

ENV = {"PATH": os.environ["PATH"], "DEPLOY": "zq-9876-deploy", "REGION": "north-1"}
HOSTILE = 'x\'; touch made; "$(touch made)" #'


async def play(folder: Path, text: str, x: Any = "", replies: dict[str, Any] | None = None) -> RunResult:
    """Run `Main(x)` of a program that lies in `folder`."""
    program = halo_lang.parse(halo_lang.Source(text, str(folder / "main.halo")))
    return await runtime(replies, env=ENV).run(program, "Main", {"x": x})


def warnings(result: RunResult) -> list[str]:
    return [warning["message"] for warning in result.context.meta["warnings"]]


async def test_values_of_a_stage_stay_data(tmp_path: Path) -> None:
    stages = "x |> Sh.run(\"printf '%s' '{{x}}'\") |> System.Value(run.stdout)"
    result = await play(tmp_path, f"tool Sh : Bash\npipeline Main(x: String) -> Result: {stages}", HOSTILE)
    assert (result.output, names_in(tmp_path), warnings(result)) == (HOSTILE, [], [])


async def test_values_of_a_tool_before_the_prompt_stay_data(tmp_path: Path) -> None:
    program = (
        "tool Sh : Bash\nagent A [openai/gpt-4o-mini]\n  equips Sh\n"
        'pipeline Main(x: String) -> Result: x |> A.run("Look.", tool: Sh, command: "echo {{x}}")'
    )
    result = await play(tmp_path, program, HOSTILE, {"A.run": "seen"})
    assert result.context.data["Sh"]["run"]["stdout"] == f"{HOSTILE}\n"
    assert f"- command: echo {HOSTILE}" in result.context.meta["calls"][0]["messages"][-1]["content"]
    assert names_in(tmp_path) == []


async def test_numbers_objects_and_what_cannot_be_filled_are_words_too(tmp_path: Path) -> None:
    stages = 'x |> Sh.run("printf [%s] {{x.n}} {{x.o}} {{x.none}} {{Env.DEPLOY}}") |> System.Value(run.stdout)'
    result = await play(
        tmp_path, f"tool Sh : Bash\npipeline Main(x: Any) -> Result: {stages}", {"n": 3, "o": {"a": [1]}}
    )
    assert result.output == '[3][{"a":[1]}][{{x.none}}][{{Env.DEPLOY}}]'


@pytest.mark.parametrize("command", ['"{{x}}"', "x"])
async def test_a_command_that_is_all_value_runs_with_a_warning(tmp_path: Path, command: str) -> None:
    stages = f"x |> Sh.run({command}) |> System.Value(run.stdout)"
    result = await play(tmp_path, f"tool Sh : Bash\npipeline Main(x: String) -> Result: {stages}", "echo a; echo b")
    assert result.output == "a\nb\n"
    assert len(warnings(result)) == 1
    assert "Sh.run: all of its command is a filled-in value" in warnings(result)[0]


async def test_allow_binds_no_command_of_the_program(tmp_path: Path) -> None:
    program = 'tool Sh : Bash(allow: ["git"])\npipeline Main(x: String) -> Result: x |> Sh.run("echo a | cat")'
    assert (await play(tmp_path, program)).output["stdout"] == "a\n"


async def test_commands_run_in_the_folder_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    program = 'tool Sh : Bash(cwd: "inner")\npipeline Main(x: String) -> Result: x |> Sh.run("touch made")'
    await play(tmp_path, program)
    assert names_in(tmp_path / "inner") == ["made"]


async def test_variables_are_passed_on_and_set_by_name_and_secrets_stay_secret(tmp_path: Path) -> None:
    program = (
        'tool Sh : Bash(env: [Env.DEPLOY, "REGION", "MODE=fast=yes"])\npipeline Main(x: String) -> Result: '
        'x |> Sh.run(\'echo $DEPLOY $REGION $MODE $HOME; [ "$DEPLOY" = zq-"9876"-deploy ] && echo known\')'
    )
    result = await play(tmp_path, program)
    assert result.output["stdout"] == "[REDACTED] north-1 fast=yes\nknown\n"
    assert "zq-9876-deploy" not in json.dumps(result.to_json())


@pytest.mark.parametrize("item", ["Env.ABSENT", '"ABSENT"', '"Env.ABSENT"', '"no name"', '"=x"'])
async def test_a_variable_that_cannot_be_given_stops_the_run_before_it_starts(tmp_path: Path, item: str) -> None:
    program = f'tool Sh : Bash(env: [{item}])\npipeline Main(x: String) -> Result: x |> Sh.run("touch made")'
    with pytest.raises(ConfigError, match=r"tool Sh: .*(ABSENT|no name|=x)"):
        await play(tmp_path, program)
    assert names_in(tmp_path) == []


async def test_a_time_limit_of_the_pipeline_ends_its_commands(tmp_path: Path) -> None:
    program = f'tool Sh : Bash\n@timeout(300ms)\npipeline Main(x: String) -> Result: x |> Sh.run("{NAP} & {NAP}")'
    result = await play(tmp_path, program)
    assert type(result.error).__name__ == "TimeoutExceeded"
    assert commands_left() == []


async def test_the_failure_of_a_sibling_ends_a_command(tmp_path: Path) -> None:
    stages = f'x |* {{ Sh.run("{NAP}"), Sh.run("eval {{{{x}}}}") as other }}'
    result = await play(tmp_path, f"tool Sh : Bash\npipeline Main(x: String) -> Result: {stages}")
    assert type(result.error).__name__ == "ToolError"
    assert commands_left() == []


async def test_a_refused_choice_of_an_agent_is_its_result_and_allowed_ones_run(tmp_path: Path) -> None:
    def call(command: str) -> dict[str, Any]:
        return {"tool_calls": [{"tool": "Sh_run", "args": {"command": command}}]}

    program = (
        'tool Sh : Bash(allow: ["echo"])\nagent A [openai/gpt-4o-mini]\n  equips Sh\n'
        "pipeline Main(x: String) -> Result: x |> A.go(tools: [Sh])"
    )
    replies = {"A.go": [call("touch made"), call("echo '{{x}}' $x"), "end"]}
    result = await play(tmp_path, program, HOSTILE, replies)
    refused, ran = result.context.meta["calls"][0]["tools"]
    assert "not touch" in refused["error"]
    assert ran["result"]["stdout"] == "{{x}} $x\n"
    assert names_in(tmp_path) == []


async def test_a_run_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    program = f'tool Sh : Bash\npipeline Main(x: String) -> Result: x |> Sh.run("touch up; {NAP}")'
    task = asyncio.ensure_future(play(tmp_path, program))
    async with asyncio.timeout(20):
        while names_in(tmp_path) != ["up"]:  # noqa: ASYNC110 - it is another process that makes it
            await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert commands_left() == []


@pytest.mark.parametrize(
    "command",
    [
        f"touch up; {NAP}",
        f"setsid sh -c 'touch up; exec {NAP}' & wait",
        # A process is known by its mark alone in its first moments, and this one has none.
        f"env -i sh -c 'sleep 0.3; touch up; {NAP}; {NAP}'",
        f"trap '' TERM; touch up; while true; do {NAP}; done",
    ],
    ids=["plain", "left the group", "without the mark", "deaf"],
)
async def test_no_command_outlives_a_halo_that_is_killed(tmp_path: Path, command: str) -> None:
    (tmp_path / "main.halo").write_text(f'tool Sh : Bash\npipeline Main() -> Result: |> Sh.run("{command}")')
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "halo_runtime.cli.main", "run", "main.halo", cwd=tmp_path, env=os.environ | ENV,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    await until_there(tmp_path / "up")
    process.kill()
    await asyncio.wait_for(process.communicate(), 5)  # nothing holds its output open
    async with asyncio.timeout(20):
        while commands_left():  # noqa: ASYNC110 - it is another process that ends them
            await asyncio.sleep(0.01)
