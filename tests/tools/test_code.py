"""Code runs programs in both sandboxes: what they give, how they fail, and that none goes on for ever."""

from __future__ import annotations

import asyncio
import math

import pytest

from halo_lang import catalog
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json
from halo_runtime.templates import WrittenText
from halo_runtime.tools.code.base import MAX_MESSAGE, MAX_RESULT, checked
from halo_runtime.tools.excerpt import KEPT_BYTES
from tests.tools.coding import (
    SANDBOXES,
    code,
    descendants,
    failure,
    pass_over_others,
    run,
    until_busy,
    until_gone,
    written,
)

both = pytest.mark.parametrize("sandbox", SANDBOXES)


@pytest.fixture(autouse=True)
def _alone() -> None:
    pass_over_others()


def test_the_code_has_the_methods_of_the_catalogue_and_no_others() -> None:
    spec = catalog.provider("Code")
    assert spec is not None
    assert spec.method_names == ("run",)
    method = spec.method("run")
    assert method is not None
    assert (method.effect, method.idempotent, method.signature.by_name["code"].code) == ("read", True, True)


# --- what comes out -------------------------------------------------------------------------------------------------


@both
async def test_the_last_line_is_the_result_and_what_is_printed_stands_beside_it(sandbox: str) -> None:
    text = "import sys\nprint('one', sum(xs))\nprint('two', file=sys.stderr)\n{'n': n, 'xs': [x * 2 for x in xs]}"
    async with code(sandbox) as tool:
        result = await run(tool, text, inputs={"xs": [1, 2.5]}, n={"a": [None, True, 10**30, "é\U0001f600"]})
    assert result == {
        "result": {"n": {"a": [None, True, 10**30, "é\U0001f600"]}, "xs": [2, 5.0]},
        "stdout": "one 3.5\ntwo\n",
        "error": None,
    }


@both
async def test_values_come_out_by_the_rules_of_every_tool(sandbox: str) -> None:
    text = (
        "import datetime\nfrom decimal import Decimal\n"
        "[(1, 2), b'ab', datetime.date(2026, 1, 2), Decimal('1.50'), {1: 'one'}, -0.0, True, None]"
    )
    async with code(sandbox) as tool:
        result = await run(tool, text)
    assert (result["error"], result["result"]) == (
        None, [[1, 2], "YWI=", "2026-01-02", 1.5, {"1": "one"}, -0.0, True, None],
    )  # fmt: skip


@both
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{1, 2}", "type set, which has no JSON form; end with text"),
        ("10**5000", "more than 4,000 digits"),
        ("a = []\nfor _ in range(100000):\n    a = [a]\na", "nested deeper than 200"),
        ("[{(1, 2): 3}]", "the result's 0 has a key of type tuple"),
    ],
    ids=["a set", "a huge number", "a deep list", "a key"],
)
async def test_what_is_no_json_is_told_to_whoever_wrote_the_program(sandbox: str, text: str, told: str) -> None:
    async with code(sandbox) as tool:
        result = await run(tool, text)
    assert failure(result) == ("TypeError", None)
    assert told in result["error"]["message"]
    assert result["result"] is None


@both
async def test_a_program_without_a_last_expression_gives_null(sandbox: str) -> None:
    async with code(sandbox) as tool:
        for text in ("x = 1", "# nothing", "for x in range(3):\n    x", "import math"):
            assert await run(tool, text) == {"result": None, "stdout": "", "error": None}


@both
async def test_nan_stays_for_the_run_to_make_null_of(sandbox: str) -> None:
    async with code(sandbox) as tool:
        result = (await run(tool, "[float('nan'), float('-inf')]"))["result"]
    assert math.isnan(result[0])
    assert result[1] == -math.inf


@both
async def test_programs_know_nothing_of_each_other(sandbox: str) -> None:
    async with code(sandbox) as tool:
        await run(tool, "import math\nmath.kept = 1\nkept = 1" if sandbox == "bubblewrap" else "kept = 1")
        assert failure(await run(tool, "kept")) == ("NameError", 1)
        both_at_once = await asyncio.gather(*(run(tool, "n * 2", n=n) for n in range(6)))
    assert [result["result"] for result in both_at_once] == [0, 2, 4, 6, 8, 10]


# --- what goes wrong ------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("text", "type_", "line"),
    [
        ("def f():\n    return 1 / 0\n\nf()", "ZeroDivisionError", 2),
        ("x = 1\ndef (", "SyntaxError", 2),
        ("x = 1\nx.y", "AttributeError", 2),
        ("import no_such_module", "ModuleNotFoundError", 1),
        ("raise ValueError('why')", "ValueError", 1),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", 1),
        ("\nassert 1 == 2, 'no'", "AssertionError", 2),
        ("try:\n    1 / 0\nexcept Exception:\n    raise ValueError('b')", "ValueError", 4),
        ("eval('1 / 0')", "ZeroDivisionError", 1),
    ],
)
async def test_an_exception_is_a_result_with_its_line(sandbox: str, text: str, type_: str, line: int) -> None:
    async with code(sandbox) as tool:
        result = await run(tool, f"print('before')\n{text}" if type_ != "SyntaxError" else text)
    assert failure(result) == (type_, line if type_ == "SyntaxError" else line + 1)
    assert result["stdout"] == ("" if type_ == "SyntaxError" else "before\n")


@both
async def test_a_long_message_is_cut(sandbox: str) -> None:
    async with code(sandbox) as tool:
        result = await run(tool, "raise ValueError('x' * 100_000)")
    assert len(result["error"]["message"]) == MAX_MESSAGE


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("import sys\nsys.exit(3)", "SystemExit", "3"),
        (
            "import os\nos._exit(0)",
            "SystemExit",
            "the program's process ended (exit code 0) before its result was there",
        ),
        ("import ctypes\nctypes.string_at(0)", "SystemError", "the program's process ended (exit code 139)"),
        ("import os\nos.write(3, b'{]')", "SystemExit", "before its result was there"),
        ("import os\nos.write(3, b'[' * 100_000)\nos._exit(0)", "SystemExit", "before its result was there"),
        ("class E(Exception):\n    def __str__(self):\n        raise self\nraise E", "E", ""),
    ],
    ids=["sys.exit", "os._exit", "a crash", "a spoilt report", "a deep report", "an exception that fails"],
)
async def test_a_process_that_ends_badly_is_a_result(text: str, type_: str, message: str) -> None:
    async with code("bubblewrap") as tool:
        result = await run(tool, text)
    assert result["error"]["type"] == type_
    assert message in result["error"]["message"]


@pytest.mark.bubblewrap
async def test_sys_exit_without_a_reason_is_no_failure_and_threads_are_not_waited_for() -> None:
    text = "import sys, threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\nsys.exit()"
    async with code("bubblewrap") as tool:
        assert await run(tool, text) == {"result": None, "stdout": "", "error": None}


@both
async def test_the_tool_refuses_what_cannot_be_run(sandbox: str) -> None:
    refused: list[tuple[dict[str, Json], str]] = [
        ({"code": " \n"}, "Calc.run: the code is empty"),
        ({"code": "1\0"}, "holds a NUL character"),
        ({"code": "'\ud800'"}, "half a surrogate pair"),
        ({"code": "1", "inputs": {"a": ["\ud800"]}}, "half a surrogate pair"),
        ({"code": "1" * 1_000_001}, "over 1,000,000 characters"),
        ({"code": "1", "inputs": {"no name": 1}}, "`no name` cannot be the name of a variable"),
        ({"code": "1", "class": 1}, "`class` cannot be the name of a variable"),
        ({"code": "1", "inputs": {"a": 1}, "a": 2}, "inputs has a, too"),
    ]
    async with code(sandbox) as tool:
        for args, message in refused:
            with pytest.raises(ToolError, match=message):
                await tool.call("run", args)
        with pytest.raises(ToolError, match="has no method `eval`"):
            await tool.call("eval", {"code": "1"})


@both
async def test_values_are_no_part_of_a_programs_text(sandbox: str) -> None:
    async with code(sandbox) as tool:
        for text in ("len('@')", "@ + 1", "x = 1 # @"):
            with pytest.raises(ToolError, match=r"would be run: at `.*\{\{…\}\}` write a name"):
                await written(tool, text, "print('ran')")
        assert (await written(tool, "@", "1 + 1"))["result"] == 2
        assert (await tool.call("run", {"code": WrittenText(("1 + 2",))}))["result"] == 3


# --- limits ---------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "text", ["while True:\n    pass", "import time\ntime.sleep(60)",
             "try:\n    while True: pass\nexcept BaseException: 1",
             "while True:\n    print('more')", "for _ in range(10**9):\n    sorted(range(1000))"],
    ids=["a loop", "a sleep", "a loop that catches", "a flood", "much work"],
)  # fmt: skip
async def test_time_ends_a_program(sandbox: str, text: str) -> None:
    async with code(sandbox, timeout="2s" if sandbox == "bubblewrap" else "400ms") as tool:  # its start takes time
        result = await run(tool, f"print('before')\n{text}")
        assert result["error"]["type"] == "TimeoutError"
        assert result["stdout"].startswith("before\n")
        assert len(result["stdout"]) < KEPT_BYTES + 100
        assert (await run(tool, "1 + 1"))["result"] == 2
    await until_gone()


@both
@pytest.mark.parametrize(
    "text", ["[0] * 10**9", "'a' * 10**9", "1 << 10**12", "x = [0]\nfor i in x:\n    x.append(i)", "'%0999999999d' % 1",
             "import itertools\nlist(itertools.count())"],
)  # fmt: skip
async def test_memory_is_bounded(sandbox: str, text: str) -> None:
    async with code(sandbox, memory=64, timeout="20s") as tool:
        assert failure(await run(tool, text))[0] == "MemoryError"
        assert (await run(tool, "1 + 1"))["result"] == 2


@both
@pytest.mark.parametrize("text", ["def f(n):\n    return f(n + 1)\nf(0)", "eval('(' * 100_000)", "(" * 50_000])
async def test_depth_is_bounded(sandbox: str, text: str) -> None:
    async with code(sandbox) as tool:
        assert failure(await run(tool, text))[0] in ("RecursionError", "SyntaxError", "MemoryError")
        assert (await run(tool, "1 + 1"))["result"] == 2


@both
async def test_long_results_and_output_are_cut_with_a_mark(sandbox: str) -> None:
    async with code(sandbox) as tool:
        text = await run(tool, "print('a' * 3_000_000)\n'b' * 2_000_000")
        listed = await run(tool, "list(range(1_000_000))")
    assert text["result"] == "b" * MAX_RESULT + "\n[… 1,000,000 more characters cut]"
    assert "[… 2,000,001 bytes left out]" in text["stdout"]
    assert listed["result"].startswith("[0, 1, 2,")
    assert listed["result"].endswith("more characters cut]")


def test_a_result_of_exactly_the_limit_is_whole() -> None:
    assert checked("x" * MAX_RESULT, "").result == "x" * MAX_RESULT
    assert checked(["x" * (MAX_RESULT - 4)], "").result == ["x" * (MAX_RESULT - 4)]
    assert isinstance(checked(["x" * (MAX_RESULT - 3)], "").result, str)


# --- the end --------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("text", ["while True:\n    pass", "while True:\n    print('more')"])
async def test_cancelling_ends_a_program(sandbox: str, text: str) -> None:
    async with code(sandbox, timeout="60s") as tool:
        task = asyncio.ensure_future(run(tool, text))
        await until_busy()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await run(tool, "1 + 1"))["result"] == 2
    await until_gone()


@both
async def test_cancelling_at_any_step_of_the_start_leaves_nothing(sandbox: str) -> None:
    for steps in range(8):
        async with code(sandbox, timeout="60s") as tool:
            task = asyncio.ensure_future(run(tool, "while True:\n    pass"))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    await until_gone()


@both
async def test_closing_twice_and_unused_is_no_error(sandbox: str) -> None:
    async with code(sandbox) as tool:
        await tool.close()
        assert (await run(tool, "1"))["result"] == 1
        await tool.close()
    assert not descendants()
