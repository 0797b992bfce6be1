"""Bash runs what programs write, and of what agents choose only what is allowed; nothing outlives its call."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.json_types import JsonObject
from halo_runtime.templates import WrittenText
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.excerpt import KEPT_BYTES
from halo_runtime.tools.shell.bash import Shell, open_shell

NAP = f"sleep 31.{os.getpid()}"
"""A command that no other test runs, so that one can look for what is left of it."""
ENV = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


def shell(folder: Path, *, allow: tuple[str, ...] = (), timeout: float = 30.0, grace: float = 5.0) -> Shell:
    return Shell("Sh", folder, allow=allow, timeout=timeout, env=ENV, grace=grace)


async def run(tool: Shell, command: str, *values: str) -> JsonObject:
    """Run what a program says, `@` for each value."""
    return await tool.call("run", {"command": WrittenText(tuple(command.split("@")), values)})


async def choose(tool: Shell, command: str) -> JsonObject:
    """Run what an agent chose."""
    return await tool.call("run", {"command": command})


async def until_there(path: Path) -> None:
    """Wait for a command to make a file."""
    async with asyncio.timeout(20):
        while path.name not in names_in(path.parent):  # noqa: ASYNC110 - it is another process that makes it
            await asyncio.sleep(0.005)


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def children() -> set[int]:
    """The processes that this one has started and has still to be told the end of, zombies among them."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            found |= {int(entry.name)} if int(parent) == os.getpid() else set()
    return found


def commands_left() -> list[bytes]:
    """The commands of this test's processes that are still there; a zombie has no command any more."""
    found: list[bytes] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                text = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if NAP.split()[1].encode() in text:
                found.append(text)
    return found


# --- what the program says --------------------------------------------------------------------------------------


async def test_a_command_gives_its_exit_code_and_both_streams(tmp_path: Path) -> None:
    assert await run(shell(tmp_path), "echo out; echo err >&2; exit 3") == {
        "exitCode": 3,
        "stdout": "out\n",
        "stderr": "err\n",
        "timedOut": False,
    }


async def test_a_value_in_a_command_is_one_word(tmp_path: Path) -> None:
    result = await run(shell(tmp_path), "printf '[%s]' @ '<@>'", "a b; touch made", "it's")
    assert result["stdout"] == "[a b; touch made][<it's>]"
    assert names_in(tmp_path) == []


async def test_a_value_that_is_all_of_the_command_is_the_command(tmp_path: Path) -> None:
    result = await run(shell(tmp_path), "@", "echo one && echo two > made")
    assert result["stdout"] == "one\n"
    assert (tmp_path / "made").read_text() == "two\n"


async def test_a_command_may_begin_with_a_dash(tmp_path: Path) -> None:
    assert (await run(shell(tmp_path), "-x"))["exitCode"] == 127


async def test_a_command_reads_no_input(tmp_path: Path) -> None:
    assert (await run(shell(tmp_path), "cat; echo end"))["stdout"] == "end\n"


async def test_what_is_no_utf8_is_replaced(tmp_path: Path) -> None:
    assert (await run(shell(tmp_path), r"printf 'a\377\000é'"))["stdout"] == "a\ufffd\0é"


async def test_a_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    assert (await run(shell(tmp_path), "kill -9 $$"))["exitCode"] == -9


async def test_commands_run_side_by_side(tmp_path: Path) -> None:
    tool = shell(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    reader, writer = await asyncio.gather(run(tool, "cat pipe"), run(tool, "echo met > pipe"))
    assert (reader["stdout"], writer["exitCode"]) == ("met\n", 0)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (WrittenText(("",)), "the command is empty"),
        (WrittenText(("", ""), (" \n",)), "the command is empty"),
        (WrittenText(("echo ", ""), ("a\0b",)), "NUL"),
        (WrittenText(("", ""), ("a\0b",)), "NUL"),
        (WrittenText(("echo ", ""), ("\ud800",)), "Unicode"),
        (WrittenText(("echo ", ""), ("x" * 200_000,)), "too long"),
        (WrittenText(("", ""), ("#" + "x" * 200_000,)), "too long"),
        (WrittenText(("eval ", ""), ("x",)), "`eval` would read the value as code"),
    ],
)
async def test_what_cannot_be_run_is_refused_in_words(tmp_path: Path, command: str, message: str) -> None:
    with pytest.raises(ToolError, match=message) as caught:
        await shell(tmp_path).call("run", {"command": command})
    assert caught.value.message.startswith("Sh.run: ")
    assert len(caught.value.message) < 400


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"there is no folder .*nowhere"):
        await run(shell(tmp_path / "nowhere"), "true")


async def test_a_machine_without_bash_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str, path: str | None = None) -> None:
        """No command is there."""

    monkeypatch.setattr("shutil.which", nothing)
    with pytest.raises(ToolError, match="bash is not installed"):
        await run(shell(tmp_path), "true")


async def test_there_is_no_other_method(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no method `start`"):
        await shell(tmp_path).call("start", {})


# --- what agents choose -----------------------------------------------------------------------------------------


async def test_an_agent_may_run_nothing_without_allow(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="allow"):
        await choose(shell(tmp_path), "true")


async def test_an_allowed_command_gets_its_words_as_they_are(tmp_path: Path) -> None:
    result = await choose(shell(tmp_path, allow=("printf",)), "printf [%s] 'a; b' \"$(c) \\\" '\" $HOME *.py x\\ y #z")
    assert result["stdout"] == "[a; b][$(c) \" '][$HOME][*.py][x y][#z]"


@pytest.mark.parametrize("command", ["touch made", "/bin/echo hi", "./echo", "X=1 echo", "'' echo", "echo2", "ec*"])
async def test_only_the_names_in_allow_may_be_run(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolError, match="an agent may run echo with this tool, not"):
        await choose(shell(tmp_path, allow=("echo",)), command)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    "command",
    ["echo a; touch made", "echo a && touch made", "echo a > made", "echo $(touch made)", "echo `touch made`",
     "echo a | tee made", "echo <(touch made)", "echo a\ntouch made", "(echo a)", "echo a\r\ntouch made", "echo a &"],
)  # fmt: skip
async def test_what_only_a_shell_could_do_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolError, match="no shell reads this command"):
        await choose(shell(tmp_path, allow=("echo",)), command)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("command", ["echo 'a", 'echo "a', "echo a\\"])
async def test_open_quotes_are_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolError, match="not closed"):
        await choose(shell(tmp_path, allow=("echo",)), command)


async def test_a_star_allows_any_command_through_bash(tmp_path: Path) -> None:
    assert (await choose(shell(tmp_path, allow=("*",)), "echo hi > f && cat f"))["stdout"] == "hi\n"


async def test_an_allowed_command_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no-such-command is not installed"):
        await choose(shell(tmp_path, allow=("no-such-command",)), "no-such-command")


# --- the environment --------------------------------------------------------------------------------------------


async def test_commands_see_the_variables_of_the_tool_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "zq-1234-key")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "env.sh"))
    (tmp_path / "env.sh").write_text("echo started")
    config = ToolConfig("Sh", "Bash", {"allow": ["env"]}, tmp_path, {**ENV, "GIVEN": "yes"})
    names = {line.partition("=")[0] for line in (await choose(open_shell(config), "env"))["stdout"].splitlines()}
    assert names == {"PATH", "HOME", "GIVEN", "HALO_COMMAND"}


async def test_a_declaration_sets_folder_and_time(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    settings = {"cwd": "inner", "timeout": "1ms"}
    config = ToolConfig("Sh", "Bash", settings, tmp_path, ENV)
    tool = tool_factory("Bash")(config)
    assert (await tool.call("run", {"command": WrittenText((NAP,))}))["timedOut"] is True
    config = ToolConfig("Sh", "Bash", {"cwd": "inner"}, tmp_path, ENV)
    result = await open_shell(config).call("run", {"command": WrittenText(("pwd",))})
    assert result["stdout"] == f"{(tmp_path / 'inner').resolve()}\n"


def sandboxed(folder: Path, bwrap: str | None) -> Shell:
    """A shell in a sandbox, on a machine whose bubblewrap is this script."""
    (folder / "bash").symlink_to("/bin/bash")
    if bwrap is not None:
        (folder / "bwrap").write_text(f"#!/bin/bash\n{bwrap}\n")
        (folder / "bwrap").chmod(0o755)
    return Shell("Sh", folder, env={"PATH": str(folder)}, sandbox=True)


async def test_a_sandbox_without_bubblewrap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="needs bubblewrap; install it"):
        await run(sandboxed(tmp_path, None), "true")


async def test_a_sandbox_that_does_not_work_is_no_failure_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"bubblewrap does not work on this machine, .*: no namespaces"):
        await run(sandboxed(tmp_path, "echo no namespaces >&2; exit 1"), "true")


async def test_a_sandbox_gives_its_folder_and_no_network(tmp_path: Path) -> None:
    tool = sandboxed(tmp_path, 'echo "$@"; [ "${@: -1}" = true ] || exit 5')
    result = await run(tool, "echo @", "hi")
    assert result["exitCode"] == 5
    assert "--unshare-all" in result["stdout"]
    assert f"--bind {tmp_path} {tmp_path} --chdir {tmp_path} -- {tmp_path}/bash" in result["stdout"]


# --- the end of processes ---------------------------------------------------------------------------------------

TREE = f"{NAP} & ({NAP} & {NAP}) & echo up; wait"


async def test_time_ends_a_command_with_all_that_it_started(tmp_path: Path) -> None:
    result = await run(shell(tmp_path, timeout=0.2), TREE)
    assert (result["timedOut"], result["exitCode"], result["stdout"]) == (True, -15, "up\n")
    assert commands_left() == []


async def test_what_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    command = f"trap '' TERM; echo up; while true; do {NAP}; done"
    result = await run(shell(tmp_path, timeout=0.2, grace=0.2), command)
    assert (result["timedOut"], result["exitCode"]) == (True, -9)
    assert commands_left() == []


async def test_a_command_may_clean_up_after_itself(tmp_path: Path) -> None:
    command = f"trap 'echo cleaned; exit 7' TERM; {NAP} & wait"
    result = await run(shell(tmp_path, timeout=0.2), command)
    assert (result["timedOut"], result["exitCode"], result["stdout"]) == (True, 7, "cleaned\n")


async def test_nothing_outlives_a_command_that_ended_by_itself(tmp_path: Path) -> None:
    result = await run(shell(tmp_path), f"{NAP} & echo done")
    assert (result["stdout"], result["timedOut"]) == ("done\n", False)
    assert commands_left() == []


async def test_a_process_that_left_the_group_is_found(tmp_path: Path) -> None:
    await run(shell(tmp_path), f"setsid sh -c 'touch up; exec {NAP}' & until [ -e up ]; do :; done")
    assert commands_left() == []


async def test_cancelling_ends_all_processes_before_it_is_passed_on(tmp_path: Path) -> None:
    task = asyncio.ensure_future(run(shell(tmp_path), f"touch up; {TREE}"))
    await until_there(tmp_path / "up")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert commands_left() == []


async def test_cancelling_twice_leaves_nothing_either(tmp_path: Path) -> None:
    task = asyncio.ensure_future(run(shell(tmp_path, grace=0.2), f"trap '' TERM; touch up; {NAP}; {NAP}"))
    await until_there(tmp_path / "up")
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert commands_left() == []


async def test_a_command_cancelled_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    for steps in range(12):
        task = asyncio.ensure_future(run(shell(tmp_path), NAP))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert commands_left() == []


async def test_no_zombies_and_no_open_files_are_left(tmp_path: Path) -> None:
    tool = shell(tmp_path, timeout=0.05)
    await run(tool, "true")
    before, others = len(names_in(Path("/dev/fd"))), children()
    for command in ("true", NAP, "exit 3", f"{NAP} & true"):
        await run(tool, command)
    with pytest.raises(ToolError):
        await choose(shell(tmp_path, allow=("no-such-command",)), "no-such-command")
    await asyncio.sleep(0)  # pipes are closed in the loop's next turn
    assert len(names_in(Path("/dev/fd"))) == before
    assert children() <= others


# --- much output ------------------------------------------------------------------------------------------------


async def test_long_output_loses_its_middle_with_a_mark(tmp_path: Path) -> None:
    result = await run(shell(tmp_path), "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo last")
    text = result["stdout"]
    assert text.startswith("first\nxx")
    assert text.endswith("xxlast\n")
    assert "[… 4,000,011 bytes left out]" in text
    assert len(text) < KEPT_BYTES + 100


async def test_output_of_exactly_the_limit_is_whole(tmp_path: Path) -> None:
    result = await run(shell(tmp_path), f"head -c {KEPT_BYTES} /dev/zero | tr '\\0' x")
    assert result["stdout"] == "x" * KEPT_BYTES


async def test_an_endless_flood_ends_with_the_time(tmp_path: Path) -> None:
    result = await run(shell(tmp_path, timeout=0.3), "yes")
    assert result["timedOut"] is True
    assert result["stdout"].startswith("y\ny\n")
    assert len(result["stdout"]) < KEPT_BYTES + 100


async def test_both_streams_may_be_full_at_once(tmp_path: Path) -> None:
    result = await run(shell(tmp_path), "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; exit 0")
    assert (len(result["stdout"]), len(result["stderr"])) == (300000, 300000)
