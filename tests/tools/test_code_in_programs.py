"""Code as programs and agents use it: values, journals, cassettes, secrets (spec 5, 3.2)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import Cassette, RunResult
from halo_runtime.cli.main import main
from halo_runtime.engine.events import RunEvent
from tests.durability.support import Project
from tests.runtime.support import runtime
from tests.tools.coding import SANDBOXES, until_busy, until_gone

CALC = "tool Calc : Code{settings}\n"
HOSTILE = "'); print('ran') #"


async def play(
    text: str, x: Any = "", replies: dict[str, Any] | None = None, settings: str = "", **options: Any
) -> RunResult:
    """Run `Main(x)` of a program that has the tool Calc."""
    program = halo_lang.parse(CALC.format(settings=settings) + text)
    return await runtime(replies, **options).run(program, "Main", {"x": x})


def stages(text: str) -> str:
    return f"pipeline Main(x: Any) -> Any: x |> {text}"


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_program_gives_values_by_name_and_goes_on_with_the_result(sandbox: str) -> None:
    text = stages('Calc.run("sum(xs) * factor", xs: x, factor: 2) |> System.Value(run.result)')
    assert (await play(text, [1, 2.5], settings=f'(sandbox: "{sandbox}")')).output == 7.0


async def test_a_hostile_value_is_data_by_name_and_refused_in_the_text() -> None:
    assert (await play(stages('Calc.run("len(x)", x: x)'), HOSTILE)).output["result"] == len(HOSTILE)
    assert (await play(stages('Calc.run("len(x)", inputs: x)'), {"x": HOSTILE})).output["result"] == len(HOSTILE)
    for text in ("len('{{x}}')", "x = {{x}}"):
        error = (await play(stages(f'Calc.run("{text}")'), HOSTILE)).error
        assert type(error).__name__ == "ToolError"
        assert error is not None
        assert "give its value by that name" in error.message


async def test_code_that_is_all_value_runs_with_a_warning() -> None:
    result = await play(stages("Calc.run(x)"), "print(1)\n2")
    assert result.output == {"result": 2, "stdout": "1\n", "error": None}
    (warning,) = result.context.meta["warnings"]
    assert "Calc.run: all of its code is a filled-in value" in warning["message"]


async def test_nan_becomes_null_with_a_warning() -> None:
    result = await play(stages("Calc.run(\"[float('nan'), 1]\")"))
    assert result.output["result"] == [None, 1]
    (warning,) = result.context.meta["warnings"]
    assert "the result's result.0 was nan" in warning["message"]


async def test_a_failure_is_a_value_that_conditions_can_see() -> None:
    text = stages(
        'Calc.run("1 / x", x: x)\n  |? { (run.error.type == "ZeroDivisionError") => System.Value(run.error.line),'
        " else => System.Value(run.result) }"
    )
    assert [(await play(text, x)).output for x in (0, 2)] == [1, 0.5]


async def test_an_agent_writes_a_program_sees_its_mistake_and_does_better() -> None:
    text = (
        "agent Clerk [openai/gpt-4o-mini]\n  equips Calc\n"
        "pipeline Main(x: String) -> Result: x |> Clerk.answer(tools: [Calc])"
    )
    calls: list[dict[str, Any]] = [
        {"tool": "Calc_run", "args": {"code": "print(xs)\nsum(xs) / 0", "inputs": {"xs": [1, 2]}}},
        {"tool": "Calc_run", "args": {"code": "sum(xs)", "xs": [1, 2]}},
    ]
    replies = {"Clerk.answer": [*({"tool_calls": [call]} for call in calls), "3"]}
    result = await play(text, "what is the sum?", replies)
    assert result.output == "3"
    wrong, right = result.context.meta["calls"][0]["tools"]
    assert wrong["result"]["error"] == {"type": "ZeroDivisionError", "message": "division by zero", "line": 2}
    assert right["result"]["result"] == 3
    assert "ZeroDivisionError" in json.dumps(result.context.meta["calls"][0]["messages"])


async def test_what_was_done_is_not_done_again_when_a_run_goes_on(tmp_path: Path) -> None:
    text = CALC.format(settings="") + (
        '@checkpoint\npipeline Main(x: Any) -> Any: x |> Calc.run("import random\\nrandom.random()") as first'
        ' |> Calc.run("1 + 1") |> System.Value(first.result)'
    )
    project = Project(tmp_path)
    source = halo_lang.parse(text)
    first = await project.runtime().run(source, "Main", {"x": 1}, run_id="r", keep=True)
    project.cut("r", lambda line: not str(line.get("path")).startswith("Main/1"))
    again = await project.runtime().resume("r")
    assert not again.interrupts  # a program changes nothing, so it is never in doubt
    assert again.output == first.output


async def test_a_cassette_answers_in_place_of_the_sandbox(tmp_path: Path) -> None:
    tape, text = str(tmp_path / "tape.jsonl"), stages('Calc.run("import random\\nrandom.random()")')
    first = await play(text, cassette=Cassette.record(tape))
    assert (await play(text, cassette=Cassette.replay(tape))).output == first.output


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_time_limit_of_the_pipeline_and_cancelling_a_run_end_its_programs(sandbox: str) -> None:
    forever, settings = stages('Calc.run("while True:\\n    pass")'), f'(sandbox: "{sandbox}", timeout: 60s)'
    result = await play(f"@timeout(500ms)\n{forever}", settings=settings)
    assert type(result.error).__name__ == "TimeoutExceeded"
    task = asyncio.ensure_future(play(forever, settings=settings))
    await until_busy()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_gone()


async def test_secrets_reach_no_program_and_no_event() -> None:
    seen: list[RunEvent] = []
    program = halo_lang.parse(CALC.format(settings="") + stages('Calc.run("print(x)\\nx", x: x)'))
    made = runtime(env={"KEY": "zq-9876-key"})
    made.subscribe(seen.append)
    result = await made.run(program, "Main", {"x": "zq-9876-key"})
    assert result.output == {"result": "[REDACTED]", "stdout": "[REDACTED]\n", "error": None}
    assert "zq-9876-key" not in repr(result) + repr(seen)


def test_doctor_tries_the_sandbox_and_check_knows_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.halo"
    file.write_text('tool Calc : Code(timeout: 5s, memory: 64)\npipeline Main() -> Any: |> Calc.run("1")\n')
    assert main(["doctor", str(file)]) == 0
    assert "ok      tool Calc : Code: the sandbox works" in capsys.readouterr().out
    file.write_text('tool Calc : Code("ruby", memory: 1, sandbox: "none")\npipeline Main() -> Any: |> Calc.run("1")\n')
    assert main(["check", str(file)]) == 2
    told = capsys.readouterr().out
    assert told.count("HL303") == 3
