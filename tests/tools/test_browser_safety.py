"""Where pages may not go, and what they cannot do: each way out of a page, hidden text, windows, floods (spec 5)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from halo_runtime.errors import ToolError
from halo_runtime.tools.browser import proxy
from halo_runtime.tools.browser.provider import PageTool
from tests.fakes.wire import Answer
from tests.tools.browsing import Site, browser, html

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sites() -> AsyncIterator[tuple[Site, Site]]:
    """A site that may be reached, as 127.0.0.1, and another on this machine that may not, as localhost."""
    async with Site() as outer, Site() as inner:
        yield outer, inner


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tools(
    sites: tuple[Site, Site], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, PageTool]]:
    """A browser with the inner site closed, and one with it open."""
    folder = tmp_path_factory.mktemp("program")
    both = {"closed": browser(folder, "127.0.0.1"), "open": browser(folder, "127.0.0.1", "localhost")}
    yield both
    for tool in both.values():
        await tool.close()


@pytest_asyncio.fixture(loop_scope="module")
async def web(tools: dict[str, PageTool], sites: tuple[Site, Site]) -> AsyncIterator[PageTool]:
    for site in sites:
        site.clear()
    yield tools["closed"]
    for tool in tools.values():
        await tool.call("close", {})


# --- ways to another address -----------------------------------------------------------------------------------------

DONE = "document.body.insertAdjacentHTML('beforeend', '<p id=done>done</p>')"
WAYS = {
    "picture": "<img src=TARGET>",
    "script": "<script src=TARGET></script>",
    "style": "<link rel=stylesheet href=TARGET>",
    "frame": "<iframe src=TARGET></iframe>",
    "object": "<object data=TARGET></object>",
    "video": f"<video src=TARGET preload=auto onloadstart=\"{DONE}\"></video>",
    "font": "<style>@font-face{font-family:f;src:url(TARGET)} body{font-family:f}</style>text",
    "fetch": f"<script>fetch('TARGET', {{mode: 'no-cors'}}).catch(() => 0).then(() => {DONE})</script>",
    "beacon": f"<body><script>navigator.sendBeacon('TARGET', 'x'); setTimeout(() => {DONE}, 300)</script>",
    "events": f"<script>const e = new EventSource('TARGET'); e.onerror = e.onopen = () => {DONE}</script>",
    "socket": f"<script>const s = new WebSocket('TARGET'.replace('http', 'ws')); s.onerror = () => {DONE}</script>",
    "worker": "<script>const code = new Blob([\"importScripts('TARGET'); postMessage(1)\"])\n"
    f"const w = new Worker(URL.createObjectURL(code)); w.onmessage = w.onerror = () => {DONE}</script>",
    "form": "<form action=TARGET method=post><input name=a></form><script>document.forms[0].submit()</script>",
    "refresh": "<meta http-equiv=refresh content='0;url=TARGET'>",
    "location": "<script>location = 'TARGET'</script>",
    "redirected picture": "<img src=/away>",
    "redirected frame": "<iframe src=/away></iframe>",
    "nested frame": "<iframe srcdoc='<img src=TARGET>'></iframe>",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["closed", "open"])
async def test_no_way_leads_from_a_page_to_a_closed_address(
    web: PageTool, tools: dict[str, PageTool], sites: tuple[Site, Site], way: str, kind: str
) -> None:
    outer, inner = sites
    target = f"http://localhost:{inner.port}/secret"
    outer.pages["/away"] = html("", 302, headers={"location": target})
    tool = tools[kind]
    try:
        await tool.call("goto", {"url": outer.show(WAYS[way].replace("TARGET", target))})
        if "done" in WAYS[way]:
            await tool.call("waitFor", {"selector": "#done"})
    except ToolError as error:  # the page itself went there
        if "cannot be opened: localhost" not in error.message:
            raise
    if kind == "open":  # so the way is one
        await asyncio.wait_for(_asked(inner), 10)
    else:
        assert inner.connections == 0


async def _asked(site: Site) -> None:
    while "/secret" not in site.asked:  # noqa: ASYNC110 - it is another process that asks
        await asyncio.sleep(0.01)


async def test_a_page_at_a_closed_address_is_not_opened(web: PageTool, sites: tuple[Site, Site]) -> None:
    outer, inner = sites
    outer.pages["/away"] = html("", 302, headers={"location": f"http://localhost:{inner.port}/"})
    for url in (f"http://localhost:{inner.port}/", f"https://localhost:{inner.port}/", f"{outer.address}/away"):
        with pytest.raises(ToolError, match=r"cannot be opened: localhost:\d+ is at 127.0.0.1 \(this machine itself\)"):
            await web.call("goto", {"url": url})
    assert inner.connections == 0


@pytest.mark.parametrize(
    "host", ["2130706434", "0x7f.2", "0177.0.0.2", "[::1]", "[::ffff:127.0.0.2]", "169.254.169.254", "10.0.0.1",
             "127.0.0.2", "192.0.0.192", "[fe80::1]", "[fd00::1]", "100.64.0.1", "0.0.0.0", "127。0。0。2",
             "sub.localhost"],
)  # fmt: skip
async def test_no_spelling_of_a_closed_address_is_opened(web: PageTool, sites: tuple[Site, Site], host: str) -> None:
    with pytest.raises(ToolError, match=r"which tools do not connect to by themselves|leads nowhere"):
        await web.call("goto", {"url": f"http://{host}:{sites[1].port}/"})
    assert sites[1].connections == 0


async def test_what_was_refused_is_told(web: PageTool, sites: tuple[Site, Site]) -> None:
    outer, inner = sites
    result = await web.call("goto", {"url": outer.show(f"<img src=http://localhost:{inner.port}/x>")})
    (refused,) = result["refused"]
    assert refused.startswith(f"localhost:{inner.port} is at 127.0.0.1 (this machine itself)")


@pytest.mark.parametrize(("allow", "opens"), [("public.example", True), ("other.example", False)])
async def test_it_is_the_address_behind_a_name_that_counts(
    sites: tuple[Site, Site], tmp_path: Path, allow: str, opens: bool
) -> None:
    outer, _ = sites
    outer.clear()
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    tool = browser(tmp_path, allow, resolve=resolve)
    url = f"http://public.example:{outer.port}/"
    outer.show("inside")
    try:
        if opens:
            assert (await tool.call("goto", {"url": url}))["status"] == 200
        else:
            with pytest.raises(ToolError, match=r"public.example:.* is at 127.0.0.1"):
                await tool.call("goto", {"url": url})
        assert set(asked) == {"public.example"}
        assert (outer.connections > 0) is opens
    finally:
        await tool.close()


CALL = """<body><script>
const frame = document.body.appendChild(document.createElement('iframe'))
for (const kind of [window.RTCPeerConnection, frame.contentWindow.RTCPeerConnection]) {
  if (!kind) continue
  const call = new kind({iceServers: [{urls: 'stun:127.0.0.1:PORT'}]})
  call.createDataChannel('x')
  call.createOffer().then(offer => call.setLocalDescription(offer))
}
setTimeout(() => { DONE }, 1500)
</script>""".replace("DONE", DONE)  # fmt: skip


async def test_calls_between_browsers_do_not_go_around_the_proxy(web: PageTool, sites: tuple[Site, Site]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.setblocking(False)
        port = str(listening.getsockname()[1])
        await web.call("goto", {"url": sites[0].show(CALL.replace("PORT", port))})
        await web.call("waitFor", {"selector": "#done"})
        with pytest.raises(BlockingIOError):
            listening.recv(1)


async def test_no_worker_stays_between_a_site_and_its_pages(web: PageTool, sites: tuple[Site, Site]) -> None:
    site = sites[0]
    site.pages["/worker.js"] = html("", content_type="text/javascript")
    script = f"<body><script>navigator.serviceWorker.register('/worker.js').then(() => {DONE}, () => {DONE}); "
    await web.call("goto", {"url": site.show(script + f"setTimeout(() => {DONE}, 300)</script>")})
    await web.call("waitFor", {"selector": "#done >> nth=0"})
    assert "/worker.js" not in site.asked


# --- other kinds of addresses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "chrome://version", "view-source:file:///etc/passwd", "data:text/html,x"]
)
@pytest.mark.parametrize("how", ["<a id=go href='URL'>go</a>", "<button id=go onclick=\"location='URL'\">go</button>"])
async def test_a_page_leads_to_no_file_and_no_page_of_the_browser(
    web: PageTool, sites: tuple[Site, Site], url: str, how: str
) -> None:
    await web.call("goto", {"url": sites[0].show(how.replace("URL", url))})
    assert (await web.call("click", {"selector": "#go"}))["url"] == f"{sites[0].address}/"
    assert await web.call("text", {}) == "go"


async def test_a_frame_shows_no_file(web: PageTool, sites: tuple[Site, Site], tmp_path: Path) -> None:
    (tmp_path / "secret.js").write_text("document.title = 'read'")
    page = f"<iframe src='file://{tmp_path}/secret.js'></iframe><script src='file://{tmp_path}/secret.js'></script>"
    assert (await web.call("goto", {"url": sites[0].show(page)}))["title"] == ""


# --- windows, downloads, dialogs -------------------------------------------------------------------------------------


async def test_a_new_window_is_closed_and_told(web: PageTool, sites: tuple[Site, Site]) -> None:
    site = sites[0]
    other = site.show("other", "/other")
    await web.call("goto", {"url": site.show("<button onclick=\"window.open('/other')\">open</button>")})
    refused = (await web.call("click", {"selector": "button"}))["refused"]
    while not refused:  # it may come up after the click
        refused = (await web.call("waitFor", {"selector": "button"})) or web._session.refusals()
    assert refused in ([f"a new window for {other}"], ["a new window for about:blank"])
    assert await web.call("text", {}) == "open"


async def test_a_page_opens_no_windows_by_itself(web: PageTool, sites: tuple[Site, Site]) -> None:
    page = "<script>for (let i = 0; i < 50; i++) open('/window' + i)</script>"
    result = await web.call("goto", {"url": sites[0].show(page)})
    assert len(result["refused"]) <= 20
    assert [path for path in sites[0].asked if path.startswith("/window")] == []


@pytest.mark.parametrize("headers", [{"content-disposition": "attachment; filename=x.html"}, {}])
async def test_a_download_is_refused(web: PageTool, sites: tuple[Site, Site], headers: dict[str, str]) -> None:
    kind = "text/html" if headers else "application/octet-stream"
    sites[0].pages["/file"] = Answer(200, b"MZ" * 50, headers=headers, content_type=kind)
    with pytest.raises(ToolError, match="begins a download, which is refused"):
        await web.call("goto", {"url": f"{sites[0].address}/file"})
    await web.call("goto", {"url": sites[0].show("<a href=/file>get</a>")})
    await web.call("click", {"selector": "a"})
    assert await web.call("text", {}) == "get"


async def test_dialogs_are_dismissed(web: PageTool, sites: tuple[Site, Site]) -> None:
    page = (
        "<script>alert('a'); document.title = confirm('b') + ' ' + prompt('c'); onbeforeunload = () => 'stay'</script>"
    )
    assert (await web.call("goto", {"url": sites[0].show(page)}))["title"] == "false null"
    assert (await web.call("goto", {"url": sites[0].show("next", "/next")}))["status"] == 200


async def test_what_needs_a_permission_is_denied(web: PageTool, sites: tuple[Site, Site]) -> None:
    asks = "navigator.geolocation.getCurrentPosition(() => told('got'), () => told('denied'))"
    page = f"<body><script>const told = text => document.body.append(text); {asks}</script>"
    await web.call("goto", {"url": sites[0].show(page)})
    await web.call("waitFor", {"selector": "text=/got|denied/"})
    assert await web.call("text", {}) == "denied"


# --- what is read ----------------------------------------------------------------------------------------------------

HIDDEN = {
    "not displayed": "<p style='display:none'>X</p>",
    "attribute": "<p hidden>X</p>",
    "invisible": "<p style='visibility:hidden'>X</p>",
    "transparent": "<p style='opacity:0'>X</p>",
    "nearly transparent": "<div style='opacity:.2'><p style='opacity:.2'>X</p></div>",
    "filter": "<p style='filter:opacity(0)'>X</p>",
    "tiny": "<p style='font-size:1px'>X</p>",
    "no size": "<p style='font-size:0'>X</p>",
    "white on white": "<p style='color:#fff'>X</p>",
    "nearly white on white": "<p style='color:#fdfdfd'>X</p>",
    "black on black": "<div style='background:#000'><p style='color:#010101'>X</p></div>",
    "clear ink": "<p style='color:transparent'>X</p>",
    "clear fill": "<p style='-webkit-text-fill-color:transparent'>X</p>",
    "left of the page": "<p style='position:absolute;left:-9999px'>X</p>",
    "above the page": "<p style='position:absolute;top:-999px'>X</p>",
    "far right": "<p style='position:absolute;left:30000px'>X</p>",
    "indented": "<p style='text-indent:-9999px'>X</p>",
    "moved away": "<p style='transform:translate(-9999px)'>X</p>",
    "shrunk": "<p style='transform:scale(0)'>X</p>",
    "no height": "<div style='height:0;overflow:hidden'><p>X</p></div>",
    "one pixel": "<p style='position:absolute;width:1px;height:1px;overflow:hidden;white-space:nowrap'>X</p>",
    "clipped": "<p style='position:absolute;clip:rect(0,0,0,0)'>X</p>",
    "clip path": "<p style='clip-path:inset(100%)'>X</p>",
    "below the fold of a box": "<div style='height:20px;overflow:hidden'>seen<br><br><br>X</div>",
    "closed details": "<details><summary>more</summary>X</details>",
    "script": "<script type=text/plain>X</script>",
    "comment": "<!-- X -->",
    "template": "<template>X</template>",
    "noscript": "<noscript>X</noscript>",
    "option": "<select><option>a</option><option>X</option></select>",
    "password": "<input type=password value=X>",
    "attribute text": "<p title=X aria-label=X data-x=X>y</p>",
    "content-visibility": "<div style='content-visibility:hidden'>X</div>",
}
SHOWN = {
    "plain": "<p>X</p>",
    "grey": "<p style='color:#999'>X</p>",
    "white on black": "<div style='background:#000'><p style='color:#fff'>X</p></div>",
    "on a picture": "<div style='background:linear-gradient(red, blue)'><p style='color:#fff'>X</p></div>",
    "gradient ink": "<p style='background:linear-gradient(red,blue);background-clip:text;color:transparent'>X</p>",
    "half transparent": "<p style='opacity:.5'>X</p>",
    "visible again": "<div style='visibility:hidden'><p style='visibility:visible'>X</p></div>",
    "far down": "<div style='height:9000px'></div><p>X</p>",
    "in a box that scrolls": "<div style='height:20px;overflow:auto'><br><br><br><br>X</div>",
    "out of its box": "<div style='height:1px'><p>X</p></div>",
    "fixed in a hidden box": "<div style='height:0;overflow:hidden'><p style='position:fixed;top:0'>X</p></div>",
    "shadow": "<div id=h></div><script>h.attachShadow({mode: 'open'}).innerHTML = '<p>X</p>'</script>",
    "slot": "<div id=h>X</div><script>h.attachShadow({mode: 'open'}).innerHTML = '<p><slot></slot></p>'</script>",
    "field": "<input value=X>",
    "button": "<input type=submit value=X>",
    "open details": "<details open><summary>more</summary>X</details>",
    "locked page": "<body style='overflow:hidden'><div style='height:2000px'></div>X",
}


@pytest.mark.parametrize(("fragments", "seen"), [(HIDDEN, False), (SHOWN, True)], ids=["hidden", "shown"])
async def test_what_a_person_would_not_see_is_not_read(
    web: PageTool, sites: tuple[Site, Site], fragments: dict[str, str], seen: bool
) -> None:
    wrong: list[str] = []
    for name, fragment in fragments.items():
        await web.call("goto", {"url": sites[0].show(f"<title>t</title><div>{fragment.replace('X', 'canary')}</div>")})
        if ("canary" in await web.call("text", {})) is not seen:
            wrong.append(name)
    assert wrong == []


async def test_hidden_links_are_not_listed(web: PageTool, sites: tuple[Site, Site]) -> None:
    page = "<a href=/a>one</a><a href=/b style='display:none'>two</a><a href='javascript:x()'>three</a><a href=/d></a>"
    await web.call("goto", {"url": sites[0].show(page + "<a href=mailto:a@b.example>mail</a>")})
    assert [link["text"] for link in await web.call("links", {})] == ["one", "mail"]


async def test_a_page_that_redefines_what_reading_uses_is_still_bounded(
    web: PageTool, sites: tuple[Site, Site]
) -> None:
    page = "<p>x</p><script>getComputedStyle = () => { throw new Error('no') }</script>"
    await web.call("goto", {"url": sites[0].show(page)})
    with pytest.raises(ToolError, match=r"^Web.text: .{1,400}$"):
        await web.call("text", {})


# --- floods ----------------------------------------------------------------------------------------------------------


async def test_a_long_page_is_cut_where_it_says_so(web: PageTool, sites: tuple[Site, Site]) -> None:
    await web.call("goto", {"url": sites[0].show("<p>" + "word " * 500_000)})
    text, markup = await web.call("text", {}), await web.call("html", {})
    assert max(len(text), len(markup)) < 1_000_200
    assert text.endswith("[… the rest of the page is cut; name a part of it with selector:]")
    assert markup.endswith("more characters cut]")


async def test_a_page_of_too_many_bytes_is_broken_off(
    sites: tuple[Site, Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "MAX_PAGE_BYTES", 2 << 20)
    site = sites[0]
    site.pages["/"] = Answer(pieces=(b"<p>" + b"x" * 100_000,) * 1000, content_type="text/html")
    tool = browser(tmp_path, "127.0.0.1", timeout="3s")
    try:
        with pytest.raises(ToolError, match=r"had not loaded after 3 s \(the page sends more than 2 MB\)"):
            await tool.call("goto", {"url": site.address})
        assert (await tool.call("text", {})).startswith("xxx")
        assert (await tool.call("goto", {"url": site.show("small", "/small")}))["refused"] == []
    finally:
        await tool.close()


async def test_many_links_and_long_titles_are_cut(web: PageTool, sites: tuple[Site, Site]) -> None:
    page = f"<title>{'t' * 5000}</title>" + "".join(f"<a href=/{n}>{n}</a> " for n in range(1500))
    result = await web.call("goto", {"url": sites[0].show(page)})
    links = await web.call("links", {})
    assert len(result["title"]) < 1100
    assert (len(links), links[-1]) == (1001, {"text": "[… more than 1000 links]", "url": None})
