"""The methods of a page (spec 5): each does one thing with it and gives JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from halo_lang.catalog.signature import duration_seconds
from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.prompts import cut
from halo_runtime.tools.browser.keeping import Keeper
from halo_runtime.tools.browser.problems import Candidate, closest, hindrance, is_gone, network_problem, told

if TYPE_CHECKING:
    from playwright._impl._api_structures import Clip  # its one type that has no public name
    from playwright.async_api import Error, Locator, Page

    from halo_runtime.tools.browser.session import Session

MAX_CHARS: Final = 1_000_000
MAX_LINKS: Final = 1_000
MAX_HEIGHT: Final = 16_000
"""Pixels of a picture; what a page has below is left out."""
ELEMENT_SECONDS: Final = 5.0
"""How long an element may take to come up before it is said that it is not there."""
LOAD_SECONDS: Final = 10.0
"""How long pictures and scripts of a page are waited for once its document is there."""

_ERROR_PAGE: Final = "chrome-error:"
_READ_SECONDS: Final = 5.0
_OPEN: Final = ("http", "https")
_OPTIONS: Final = "element => [...element.options || []].slice(0, 20).map(one => one.label.trim().slice(0, 80))"
_SIZE: Final = "element => [Math.max(element.scrollWidth, innerWidth), Math.max(element.scrollHeight, innerHeight)]"
_MARKUP: Final = "(element, limit) => [element.outerHTML.slice(0, limit), element.outerHTML.length]"


@record
class Work:
    """One call: its arguments, the session, and where files are kept. `seconds` is the time that it may take."""

    args: JsonObject
    session: Session
    keeper: Keeper
    seconds: float

    @property
    def page(self) -> Page:
        """The page that is open. Raises ToolError where it is none that may be looked at."""
        page = self.session.open_page()
        scheme = urlsplit(page.url).scheme
        if scheme not in (*_OPEN, "about", "blob"):
            raise ToolError(f"the page has gone to a {scheme}: address, which is not opened; go elsewhere with goto")
        return page


Action: TypeAlias = Callable[[Work], Awaitable[Json]]


async def _goto(work: Work) -> Json:
    from playwright.async_api import Error, TimeoutError  # noqa: A004 - the library's own

    url = page_address(work.args["url"])
    page = await work.session.page()
    work.session.begin_page()
    try:
        response = await page.goto(url, wait_until="domcontentloaded")
        await _loaded(page)
    except TimeoutError:
        await _stop(page)
        told_so = f" ({work.session.closed[-1]})" if work.session.closed else ""
        raise ToolError(
            f"{_shown(url)} had not loaded after {work.seconds:g} s{told_so}; what is there by now can be read",
            retryable=True,
        ) from None
    except Error as error:
        problem = network_problem(error)
        if problem is None:
            raise
        raise await _not_opened(work, page, _shown(url), problem) from None
    return {**await _where(work, page), "status": None if response is None else response.status}


async def _text(work: Work) -> Json:
    found: JsonObject = await _visible(await _chosen(work), "text", MAX_CHARS)
    note = "\n[… the rest of the page is cut; name a part of it with selector:]" if found["cut"] else ""
    return found["text"] + note


async def _html(work: Work) -> Json:
    markup, length = await (await _chosen(work)).evaluate(_MARKUP, MAX_CHARS)
    return markup if length <= MAX_CHARS else f"{markup}\n[… {length - MAX_CHARS:,} more characters cut]"


async def _links(work: Work) -> Json:
    found: JsonObject = await _visible(work.page.locator(":root"), "links", MAX_LINKS)
    note = [{"text": f"[… more than {MAX_LINKS} links]", "url": None}] if found["cut"] else []
    return [*found["links"], *note]


async def _click(work: Work) -> Json:
    page = work.page
    element = await _element(work, work.args["selector"])
    work.session.begin_page()
    await element.click()
    await _loaded(page)
    return await _where(work, page)


async def _fill(work: Work) -> Json:
    await (await _element(work, work.args["selector"])).fill(work.args["value"])


async def _select(work: Work) -> Json:
    from playwright.async_api import TimeoutError  # noqa: A004 - the library's own

    element, value = await _element(work, work.args["selector"]), work.args["value"]
    try:
        await element.select_option(value, timeout=min(work.seconds, ELEMENT_SECONDS) * 1000)
    except TimeoutError:
        options = await element.evaluate(_OPTIONS)
        raise ToolError(f"there is no option {value!r}; there is {', '.join(map(repr, options)) or 'none'}") from None


async def _press(work: Work) -> Json:
    selector, key = work.args.get("selector"), work.args["key"]
    page = work.page
    work.session.begin_page()
    if selector is None:
        await page.keyboard.press(key)
    else:
        await (await _element(work, selector)).press(key)
    await _loaded(page)
    return await _where(work, page)


async def _wait_for(work: Work) -> Json:
    from playwright.async_api import TimeoutError  # noqa: A004 - the library's own

    seconds = duration_seconds(work.args.get("timeout") or "") or work.seconds
    element = work.page.locator(work.args["selector"])
    try:
        await element.filter(visible=True).first.wait_for(timeout=min(seconds, work.seconds) * 1000)
    except TimeoutError:
        raise await _not_there(work, work.args["selector"], min(seconds, work.seconds)) from None


async def _screenshot(work: Work) -> Json:
    page = work.page
    path = work.keeper.path(work.args.get("path") or "screenshot.png", ("png", "jpg", "jpeg"))
    kind = "png" if path[-1].lower().endswith(".png") else "jpeg"
    if not work.args.get("fullPage"):
        return {**await work.keeper.keep(path, await page.screenshot(type=kind)), "cut": False}
    width, height = await page.locator(":root").evaluate(_SIZE)
    seen: Clip = {"x": 0, "y": 0, "width": min(width, MAX_HEIGHT), "height": min(height, MAX_HEIGHT)}
    kept = await work.keeper.keep(path, await page.screenshot(type=kind, full_page=True, clip=seen))
    return {**kept, "cut": max(width, height) > MAX_HEIGHT}


async def _pdf(work: Work) -> Json:
    page = work.page
    path = work.keeper.path(work.args.get("path") or "page.pdf", ("pdf",))
    return await work.keeper.keep(path, await page.pdf(print_background=True))


async def _close(work: Work) -> Json:
    await work.session.drop_page("the page was closed")


ACTIONS: Final[dict[str, Action]] = {
    "goto": _goto, "text": _text, "html": _html, "links": _links, "click": _click, "fill": _fill, "select": _select,
    "press": _press, "waitFor": _wait_for, "screenshot": _screenshot, "pdf": _pdf, "close": _close,
}  # fmt: skip


def page_address(text: str) -> str:
    """A URL as the browser is given it; https where it names no scheme. Raises ToolError for other kinds."""
    url = text.strip()
    head, colon, rest = url.partition(":")
    named = bool(colon) and (rest.startswith("//") or not rest[:1].isdigit()) and head.replace("-", "").isalnum()
    url = url if named else f"https://{url.removeprefix('//')}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _OPEN and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable:
        raise ToolError(f"`{cut(text, 100)}` is no http or https address; others are not opened")
    if parts.username is not None or parts.password is not None:
        raise ToolError("the address holds a user or a password, which would be shown; leave them out")
    return url


# --- elements -----------------------------------------------------------------------------------------------------


async def _element(work: Work, selector: str) -> Locator:
    """The one element that a selector names, as soon as it is there. Raises ToolError for none and for several."""
    from playwright.async_api import TimeoutError  # noqa: A004 - the library's own

    seconds = min(work.seconds, ELEMENT_SECONDS)
    found = work.page.locator(selector)
    try:
        await found.first.wait_for(state="attached", timeout=seconds * 1000)
    except TimeoutError:
        if await found.count() == 0:
            raise await _not_there(work, selector, seconds) from None
    if await found.count() == 1:
        return found
    # What is meant is what can be seen, and pages keep hidden doubles of menus and forms.
    visible = found.filter(visible=True)
    count = await visible.count()
    if count == 1:
        return visible
    if count == 0:
        raise ToolError(f"`{selector}` names {await found.count()} elements, and none of them is visible")
    raise await _several(visible, selector, count)


async def _several(found: Locator, selector: str, count: int) -> ToolError:
    texts = [f"{i + 1}. {cut(' '.join((await found.nth(i).inner_text()).split()), 60)!r}" for i in range(min(count, 5))]
    return ToolError(
        f"`{selector}` names {count} elements ({', '.join(texts)}{', …' if count > 5 else ''});"
        f" say which, with more of a selector or with `{selector} >> nth=0`"
    )


async def _not_there(work: Work, selector: str, seconds: float) -> ToolError:
    """The error for an element that does not come up, with those that may be meant."""
    if await work.page.locator(selector).count() > 0:
        return ToolError(f"`{selector}` is there and was not visible within {seconds:g} s", retryable=True)
    things = await _visible(work.page.locator(":root"), "things", 300)
    near = closest(selector, [Candidate(one["selector"], one["text"]) for one in things])
    hint = f"; there is {', '.join(map(str, near))}" if near else "; there is nothing to act on"
    return ToolError(f"there is no `{selector}` on {_shown(work.page.url)}{hint}", retryable=True)


async def _chosen(work: Work) -> Locator:
    """What is to be read: the element that a selector names, else the whole page."""
    selector = work.args.get("selector")
    return work.page.locator(":root") if selector is None else await _element(work, selector)


async def _visible(element: Locator, want: str, limit: int) -> Json:
    return await element.evaluate(_script(), {"want": want, "limit": limit, "seconds": _READ_SECONDS})


@cache
def _script() -> str:
    """What reads a page as a person sees it."""
    return files(__package__ or "").joinpath("visible.js").read_text("utf-8")


# --- pages --------------------------------------------------------------------------------------------------------


async def _loaded(page: Page) -> None:
    """Wait for what belongs to a page, and not for ever: some never end loading."""
    from playwright.async_api import TimeoutError  # noqa: A004 - the library's own

    try:
        await page.wait_for_load_state("load", timeout=LOAD_SECONDS * 1000)
    except TimeoutError:
        return


async def _stop(page: Page) -> None:
    """Load no more of a page."""
    from playwright.async_api import Error

    session = await page.context.new_cdp_session(page)
    with suppress(Error):  # there may be nothing to load any more
        await session.send("Page.stopLoading")  # pyright: ignore[reportUnknownMemberType] - Playwright says `Dict`
    await session.detach()


async def _where(work: Work, page: Page) -> JsonObject:
    """What came of something that may have led to another page. Raises ToolError where that could not be opened."""
    if page.url.startswith(_ERROR_PAGE):
        raise await _not_opened(work, page, "the page that this leads to", ("cannot be opened", True))
    return {"url": page.url, "title": cut(await page.title(), 1000), "refused": work.session.refusals()}


async def _not_opened(work: Work, page: Page, what: str, problem: tuple[str, bool]) -> ToolError:
    """The error for a page that could not be gone to."""
    if await _is_error_page(page):
        await work.session.drop_page("the last page could not be opened")
    closed = work.session.closed
    if closed:  # before the document is there nothing else is asked for, so that is why
        return ToolError(f"{what} cannot be opened: {closed[-1]}", retryable=closed[-1].passing)
    return ToolError(f"{what} {problem[0]}", retryable=problem[1])


async def _is_error_page(page: Page) -> bool:
    """Whether the browser's own error page takes the place of the page. A download, say, leaves the old one."""
    from playwright.async_api import TimeoutError  # noqa: A004 - the library's own

    try:
        # It comes after the error; a page that is closed in between hangs.
        await page.wait_for_url(lambda url: url.startswith(_ERROR_PAGE), wait_until="commit", timeout=500)
    except TimeoutError:
        return False
    return True


def _shown(url: str) -> str:
    """An address without its query, which may hold a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path[:200]}"


def action_problem(error: Error, session: Session, seconds: float) -> ToolError:
    """What went wrong in Playwright, in words."""
    from playwright.async_api import TimeoutError  # noqa: A004 - the library's own

    if is_gone(error):
        return ToolError(f"{session.lost}; go to it again with goto", retryable=True)
    if isinstance(error, TimeoutError):
        return ToolError(
            f"could not be done within {seconds:g} s: {hindrance(error) or 'the page does not answer'}", retryable=True
        )
    return ToolError(told(error))
