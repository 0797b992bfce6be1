"""Optional parts of an installation: what is missing is told before anything runs, with the line that installs it."""

from __future__ import annotations

import json
import tomllib
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import halo_lang
from halo_lang import catalog
from halo_runtime import extras
from halo_runtime.cli.main import main
from halo_runtime.errors import ConfigError
from halo_runtime.tools import tool_factory

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """policy Speech : Language("en")
tool Files : MCP("server")
tool More : MCP("another")
store Docs : Documents("papers")

agent Bot [openai/gpt-4o-mini]
  equips Files, More, Docs
  requires Speech

pipeline Main(text: String) -> Result:
  text |> Bot.answer(tools: none)
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare installation but for the documents."""

    def find(package: str) -> ModuleSpec | None:
        return ModuleSpec(package, None) if package in extras.PACKAGES["documents"] else None

    monkeypatch.setattr(extras, "find_spec", find)


def test_the_project_file_has_them_all() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(extras.PACKAGES) == set(project["optional-dependencies"]) - {"all", "dev", "docs", "bench"}


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ('"postgresql://localhost/shop"', ["postgres"]),
        ('readOnly: false, url: "postgres://localhost/shop"', ["postgres"]),
        ('"sqlite:///shop.db"', []),
        ("Env.DATABASE_URL", []),
    ],
)
def test_an_extra_may_depend_on_a_setting(bare: None, settings: str, needed: list[str]) -> None:
    found = extras.lacking(halo_lang.parse(f"tool Shop : SQL({settings})\n"))
    assert [lacking.extra for lacking in found] == needed


def test_every_extra_of_the_catalogue_is_known() -> None:
    asked = {entry.extra for entry in (*catalog.providers(), *catalog.rules())} - {None}
    asked |= {entry.extra_where[0] for entry in catalog.providers() if entry.extra_where is not None}
    assert asked <= set(extras.PACKAGES)


def test_what_is_lacking_names_the_declarations(bare: None) -> None:
    found = extras.lacking(halo_lang.parse(PROGRAM))
    assert [(lacking.extra, lacking.needed_by) for lacking in found] == [
        ("language", ("policy Speech : Language",)),
        ("mcp", ("tool Files : MCP", "tool More : MCP")),
    ]


def test_a_package_in_a_package_that_is_missing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extras.PACKAGES, "otel", ("no_such_parent.child",))
    assert not extras.is_installed("otel")


def test_check_says_it_and_does_not_fail(
    bare: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.halo").write_text(PROGRAM, "utf-8")
    assert main(["check", "p.halo"]) == 0
    assert (
        "note: p.halo: tool Files : MCP, tool More : MCP need the extra `mcp`, which is not installed:"
        " pip install 'halo-workbench[mcp]'"
    ) in capsys.readouterr().out
    assert main(["check", "p.halo", "--json"]) == 0
    language, mcp = json.loads(capsys.readouterr().out)["files"][0]["lacking"]
    assert language["install"] == "pip install 'halo-workbench[language]'"
    install = "pip install 'halo-workbench[mcp]'"
    assert mcp == {"extra": "mcp", "install": install, "neededBy": ["tool Files : MCP", "tool More : MCP"]}


@pytest.mark.parametrize("provider", ["Documents"])
def test_a_tool_whose_extra_is_missing_is_refused(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda package: None)
    with pytest.raises(ConfigError, match=rf"^{provider} needs the extra `\w+`, .*: pip install 'halo-workbench\["):
        tool_factory(provider)
