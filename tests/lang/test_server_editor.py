"""The language server in a real editor: Neovim, set up as the documentation says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import Terminal

pytestmark = [pytest.mark.terminal, pytest.mark.neovim]

PROGRAM = """\
tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/shop")
tool Desk : GitHub(Env.GITHUB_TOKEN, repo: "acme/desk")

agent Reviewer [openai/gpt-4o-mini]
  system "You read changes and find mistakes."
  equips Repo

pipeline Review(change: String) -> Result:
  change
    |> Reviewer.find_mistakes("Reply with JSON: {\\"count\\": number}") as found
    |? (context.data.found.count > 0)
    |> Reviewer.explain("Explain {{context.data.found}}")
"""


def settings(page: str) -> str:
    """The page's Lua for the version of Neovim that is there: the first block is for 0.11 and later."""
    told = subprocess.run(["nvim", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v(\d+)\.(\d+)", told)
    assert version is not None
    modern, old = re.findall(r"^```lua\n(.*?)^```$", page, re.M | re.S)
    return modern if (int(version[1]), int(version[2])) >= (0, 11) else old


@pytest.fixture
def neovim(tmp_path: Path, root: Path) -> Iterator[Terminal]:
    """Neovim with the program, once the server has said that the tool Desk is never used."""
    (tmp_path / "review.halo").write_text(PROGRAM)
    (tmp_path / "init.lua").write_text(settings((root / "docs/how-to/editors.md").read_text("utf-8")))
    opened = Terminal(tmp_path)
    try:
        path = f"{Path(sys.executable).parent}:$PATH"
        opened.type(f'PATH="{path}" HOME="{tmp_path}" nvim --clean -u init.lua -n review.halo', "Enter")
        opened.until("tool `Desk` is never used")
        yield opened
    finally:
        opened.close()


def test_diagnostics_appear_as_one_types(neovim: Terminal) -> None:
    neovim.type("11G", "f>", "r=")
    neovim.until("conditions have no `=`")
    neovim.type("a=", "Escape")
    neovim.until_gone("conditions have no `=`")


def test_a_code_action_mends_a_single_equals_sign_in_a_condition(neovim: Terminal) -> None:
    neovim.type("11G", "f>", "r=")
    neovim.until("conditions have no `=`")
    neovim.type("gra")
    neovim.until("1: Replace `=` by `==`")
    neovim.type("1", "Enter")
    neovim.until("(context.data.found.count == 0)")
    neovim.until_gone("conditions have no `=`")


def test_behind_equips_the_only_tool_that_is_left_is_written(neovim: Terminal) -> None:
    neovim.type("6G", "A")
    neovim.write(", ")
    neovim.type("C-x", "C-o")
    neovim.until("equips Repo, Desk")
    neovim.type("Escape")
    neovim.until_gone("never used")


def test_behind_context_data_the_results_are_offered(neovim: Terminal) -> None:
    neovim.type("11G", "f(", "a")
    neovim.write("context.data.")
    neovim.type("C-x", "C-o")
    neovim.until("context.data.foundcontext.data.found.count")


def test_a_rename_reaches_conditions_and_templates(neovim: Terminal) -> None:
    neovim.type("10G", "$", "grn")
    neovim.until("New Name: found")
    neovim.type("C-u")
    neovim.write("mistakes")
    neovim.type("Enter")
    neovim.until("as mistakes")
    neovim.until("(context.data.mistakes.count > 0)")
    neovim.until("Explain {{context.data.mistakes}}")


def test_a_hover_shows_what_a_name_is(neovim: Terminal) -> None:
    neovim.type("10G", "fR", "K")
    neovim.until("agent Reviewer [openai/gpt-4o-mini]")


def test_the_server_ends_with_the_editor(neovim: Terminal) -> None:
    server = subprocess.run(["pgrep", "-P", str(neovim.child())], capture_output=True, text=True, check=True)
    neovim.type(":qa!", "Enter")
    neovim.until_ended(int(server.stdout))
