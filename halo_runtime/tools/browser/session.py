"""The life of one browser and its one page: opened when first needed, gone with the run, found again after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.browser.problems import told

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Download, Page, Playwright, StorageState

    from halo_runtime.tools.browser.proxy import Proxy, Refusal

CLOSE_SECONDS: Final = 5.0
"""How long a browser may take to end in order."""
MAX_REFUSED: Final = 20
ANSWER_SECONDS: Final = 2.0
"""How long a page may take to say a word before it is taken for one that never will."""

_NO_CALLS: Final = (
    "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete window[name]"
)
"""In a Chrome that runs already no flag can keep these from going around the proxy."""


@record
class Connected:
    """A browser that was started or attached to, and the cookies that its page has from the start."""

    browser: Browser
    state: StorageState | None = None


Connect: TypeAlias = "Callable[[Playwright], Awaitable[Connected]]"
"""Starts a browser, or attaches to one. Raises the library's Error."""


class Session:
    """One browser with at most one page.

    `refused` are windows and downloads that the page wanted and did not get, `lost` is what became of the last page.
    """

    def __init__(self, connect: Connect, make_proxy: Callable[[], Proxy], seconds: float) -> None:
        self.refused: list[str] = []
        self._connect = connect
        self._make_proxy = make_proxy
        self._proxy: Proxy | None = None
        self._seconds = seconds
        self._opening: asyncio.Task[BrowserContext] | None = None
        self._held = AsyncExitStack()
        self._page: Page | None = None
        self.lost = "no page is open"

    async def page(self) -> Page:
        """A page that answers: a new one where there is none, in a new browser where that is gone. Raises ToolError."""
        if self._page is not None and not await _bounded(self._page.evaluate("0"), ANSWER_SECONDS):
            await self.drop_page("the page did not answer any more")  # its own scripts would hold up the next one, too
        if self._page is None:
            context = await self._context()
            page = await context.new_page()
            page.on("crash", lambda _: self._lose("the page crashed, perhaps for want of memory", page))
            page.on("download", self._refuse_download)
            self._page = page
        return self._page

    def open_page(self) -> Page:
        """The page that is open. Raises ToolError where none is, saying what became of it."""
        if self._page is None:
            raise ToolError(f"{self.lost}; go to one first, with goto")
        return self._page

    def begin_page(self) -> None:
        """Forget what was refused so far."""
        self.refused.clear()
        if self._proxy is not None:
            self._proxy.begin_page()

    @property
    def closed(self) -> list[Refusal]:
        """The addresses that were not connected to since `begin_page`."""
        return [] if self._proxy is None else [*self._proxy.refusals.values()]

    def refusals(self) -> list[str]:
        """What the page wanted and did not get since `begin_page`, in words."""
        return [*self.refused, *map(str, self.closed)][:MAX_REFUSED]

    async def drop_page(self, reason: str) -> None:
        """Close the page, whatever it is doing."""
        page = self._page
        self._lose(reason, page)
        if page is None:
            return
        closing = asyncio.ensure_future(_bounded(page.close()))
        try:
            answered = await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing  # a page that nobody closes would go on
            raise
        if not answered:
            await self._held.aclose()

    async def version(self) -> str:
        """What browser it is. Raises ToolError."""
        browser = (await self._context()).browser
        return "" if browser is None else f"{browser.browser_type.name} {browser.version}"

    async def close(self) -> None:
        """End everything; safe to repeat."""
        opening, self._opening = self._opening, None
        self._lose("the browser is closed", self._page)
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])
        await self._held.aclose()

    # --- opening ------------------------------------------------------------------------------------------------

    async def _context(self) -> BrowserContext:
        if self._opening is not None and self._opening.done() and not self._is_alive(self._opening):
            await self._held.aclose()
            self._opening = None
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        # A call that is cancelled here leaves the browser to the next one, or to `close`.
        return await asyncio.shield(self._opening)

    @staticmethod
    def _is_alive(opening: asyncio.Task[BrowserContext]) -> bool:
        if opening.cancelled() or opening.exception() is not None:
            return False
        browser = opening.result().browser
        return browser is not None and browser.is_connected()

    async def _open(self) -> BrowserContext:
        from playwright.async_api import Error

        async with AsyncExitStack() as held:
            proxy = self._proxy = self._make_proxy()
            address = await proxy.start()
            held.push_async_callback(proxy.close)
            playwright = await _start(held)
            try:
                connected = await self._connect(playwright)
                held.push_async_callback(_bounded_close, connected.browser)
                context = await self._new_context(connected, address)
            except Error as error:
                raise ToolError(told(error)) from None
            self._held = held.pop_all()
        return context

    async def _new_context(self, connected: Connected, address: str) -> BrowserContext:
        connected.browser.on("disconnected", lambda _: self._lose("the browser has ended", self._page))
        context = await connected.browser.new_context(
            # Where nothing is said of loopback, browsers go there without a proxy.
            proxy={"server": address, "bypass": "<-loopback>"},
            accept_downloads=False,
            service_workers="block",
            viewport={"width": 1280, "height": 800},
            storage_state=connected.state,
        )
        context.set_default_timeout(self._seconds * 1000)
        await context.add_init_script(_NO_CALLS)
        context.on("page", self._refuse_window)
        return context

    # --- what happens to pages --------------------------------------------------------------------------------------

    def _lose(self, reason: str, page: Page | None) -> None:
        if page is not None and page is self._page:
            self._page, self.lost = None, reason

    async def _refuse_window(self, page: Page) -> None:
        """Close a window that a page opens, and note where it was to go."""
        if self._page is None or page is self._page:
            return
        self._note(f"a new window for {page.url[:200]}")
        # One that is closed while its first page comes up would hang, and the page that opened it with it.
        await _bounded(page.wait_for_load_state("domcontentloaded"), ANSWER_SECONDS)
        await _bounded(page.close())

    def _refuse_download(self, download: Download) -> None:
        self._note(f"the download of {download.url[:200]}")

    def _note(self, wanted: str) -> None:
        if len(self.refused) < MAX_REFUSED:
            self.refused.append(wanted)


async def _start(held: AsyncExitStack) -> Playwright:
    """Playwright's own process. Cancelled, it is started to the end and stopped, so that none is left."""
    from playwright.async_api import async_playwright

    starting = asyncio.ensure_future(async_playwright().start())
    try:
        playwright = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _bounded((await starting).stop())
        raise
    held.push_async_callback(_bounded_stop, playwright)
    return playwright


async def _bounded_stop(playwright: Playwright) -> None:
    await _bounded(playwright.stop())


async def _bounded_close(browser: Browser) -> None:
    await _bounded(browser.close())


async def _bounded(work: Awaitable[object], seconds: float = CLOSE_SECONDS) -> bool:
    """Take leave of something that may be gone already; false where it did not answer in time."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(seconds):
            with suppress(Error):
                await work
    except TimeoutError:
        return False
    return True
