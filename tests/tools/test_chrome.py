"""A window in a Chromium that runs already: what it shares with the others and what not (spec 5, reference 2.11)."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import pytest_asyncio

from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.browser.finding import needs_no_sandbox
from halo_runtime.tools.browser.provider import PageTool, open_chrome
from tests.tools.browsing import ENV, Site, html

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with Site() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chrome(tmp_path_factory: pytest.TempPathFactory, site: Site) -> AsyncIterator[str]:
    """A browser as a person would start it, with a page of its own; its debugging address."""
    executable = shutil.which("chromium")
    assert executable is not None
    profile = tmp_path_factory.mktemp("profile")
    site.pages["/mine"] = html("<title>Mine</title>", headers={"set-cookie": "who=ada; Path=/"})
    process = await asyncio.create_subprocess_exec(
        executable, "--headless", "--remote-debugging-port=0", f"--user-data-dir={profile}", "--disable-gpu",
        "--no-first-run", *(["--no-sandbox"] if needs_no_sandbox() else []), f"{site.address}/mine",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=ENV,
    )  # fmt: skip
    assert process.stderr is not None
    while b"DevTools listening on" not in (line := await process.stderr.readline()):
        assert line, "it has not started"
    drained = asyncio.ensure_future(process.stderr.read())
    address = f"http://localhost:{line.decode().split('127.0.0.1:')[1].split('/')[0]}"
    while not [page for page in await pages(address) if page["title"] == "Mine"]:  # noqa: ASYNC110 - it is another process
        await asyncio.sleep(0.02)
    yield address
    process.terminate()
    await process.wait()
    await drained


async def pages(address: str) -> list[dict[str, Any]]:
    """The pages that are open in the browser."""

    def ask() -> list[dict[str, Any]]:
        with urlopen(f"{address.replace('localhost', '127.0.0.1')}/json/list") as answer:
            return [page for page in json.load(answer) if page["type"] == "page"]

    return await asyncio.to_thread(ask)


def attached(address: str, folder: Path, *allow: str) -> PageTool:
    settings = {"cdp": address, "allowHosts": [*allow], "timeout": "20s"}
    return open_chrome(ToolConfig("Web", "Chrome", settings, folder, ENV))


async def test_it_has_a_window_of_its_own_and_leaves_the_others_alone(chrome: str, site: Site, tmp_path: Path) -> None:
    site.show("<title>Other</title><p>hello <button onclick=\"document.title='pressed'\">go</button>", "/other")
    tool = attached(chrome, tmp_path, "127.0.0.1")
    assert (await tool.call("goto", {"url": f"{site.address}/other"}))["title"] == "Other"
    assert sorted(page["title"] for page in await pages(chrome)) == ["Mine", "Other"]
    assert await tool.call("text", {}) == "hello go"
    assert (await tool.call("click", {"selector": "button"}))["title"] == "pressed"
    assert (await tool.call("screenshot", {}))["bytes"] > 500
    assert (await tool.call("pdf", {}))["bytes"] > 500
    await tool.close()
    assert [page["title"] for page in await pages(chrome)] == ["Mine"]
    await tool.close()


async def test_it_is_logged_in_where_the_others_are(chrome: str, site: Site, tmp_path: Path) -> None:
    site.show("x", "/who")
    tool = attached(chrome, tmp_path, "127.0.0.1")
    try:
        await tool.call("goto", {"url": f"{site.address}/who"})
    finally:
        await tool.close()
    assert [request.headers.get("cookie") for request in site.requests if request.path == "/who"] == ["who=ada"]


@pytest.mark.parametrize(
    "body", ["<img src=URL>", "<iframe src=URL></iframe>", "<img src=/away>",
             "<script>new WebSocket('URL'.replace('http','ws'))</script>",
             "<script>fetch('URL', {mode: 'no-cors'})</script>"],
)  # fmt: skip
async def test_its_window_goes_to_no_closed_address(chrome: str, site: Site, tmp_path: Path, body: str) -> None:
    async with Site() as inner:
        target = f"http://localhost:{inner.port}/"
        site.pages["/away"] = html("", 302, headers={"location": target})
        tool = attached(chrome, tmp_path, "127.0.0.1")
        try:
            await tool.call("goto", {"url": site.show(body.replace("URL", target) + "<p>")})
            with pytest.raises(ToolError, match=r"localhost:\d+ is at 127.0.0.1"):
                await tool.call("goto", {"url": target})
        finally:
            await tool.close()
        assert inner.connections == 0


async def test_where_none_listens_it_says_how_to_start_one(tmp_path: Path) -> None:
    tool = attached("http://localhost:1", tmp_path)
    with pytest.raises(ToolError, match=r"nothing listens there; start Chrome with --remote-debugging-port=9222"):
        await tool.call("goto", {"url": "http://127.0.0.1/"})
    await tool.close()


async def test_it_says_what_browser_it_is(chrome: str, tmp_path: Path) -> None:
    tool = attached(chrome, tmp_path)
    assert (await tool.probe()).startswith("chromium ")
    await tool.close()


@pytest.mark.parametrize(
    "cdp", ["ftp://localhost:9222", "http://user:zq-4471@localhost:9222", "http://localhost:9222?token=zq-4471"]
)
async def test_what_is_no_address_of_a_browser_is_told_before_a_run_starts(tmp_path: Path, cdp: str) -> None:
    with pytest.raises(ConfigError, match=r"^cdp ") as caught:
        attached(cdp, tmp_path)
    assert "zq-4471" not in str(caught.value)
