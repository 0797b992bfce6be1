"""`Browser(headless, allowHosts)` and `Chrome(cdp)`: one page of a real browser, for programs and agents (spec 5).

Calls of one tool come one after the other, since they share the page. All connections of the page go through `proxy`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from halo_lang.catalog.signature import duration_seconds
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.browser.finding import (
    ARGUMENTS,
    INSTALL,
    KEPT_DEFAULTS,
    NOWHERE,
    browser_variables,
    find_browser,
    needs_no_sandbox,
)
from halo_runtime.tools.browser.keeping import Keeper
from halo_runtime.tools.browser.session import Connect, Connected, Session
from halo_runtime.tools.web.urls import declared_url

if TYPE_CHECKING:
    from playwright.async_api import Playwright, StorageState

    from halo_runtime.tools.browser.proxy import Proxy
    from halo_runtime.tools.web.network import Resolve

SECONDS: Final = 30.0
_SPARE_SECONDS: Final = 2.0
"""Playwright's own limits come first, as they say more; this much later the page is given up."""


class PageTool:
    """One declared browser."""

    def __init__(self, config: ToolConfig, connect: Connect, resolve: Resolve | None = None) -> None:
        self._name = config.name
        self._seconds = duration_seconds(config.settings.get("timeout") or "") or SECONDS
        self._keeper = Keeper(config.name, config.folder)
        self._session = Session(
            connect, partial(_proxy, config.settings.get("allowHosts") or (), resolve), self._seconds
        )
        self._turn = asyncio.Lock()

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError. Cancelled, the page is closed, whatever it was doing."""
        async with self._turn:
            try:
                return await self._do(method, args)
            except ToolError as error:
                raise ToolError(f"{self._name}.{method}: {error.message}", retryable=error.retryable) from None
            except OSError as error:
                raise ToolError(f"{self._name}.{method}: the file cannot be written: {error.strerror}") from None
            except asyncio.CancelledError:
                await self._session.drop_page("the page was closed when the call on it was cancelled")
                raise

    async def close(self) -> None:
        """End the browser, or leave the Chrome that was attached to."""
        self._keeper.close()
        await self._session.close()

    async def probe(self) -> str:
        """What browser there is."""
        async with self._turn:
            return await self._session.version()

    async def _do(self, method: str, args: JsonObject) -> Json:
        from playwright.async_api import Error

        from halo_runtime.tools.browser.actions import ACTIONS, Work, action_problem

        action = ACTIONS.get(method)
        if action is None:
            raise ToolError(f"there is no such method; there are {', '.join(ACTIONS)}")
        try:
            if method == "goto":
                await self._session.page()  # starting a browser takes its own time
            async with asyncio.timeout(self._seconds + _SPARE_SECONDS):
                return await action(Work(args, self._session, self._keeper, self._seconds))
        except TimeoutError:
            await self._session.drop_page("the page was closed because it did not answer any more")
            raise ToolError(
                f"the page did not answer within {self._seconds:g} s, and was closed", retryable=True
            ) from None
        except Error as error:
            raise action_problem(error, self._session, self._seconds) from None


def open_browser(config: ToolConfig, *, resolve: Resolve | None = None) -> PageTool:
    """A browser of its own; `resolve` stands for the system's resolver.

    Raises ConfigError where there is none on this machine.
    """
    executable = find_browser(config.env or os.environ)
    if executable is None:
        raise ConfigError(f"Browser needs Chromium or Chrome, and none is found on the PATH; install one: {INSTALL}")
    headless = config.settings.get("headless") is not False

    async def launch(playwright: Playwright) -> Connected:
        browser = await playwright.chromium.launch(
            executable_path=executable,
            headless=headless,
            args=ARGUMENTS,
            ignore_default_args=KEPT_DEFAULTS,
            env=browser_variables(config.env, os.environ),
            # The browser's own errands (updates, accounts) lead to nothing; the page has a proxy that answers.
            proxy={"server": NOWHERE, "bypass": "<-loopback>"},
            chromium_sandbox=not needs_no_sandbox(),
        )
        return Connected(browser)

    return PageTool(config, launch, resolve)


def open_chrome(config: ToolConfig) -> PageTool:
    """A window of its own in a Chrome that runs already. Raises ConfigError for what is no address of one."""
    address = declared_url(_with_scheme(config.settings["cdp"]), "cdp")

    async def attach(playwright: Playwright) -> Connected:
        from playwright.async_api import Error

        failure: Error | None = None
        for endpoint in _endpoints(address):
            try:
                browser = await playwright.chromium.connect_over_cdp(endpoint)
            except Error as error:
                failure = failure or error
                continue
            # The window is apart from the others, so that its connections can go through the proxy; it is logged in
            # where they are.
            cookies = await browser.contexts[0].cookies() if browser.contexts else []
            return Connected(browser, cast("StorageState", {"cookies": cookies, "origins": []}))
        assert failure is not None, "there is at least one endpoint"
        raise failure

    return PageTool(config, attach)


def _proxy(allow: Iterable[str], resolve: Resolve | None) -> Proxy:
    from halo_runtime.tools.browser.proxy import Proxy
    from halo_runtime.tools.web.network import look_up

    return Proxy(allow, resolve=resolve or look_up)


def _endpoints(address: str) -> list[str]:
    """Where to try. Chrome listens at 127.0.0.1, and `localhost` may lead to ::1 first."""
    parts = urlsplit(address)
    if parts.hostname != "localhost":
        return [address]
    port = parts.port or 9222
    return [f"{parts.scheme}://{host}:{port}" for host in ("127.0.0.1", "[::1]")]


def _with_scheme(text: str) -> str:
    return text if "://" in text else f"http://{text}"
