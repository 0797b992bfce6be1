"""Every test runs as on an empty machine: a home of its own, no keys of services, no colours, one order of examples."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("halo", derandomize=True, deadline=None, max_examples=60, print_blob=False)
settings.load_profile("halo")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _empty_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's own settings or keys reaches a test, nor a command that a test starts."""
    for name in os.environ:
        if name.endswith(("_API_KEY", "_BASE_URL", "_TOKEN")) or name.startswith("HALO_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's top folder."""
    return ROOT
