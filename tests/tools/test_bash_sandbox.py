"""`Bash(sandbox: true)` in a real bubblewrap: what commands see, can change and can reach."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from halo_runtime.tools.shell.bash import Shell
from tests.tools.test_bash import NAP, commands_left, names_in, run, until_there

MADE = Path("/usr/halo-was-here")

pytestmark = pytest.mark.bubblewrap


def sandbox(folder: Path, *, timeout: float = 30.0, **env: str) -> Shell:
    return Shell("Sh", folder, timeout=timeout, env={"PATH": os.environ["PATH"], **env}, sandbox=True)


def remove(path: Path) -> None:
    path.unlink(missing_ok=True)


async def test_commands_can_change_their_folder_and_see_the_systems_programs(tmp_path: Path) -> None:
    result = await run(sandbox(tmp_path), "echo @ > made; sort made; pwd; echo $HOME", "hi")
    assert (result["exitCode"], result["stdout"]) == (0, f"hi\n{tmp_path}\n/tmp\n")
    assert (tmp_path / "made").read_text() == "hi\n"


@pytest.mark.parametrize("command", ["cat '@'", "ln -s '@' way; cat way", "ls '@'/..", "cat /proc/1/root'@'"])
async def test_other_files_are_not_there(tmp_path: Path, command: str) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret").write_text("zq-9876")
    result = await run(sandbox(tmp_path / "inside"), command, str(tmp_path / "secret"))
    assert "zq-9876" not in result["stdout"]
    assert result["exitCode"] != 0


@pytest.mark.parametrize(
    "command",
    [
        "touch /usr/halo-was-here",
        "mount -o remount,bind,rw /usr; touch /usr/halo-was-here",
        "unshare -Urm sh -c 'mount -o remount,bind,rw /usr; touch /usr/halo-was-here'",
    ],
)
async def test_nothing_of_the_system_can_be_changed_not_even_by_root(tmp_path: Path, command: str) -> None:
    try:
        assert (await run(sandbox(tmp_path), command))["exitCode"] != 0
        assert MADE.name not in names_in(MADE.parent)
    finally:
        remove(MADE)


async def test_commands_have_no_rights_beyond_their_own(tmp_path: Path) -> None:
    result = await run(sandbox(tmp_path), "grep CapEff /proc/self/status")
    assert result["stdout"].split() == ["CapEff:", "0000000000000000"]


async def test_there_is_no_network(tmp_path: Path) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        place = f"/dev/tcp/127.0.0.1/{server.sockets[0].getsockname()[1]}"
        assert (await run(Shell("Sh", tmp_path), f"exec 3<>{place}"))["exitCode"] == 0
        assert (await run(sandbox(tmp_path), f"exec 3<>{place}"))["exitCode"] != 0


async def test_other_processes_are_not_seen(tmp_path: Path) -> None:
    result = await run(sandbox(tmp_path), "cat /proc/[0-9]*/comm")
    assert "cat" in result["stdout"]
    assert set(result["stdout"].split()) <= {"bwrap", "bash", "cat"}


async def test_variables_are_the_tools_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALO_CANARY", "zq-9876")
    result = await run(sandbox(tmp_path, GIVEN="yes"), "env; cat /proc/1/environ")
    assert "GIVEN=yes" in result["stdout"]
    assert "zq-9876" not in result["stdout"]


async def test_time_ends_what_a_sandbox_holds(tmp_path: Path) -> None:
    result = await run(sandbox(tmp_path, timeout=0.5), f"trap '' TERM; setsid {NAP} & {NAP}")
    assert result["timedOut"] is True
    assert commands_left() == []


async def test_cancelling_ends_what_a_sandbox_holds(tmp_path: Path) -> None:
    task = asyncio.ensure_future(run(sandbox(tmp_path), f"touch up; setsid {NAP} & {NAP}"))
    await until_there(tmp_path / "up")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert commands_left() == []
    assert names_in(tmp_path) == ["up"]


async def test_probing_says_that_the_sandbox_works(tmp_path: Path) -> None:
    assert await sandbox(tmp_path).probe() == f"bash works in its sandbox, in {tmp_path}"
