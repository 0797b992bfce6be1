"""No way leads out of the sandboxes of Code: no files, network, processes, variables, and no more than the limits."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import sys
from pathlib import Path

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.code.provider import open_code
from halo_runtime.tools.code.seccomp import filter_for
from tests.tools.coding import (
    SANDBOXES,
    code,
    descendants,
    environment,
    failure,
    names_in,
    pass_over_others,
    run,
    until_busy,
    until_gone,
)

CANARY = "zq-9876-canary"
both = pytest.mark.parametrize("sandbox", SANDBOXES)
real = pytest.mark.bubblewrap

REFUSED = (
    "PermissionError",
    "FileNotFoundError",
    "OSError",
    "ModuleNotFoundError",
    "AttributeError",
    "NameError",
    "RuntimeError",
)
"""What a way that does not lead anywhere raises: Monty has no such module, CPython is told no by the system."""


@pytest.fixture(autouse=True)
def _alone() -> None:
    pass_over_others()


@both
@pytest.mark.parametrize(
    "text",
    [
        "open('/etc/passwd').read()",
        "open('/proc/1/environ').read()",
        "open('/proc/self/environ').read()",
        "open('/proc/self/maps').read()",
        "open('{secret}').read()",
        "from pathlib import Path\nPath('{secret}').read_text()",
        "import os\nos.listdir('{folder}')",
        "import os\nos.symlink('{secret}', '/tmp/way')\nopen('/tmp/way').read()",
        "import os\nos.symlink('{secret}', 'way')\nopen('way').read()",
        "import os\nos.chroot('/')",
        "open('/tmp/made', 'w').write('x')",
        "open('made', 'w').write('x')",
        "open('/dev/shm/made', 'w').write('x')",
        "open('{folder}/made', 'w').write('x')",
        "import os\nos.mkdir('/made')",
        "import os\nos.remove('{secret}')",
        "import tempfile\ntempfile.mkstemp()",
        "import os\nos.memfd_create('made')",
    ],
)
async def test_there_are_no_files(sandbox: str, text: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    async with code(sandbox) as tool:
        result = await run(tool, text.replace("{secret}", str(secret)).replace("{folder}", str(tmp_path)))
    assert failure(result)[0] in REFUSED, result
    assert CANARY not in str(result)
    assert names_in(tmp_path) == ["secret"]


@both
@pytest.mark.parametrize(
    "text",
    [
        "import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=5)",
        "import socket\nsocket.socket(socket.AF_UNIX)",
        "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}/', timeout=5)",
        "import ctypes\nif ctypes.CDLL(None).socket(2, 1, 0) < 0:\n    raise OSError('no')",
    ],
)
async def test_there_is_no_network(sandbox: str, text: str) -> None:
    called: list[object] = []
    server = await asyncio.start_server(lambda _, writer: called.append(writer.close()), "127.0.0.1", 0)
    async with server, code(sandbox) as tool:
        result = await run(tool, text.replace("{port}", str(server.sockets[0].getsockname()[1])))
    assert failure(result)[0] in (*REFUSED, "URLError"), result
    assert called == []


@both
@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.fork()",
        "import os\nfor _ in range(1000):\n    if os.fork() == 0:\n        os._exit(0)",
        "import os\nos.posix_spawn('/bin/sh', ['sh'], {})",
        "import subprocess\nsubprocess.run(['true'])",
        "import subprocess\nsubprocess.Popen('sleep 60', shell=True, start_new_session=True)",
        "import multiprocessing\nmultiprocessing.Process(target=print).start()",
        "import os\nif os.system('true') != 0:\n    raise OSError('no')",
        "import os\nos.kill(1, 9)\nos.kill(os.getppid(), 9)\nos.execv('/bin/sh', ['sh'])",
        "import threading, time\nfor _ in range(100_000):\n    threading.Thread(target=time.sleep, args=(60,)).start()",
    ],
    ids=["fork", "many forks", "spawn", "run", "shell", "multiprocessing", "system", "exec", "thread bomb"],
)
async def test_there_is_one_process_with_few_threads(sandbox: str, text: str) -> None:
    async with code(sandbox, timeout="20s") as tool:
        assert failure(await run(tool, text))[0] in REFUSED
        assert (await run(tool, "1 + 1"))["result"] == 2
    await until_gone()


@both
async def test_variables_hold_nothing_of_ours(sandbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALO_CANARY", CANARY)
    config = ToolConfig(
        "Calc",
        "Code",
        {"sandbox": sandbox, "timeout": "60s"},
        Path("/"),
        {"HALO_CANARY": CANARY, "PATH": os.environ["PATH"]},
    )
    tool = open_code(config)
    try:
        assert CANARY not in repr(await run(tool, "import os\ndict(os.environ)"))
        task = asyncio.ensure_future(run(tool, "while True:\n    pass"))
        await until_busy()
        # Not even around the program, where a flaw of the sandbox would find it.
        for process in descendants():
            assert CANARY.encode() not in environment(process)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        await tool.close()


@real
async def test_variables_are_the_few_that_the_sandbox_sets() -> None:
    async with code("bubblewrap") as tool:
        names = (await run(tool, "import os\nsorted(os.environ)"))["result"]
    assert set(names) <= {"HOME", "LANG", "LC_CTYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PWD"}


@real
@pytest.mark.parametrize(
    "call",
    [
        "unshare(0x10000000)", "setns(0, 0)", "mount(0, b'/', 0, 0, 0)", "umount2(b'/', 2)", "ptrace(0, 0, 0, 0)",
        "syscall({clone3}, 0, 0)", "syscall({io_uring}, 1, 0)", "chroot(b'/')",
    ],
)  # fmt: skip
async def test_the_kernel_is_asked_for_nothing_that_programs_have_no_use_for(call: str) -> None:
    text = f"import ctypes\nctypes.CDLL(None, use_errno=True).{call.format(clone3=435, io_uring=425)}"
    async with code("bubblewrap") as tool:
        assert (await run(tool, text))["result"] == -1


@real
async def test_a_program_has_no_rights_and_cannot_raise_its_limits() -> None:
    text = (
        "import ctypes, resource\nrefused = []\n"
        "for kind in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):\n"
        "    try:\n        resource.setrlimit(kind, (1 << 40, 1 << 40))\n"
        "    except (ValueError, PermissionError):\n        refused.append(kind)\n"
        "head, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()\n"
        "ctypes.CDLL(None).capget(head, data)\n[len(refused), list(data)[:2]]"
    )
    async with code("bubblewrap") as tool:
        assert (await run(tool, text))["result"] == [4, [0, 0]]


@real
async def test_open_files_are_bounded_and_none_of_ours_is_among_them(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(CANARY)
    text = (
        "import os\nkept, told = [], []\nfor number in range(3, 1000):\n"
        "    try:\n        os.fstat(number)\n        told.append(number)\n    except OSError:\n        pass\n"
        "try:\n    while True:\n        kept.append(open('/dev/null'))\n"
        "except OSError as error:\n    told.append(len(kept) < 70)\ntold"
    )
    with (tmp_path / "secret").open() as file:
        os.set_inheritable(file.fileno(), True)
        async with code("bubblewrap") as tool:
            assert (await run(tool, text))["result"] == [3, True]  # the report, and nothing else


@real
async def test_what_a_program_says_of_itself_is_not_believed() -> None:
    report = '{{"result": null, "problem": {{"type": "{0}", "message": "{0}", "line": "x"}}}}'.format("y" * 10_000)
    async with code("bubblewrap") as tool:
        result = await run(tool, f"import os\nos.write(3, {report.encode()!r})\nos._exit(0)")
        assert {name: len(result["error"][name]) for name in ("type", "message")} == {"type": 2000, "message": 2000}
        assert result["error"]["line"] is None
        deep = "'[' * 150_000 + ']' * 150_000"
        text = f"import os\nos.write(3, ('{{\"problem\": null, \"result\": ' + {deep} + '}}').encode())\nos._exit(0)"
        assert failure(await run(tool, text)) == ("SystemExit", None)


@real
async def test_installed_packages_can_be_imported() -> None:
    async with code("bubblewrap") as tool:
        assert (await run(tool, "import pydantic_monty, lark\nlark.__name__"))["result"] == "lark"


# --- where there is no sandbox --------------------------------------------------------------------------------------


def confined(folder: Path, script: str | None) -> ToolConfig:
    """On a machine whose bubblewrap is this script."""
    if script is not None:
        (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bwrap").chmod(0o755)
    return ToolConfig("Calc", "Code", {"sandbox": "bubblewrap"}, folder, {"PATH": str(folder)})


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (None, "the sandbox needs bubblewrap; install it (the command bwrap: `apt install bubblewrap`)"),
        ("echo No permissions to create new namespace >&2; exit 1",
         "bubblewrap does not work on this machine, so nothing was run: No permissions to create new namespace"),
        ("exit 3", "so nothing was run: exit code 3"),
    ],
)  # fmt: skip
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
async def test_without_a_sandbox_nothing_runs(tmp_path: Path, script: str | None, told: str) -> None:
    tool = open_code(confined(tmp_path, script))
    with pytest.raises(ToolError) as caught:
        await tool.call("run", {"code": "open('/tmp/made', 'w')"})
    assert caught.value.message.startswith("Calc.run: ")
    assert told in caught.value.message
    with pytest.raises(ToolError, match="Calc: "):
        await tool.probe()


async def test_without_montys_worker_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    async with code("monty") as tool:
        with pytest.raises(ToolError, match=r"Calc\.run: Monty's worker .* is not there; install pydantic-monty anew"):
            await run(tool, "1")
        (tmp_path / "monty").write_text("#!/bin/sh\nexit 3\n")
        (tmp_path / "monty").chmod(0o755)
        result = await run(tool, "1")
        assert failure(result) == ("SystemError", None)
        assert "the program's process died" in result["error"]["message"]
        with pytest.raises(ToolError, match="Calc: the sandbox does not work here: SystemError"):
            await tool.probe()


async def test_a_worker_that_is_killed_is_replaced() -> None:
    async with code("monty", timeout="60s") as tool:
        task = asyncio.ensure_future(run(tool, "while True:\n    pass"))
        await until_busy()
        for process in descendants():
            os.kill(process, signal.SIGKILL)
        assert failure(await task) == ("SystemError", None)
        assert (await run(tool, "1 + 1"))["result"] == 2


async def test_a_machine_whose_calls_are_not_known_has_no_sandbox(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(ToolError, match="needs Linux on x86-64 or ARM64"):
        await open_code(confined(tmp_path, "exit 0")).call("run", {"code": "1"})


@both
async def test_probing_runs_a_program(sandbox: str) -> None:
    tool = open_code(ToolConfig("Calc", "Code", {"sandbox": sandbox}, Path("/"), {"PATH": os.environ["PATH"]}))
    try:
        assert await tool.probe() == "the sandbox works"
    finally:
        await tool.close()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_filter_ends_in_a_verdict_whatever_is_called(machine: str) -> None:
    rules = filter_for(machine)
    assert rules is not None
    steps = list(struct.iter_unpack("<HBBI", rules))
    for number, (code_, yes, no, _) in enumerate(steps):
        if code_ & 0x07 == 0x05:  # a jump stays inside
            assert number + 1 + max(yes, no) < len(steps)
    assert steps[-1][0] == 0x06
    assert filter_for("m68k") is None
