"""A page of a real Chromium: what each method gives, how it fails, and that it ends when nobody waits (spec 5)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.errors import ToolError
from halo_runtime.tools.base import Probing
from halo_runtime.tools.browser import actions
from halo_runtime.tools.browser.provider import PageTool
from tests.fakes.wire import Answer
from tests.tools.browsing import Site, browser, descendants, html

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

SHOP = """<title>Shop</title><h1>Pens</h1><p>Blue &amp; red</p><a href="/about">About us</a>
<form action="/found"><input name="q" id="q" placeholder="Search"><input type="password" name="p" value="hush">
<select id="size"><option value="s">Small</option><option value="l">Large</option></select>
<button>Find</button></form><button class="a">One</button><button class="b">Two</button>
<button id="off" disabled>Off</button><p id="hid" style="display:none">never</p>"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with Site() as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("program")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(folder: Path) -> AsyncIterator[PageTool]:
    """One browser for all tests that leave it whole."""
    tool = browser(folder, "127.0.0.1")
    yield tool
    await tool.close()


@pytest_asyncio.fixture(loop_scope="module")
async def web(shared: PageTool, site: Site) -> AsyncIterator[PageTool]:
    """The browser without a page."""
    site.clear()
    yield shared
    await shared.call("close", {})


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not there is not waited for long."""
    monkeypatch.setattr(actions, "ELEMENT_SECONDS", 1.0)


async def at_shop(web: PageTool, site: Site) -> PageTool:
    await web.call("goto", {"url": site.show(SHOP)})
    return web


# --- every method ----------------------------------------------------------------------------------------------------

SUCCEEDS: dict[str, tuple[dict[str, Any], Any]] = {
    "goto": ({"url": "/"}, {"title": "Shop", "status": 200, "refused": []}),
    "text": ({}, "Pens\n\nBlue & red\n\nAbout us\nSmall Find\nOne Two Off"),
    "html": ({"selector": "h1"}, "<h1>Pens</h1>"),
    "links": ({}, [{"text": "About us", "url": "/about"}]),
    "click": ({"selector": "text=About us"}, {"title": "About", "refused": []}),
    "fill": ({"selector": "#q", "value": "pen"}, None),
    "select": ({"selector": "#size", "value": "Large"}, None),
    "press": ({"key": "Enter", "selector": "#q"}, {"title": "Found", "refused": []}),
    "waitFor": ({"selector": "role=button[name='Find']"}, None),
    "screenshot": ({}, {"path": "screenshot.png", "cut": False}),
    "pdf": ({"path": "out/page.pdf"}, {"path": "out/page.pdf"}),
    "close": ({}, None),
}
FAILS: dict[str, tuple[dict[str, Any], str]] = {
    "goto": ({"url": "http://no-such-host.invalid/"}, r"cannot be opened: no-such-host.invalid .* leads nowhere"),
    "text": ({"selector": "#none"}, r"there is no `#none` on http://127.0.0.1:\d+/"),
    "html": ({"selector": "p["}, r"while parsing css selector"),
    "links": ({}, r"no page is open|the page was closed"),
    "click": ({"selector": "#off"}, r"could not be done within 2 s: it is disabled"),
    "fill": ({"selector": "h1", "value": "x"}, r"Element is not an <input>"),
    "select": ({"selector": "#size", "value": "Huge"}, r"there is no option 'Huge'; there is 'Small', 'Large'"),
    "press": ({"key": "Hyper"}, r'Unknown key: "Hyper"'),
    "waitFor": ({"selector": "#hid", "timeout": "100ms"}, r"`#hid` is there and was not visible within 0.1 s"),
    "screenshot": ({"path": "main.halo"}, r"`main.halo` must end with .png or .jpg or .jpeg"),
    "pdf": ({"path": "../x.pdf"}, r"leads up with `..`"),
    "close": ({}, ""),
}


@pytest.mark.parametrize("method", SUCCEEDS)
async def test_a_method_does_what_the_catalogue_says(web: PageTool, site: Site, folder: Path, method: str) -> None:
    args, expected = SUCCEEDS[method]
    site.show("<title>About</title>", "/about")
    site.show("<title>Found</title>", "/found?q=&p=hush")
    await at_shop(web, site)
    args = {name: site.address + value if name == "url" else value for name, value in args.items()}
    result = await web.call(method, args)
    if isinstance(expected, dict):
        assert {**result, **expected} == result
        assert "path" not in result or (folder / result["path"]).stat().st_size == result["bytes"] > 500
    else:
        assert json.loads(json.dumps(result).replace(site.address, "")) == expected


@pytest.mark.parametrize("method", [method for method in FAILS if method != "close"])
async def test_a_method_says_why_it_fails(folder: Path, site: Site, web: PageTool, method: str) -> None:
    args, message = FAILS[method]
    await at_shop(web, site)
    if method == "links":
        await web.call("close", {})
    tool = web
    if method == "click":  # waits as long as the tool may
        tool = browser(folder, "127.0.0.1", timeout="2s")
        await at_shop(tool, site)
    with pytest.raises(ToolError, match=rf"^Web\.{method}: .*{message}"):
        await tool.call(method, args)
    if tool is not web:
        await tool.close()


async def test_closing_without_a_page_is_no_failure(web: PageTool) -> None:
    assert await web.call("close", {}) is None


BUSY = """<p id=p>x</p><input id=i><select id=s><option>a</option></select>
<script>fetch('/begin').then(() => { fetch('/busy'); for (;;); })</script>"""


async def at_busy_page(web: PageTool, site: Site) -> None:
    """Go to a page that answers at first, and then never again."""
    begin = asyncio.Event()
    site.pages["/begin"] = Answer(gate=begin)
    site.pages["/busy"] = Answer(hang=True)
    await web.call("goto", {"url": site.show(BUSY)})
    begin.set()
    await asyncio.wait_for(site.busy.wait(), 10)


HUNG: dict[str, dict[str, Any]] = {
    **{name: args for name, (args, _) in SUCCEEDS.items()},
    "html": {}, "click": {"selector": "#p"}, "fill": {"selector": "#i", "value": "x"},
    "select": {"selector": "#s", "value": "a"}, "press": {"key": "x"}, "waitFor": {"selector": "#p"}, "pdf": {},
}  # fmt: skip


@pytest.mark.parametrize("method", HUNG)
async def test_a_call_that_is_cancelled_ends_and_closes_its_page(web: PageTool, site: Site, method: str) -> None:
    site.pages["/hang"] = Answer(hang=True)
    if method != "goto":
        await at_busy_page(web, site)
    args = {"url": f"{site.address}/hang"} if method == "goto" else HUNG[method]
    calling = asyncio.ensure_future(web.call(method, args))
    if method == "goto":
        await asyncio.wait_for(site.hanging.wait(), 10)
    elif method == "close":
        await asyncio.sleep(0)  # it begins
    else:
        assert not (await asyncio.wait([calling], timeout=0.1))[0], "the page is busy"
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await asyncio.wait_for(site.left.wait(), 10)
    with pytest.raises(ToolError, match="the page was closed"):
        await web.call("text", {})
    assert (await web.call("goto", {"url": site.show("again")}))["status"] == 200


# --- pages -----------------------------------------------------------------------------------------------------------


async def test_a_status_is_a_result_and_redirects_are_followed(web: PageTool, site: Site) -> None:
    site.pages["/old"] = html("", 302, headers={"location": "/new"})
    result = await web.call("goto", {"url": f"{site.address}/old"})
    assert result == {"url": f"{site.address}/new", "title": "Nothing", "status": 404, "refused": []}


async def test_what_is_filled_in_is_sent_and_the_page_that_comes_is_read(web: PageTool, site: Site) -> None:
    await at_shop(web, site)
    site.show("<title>Found</title>two pens", "/found?q=blue+%26+red&p=hush")
    await web.call("fill", {"selector": "#q", "value": "blue & red"})
    await web.call("select", {"selector": "#size", "value": "l"})
    assert "blue & red Large Find" in await web.call("text", {})
    assert (await web.call("click", {"selector": "role=button[name='Find']"}))["title"] == "Found"
    assert await web.call("text", {}) == "two pens"


async def test_what_comes_up_late_is_waited_for(web: PageTool, site: Site) -> None:
    script = "<script>onload = () => setTimeout(() => document.body.append('here it is'), 50)</script>"
    await web.call("goto", {"url": site.show(f"<body>{script}")})
    await web.call("waitFor", {"selector": "text=here it is", "timeout": "5s"})
    assert await web.call("text", {}) == "here it is"


async def test_one_of_several_has_to_be_named(web: PageTool, site: Site) -> None:
    await at_shop(web, site)
    with pytest.raises(ToolError, match=r"`button` names 4 elements \(1. 'Find', 2. 'One', .*`button >> nth=0`"):
        await web.call("click", {"selector": "button"})
    await web.call("click", {"selector": "button >> nth=2"})


async def test_hidden_doubles_of_an_element_do_not_count(web: PageTool, site: Site) -> None:
    page = "<button style='display:none'>Buy</button><button onclick='document.title = \"bought\"'>Buy</button>"
    await web.call("goto", {"url": site.show(page)})
    assert (await web.call("click", {"selector": "text=Buy"}))["title"] == "bought"


@pytest.mark.parametrize(
    ("selector", "offered"),
    [("text=Abot us", 'role=link[name="About us"]'), ("#searc", "#q"), ("role=button[name='Fnd']", '[name="Find"]')],
)
async def test_what_comes_closest_is_offered(web: PageTool, site: Site, selector: str, offered: str) -> None:
    await at_shop(web, site)
    with pytest.raises(ToolError) as caught:
        await web.call("click", {"selector": selector})
    assert offered in caught.value.message.partition("; there is ")[2].partition(", ")[0]
    assert "hush" not in caught.value.message


async def test_what_is_in_the_way_is_said(folder: Path, site: Site) -> None:
    cover = "<button>Go</button><div class=cover style='position:fixed;inset:0'></div>"
    tool = browser(folder, "127.0.0.1", timeout="2s")
    try:
        await tool.call("goto", {"url": site.show(cover)})
        with pytest.raises(ToolError, match=r"it is covered by <div class=\"cover\""):
            await tool.call("click", {"selector": "button"})
    finally:
        await tool.close()


async def test_pages_that_do_not_end_loading_are_given_up_and_can_be_read(folder: Path, site: Site) -> None:
    site.pages["/"] = Answer(pieces=(b"<p>so far</p>" + b" " * 2000,), hang=True, content_type="text/html")
    tool = browser(folder, "127.0.0.1", timeout="2s")
    try:
        with pytest.raises(ToolError, match=r"had not loaded after 2 s; what is there by now can be read") as caught:
            await tool.call("goto", {"url": site.address})
        assert caught.value.retryable
        assert await tool.call("text", {}) == "so far"
    finally:
        await tool.close()


async def test_a_page_that_does_not_answer_is_closed(folder: Path, site: Site) -> None:
    tool = browser(folder, "127.0.0.1", timeout="3s")
    try:
        await at_busy_page(tool, site)
        with pytest.raises(ToolError, match=r"the page does not answer|did not answer within 3 s, and was closed"):
            await tool.call("text", {})
        assert (await tool.call("goto", {"url": site.show("again", "/again")}))["status"] == 200
    finally:
        await tool.close()


async def _until_it_fails(tool: PageTool) -> None:
    """Read on until the end of a process is noticed."""
    for _ in range(10_000):
        await tool.call("text", {})


@pytest.mark.parametrize(("kind", "lost"), [("renderer", "the page crashed"), ("browser", "the browser has ended")])
async def test_after_a_crash_it_goes_on_and_says_so(folder: Path, site: Site, kind: str, lost: str) -> None:
    before = descendants(os.getpid())
    tool = browser(folder, "127.0.0.1")
    try:
        await tool.call("goto", {"url": site.show("one")})
        own = {pid: line for pid, line in descendants(os.getpid()).items() if pid not in before and "chromium" in line}
        wanted = "--type=renderer" if kind == "renderer" else "--remote-debugging-pipe"
        for pid in [pid for pid, line in own.items() if wanted in line and ("--type=" in line) == (kind == "renderer")]:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ToolError, match=rf"{lost}.* with goto"):
            await _until_it_fails(tool)
        assert (await tool.call("goto", {"url": site.address}))["status"] == 200
        assert await tool.call("text", {}) == "one"
    finally:
        await tool.close()


async def test_calls_side_by_side_come_one_after_the_other(web: PageTool, site: Site) -> None:
    urls = [site.show(f"<title>{n}</title>", f"/{n}") for n in range(4)]
    results = await asyncio.gather(*(web.call("goto", {"url": url}) for url in urls))
    assert [result["title"] for result in results] == ["0", "1", "2", "3"]


async def test_pictures_are_files_in_the_programs_folder(web: PageTool, site: Site, folder: Path) -> None:
    await web.call("goto", {"url": site.show("<body style='margin:0'><div style='height:3000px'>tall")})
    await web.call("screenshot", {"path": "whole.png", "fullPage": True})
    await web.call("screenshot", {"path": "shots/seen.jpg"})
    head = (folder / "whole.png").read_bytes()[:24]
    assert (head[:4], int.from_bytes(head[20:24], "big")) == (b"\x89PNG", 3000)
    assert (folder / "shots" / "seen.jpg").read_bytes()[:2] == b"\xff\xd8"


async def test_a_picture_of_an_endless_page_is_cut(web: PageTool, site: Site, folder: Path) -> None:
    await web.call("goto", {"url": site.show("<body style='margin:0'><div style='height:40000px'>tall")})
    result = await web.call("screenshot", {"path": "long.png", "fullPage": True})
    assert result["cut"] is True
    assert int.from_bytes((folder / "long.png").read_bytes()[20:24], "big") == actions.MAX_HEIGHT


async def test_a_link_in_the_folder_leads_no_file_out(web: PageTool, site: Site, folder: Path, tmp_path: Path) -> None:
    (folder / "out.png").symlink_to(tmp_path / "stolen.png")
    await at_shop(web, site)
    with pytest.raises(ToolError, match="leads out of the workspace over a link"):
        await web.call("screenshot", {"path": "out.png"})
    assert not (tmp_path / "stolen.png").exists()


async def test_it_says_what_browser_it_is(web: PageTool) -> None:
    assert isinstance(web, Probing)
    assert (await web.probe()).startswith("chromium ")
