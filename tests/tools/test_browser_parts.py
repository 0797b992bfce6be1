"""Browsers without a browser: which addresses are opened, which browser is found, what is most alike (spec 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from halo_lang import catalog
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.browser.actions import ACTIONS, page_address
from halo_runtime.tools.browser.problems import Candidate, closest
from halo_runtime.tools.browser.provider import PageTool
from tests.tools.test_browser import FAILS, HUNG, SUCCEEDS


@pytest.mark.parametrize("provider", ["Browser", "Chrome"])
def test_every_method_of_the_catalogue_is_tried(provider: str) -> None:
    spec = catalog.provider(provider)
    assert spec is not None
    assert set(SUCCEEDS) == set(FAILS) == set(HUNG) == set(ACTIONS) == set(spec.method_names)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.com", "https://example.com"),
        ("example.com:8080/x", "https://example.com:8080/x"),
        ("localhost:3000", "https://localhost:3000"),
        ("//example.com", "https://example.com"),
        (" http://example.com/a?b#c ", "http://example.com/a?b#c"),
        ("HTTPS://example.com", "HTTPS://example.com"),
    ],
)
def test_an_address_without_a_scheme_means_https(text: str, url: str) -> None:
    assert page_address(text) == url


@pytest.mark.parametrize(
    "text",
    ["file:///etc/passwd", "FILE:///etc/passwd", "data:text/html,x", "javascript:alert(1)", "chrome://version",
     "about:blank", "view-source:https://example.com", "view-source:file:///etc/passwd", "blob:https://example.com/1",
     "ftp://example.com", "http://", "https:///x", "http://[::1",
     "http://u:p@example.com/", "filesystem:http://x/y", "", "http://x:0"],
)  # fmt: skip
def test_only_http_and_https_are_opened(text: str) -> None:
    with pytest.raises(ToolError, match=r"no http or https address|holds a user or a password"):
        page_address(text)


def test_the_most_alike_come_first() -> None:
    things = [Candidate("#a", "Log in"), Candidate("#b", "Sign up now"), Candidate("#c", "Help")]
    assert closest("text=Sign up", things)[0].selector == "#b"


@pytest.mark.browser
def test_a_machine_without_a_browser_is_told_before_a_run_starts(tmp_path: Path) -> None:
    config = ToolConfig("Web", "Browser", {}, tmp_path, {"PATH": str(tmp_path), "HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"none is found on the PATH; install one: `apt install chromium`"):
        tool_factory("Browser")(config)


@pytest.mark.browser
def test_a_browser_that_playwright_has_downloaded_is_found(tmp_path: Path) -> None:
    there = tmp_path / ".cache/ms-playwright/chromium-1200/chrome-linux/chrome"
    there.parent.mkdir(parents=True)
    there.touch()
    config = ToolConfig("Web", "Browser", {}, tmp_path, {"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert isinstance(tool_factory("Browser")(config), PageTool)
