"""The `halo` command itself: usage, help, plug-in commands, bugs, streams."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint, version
from pathlib import Path

import click
import pytest

from halo_runtime.cli.group import BUILT_IN, PLUGINS
from halo_runtime.cli.main import main
from halo_runtime.version import __version__

Captured = pytest.CaptureFixture[str]


def test_the_version_is_that_of_the_package(capsys: Captured) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"halo {__version__}\n"
    assert version("halo-workbench") == __version__


def test_the_version_loads_neither_click_nor_metadata() -> None:
    code = "import sys\nfrom halo_runtime.cli.main import main\nmain(['--version'])\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"click", "importlib.metadata", "lark", "asyncio"} & set(done.stdout.split())


def test_help_lists_every_command(capsys: Captured) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in (*BUILT_IN, "edit"))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_command_explains_itself(name: str, capsys: Captured) -> None:
    assert main([name, "--help"]) == 0
    assert f"Usage: halo {name}" in capsys.readouterr().out


def test_without_arguments_and_terminal_help_goes_to_stderr(capsys: Captured) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: halo" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["chekc"], "no such command: chekc", "did you mean check?"),
        (["p.halo"], "no such command: p.halo", "to run a program: halo run p.halo"),
        (["run", "p.halo", "--no-inptu"], "--no-inptu", "halo run --help"),
        (["run"], "Missing argument 'FILE'", "halo run --help"),
        (["--bad"], "--bad", "halo --help"),
    ],
)
def test_wrong_usage_is_one_block_that_says_what_to_do(
    arguments: list[str], message: str, hint: str, capsys: Captured
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.endswith(f"  = hint: {hint}\n")


def test_wrong_usage_with_json_is_one_json_object(capsys: Captured) -> None:
    assert main(["run", "p.halo", "--json", "--bad"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["type"] == "UsageError"
    assert captured.err == ""


def plug_in(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    entry = EntryPoint("extra", value, PLUGINS)

    def found(group: str) -> list[EntryPoint]:
        return [entry] if group == PLUGINS else []

    monkeypatch.setattr("importlib.metadata.entry_points", found)


@click.command()
def extra() -> int:
    """A command of another package."""
    return 3


def test_a_command_of_another_package_is_found_by_name(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    plug_in(monkeypatch, f"{__name__}:extra")
    assert main(["extra"]) == 3
    main(["--help"])
    assert "A command of another package." in capsys.readouterr().out


def test_a_broken_command_of_another_package_harms_no_other(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    plug_in(monkeypatch, "no_such_module:extra")
    assert main(["--help"]) == 0
    assert main(["extra", "--whatever"]) == 2
    assert "cannot be loaded: No module named 'no_such_module'" in capsys.readouterr().err


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: str) -> None:
        raise ZeroDivisionError("the key is sk-secret-123456")

    monkeypatch.setenv("SOME_API_KEY", "sk-secret-123456")
    monkeypatch.setattr("halo_runtime.cli.check.analyse", fail)


def test_a_bug_is_reported_as_one_without_traceback_and_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path
) -> None:
    broken(monkeypatch)
    (tmp_path / "p.halo").touch()
    assert main(["check", str(tmp_path / "p.halo")]) == 1
    assert capsys.readouterr().err.startswith(
        "error: this is a bug in halo: ZeroDivisionError: the key is [REDACTED]\n"
    )


def test_the_traceback_is_there_for_those_who_ask(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path
) -> None:
    broken(monkeypatch)
    monkeypatch.setenv("HALO_DEBUG", "1")
    (tmp_path / "p.halo").touch()
    assert main(["check", str(tmp_path / "p.halo"), "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["type"] == "InternalError"
    assert "Traceback" in captured.err
    assert "sk-secret" not in captured.err
