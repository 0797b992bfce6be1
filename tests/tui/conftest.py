"""The workbench on a screen of its own, driven by keys."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from halo_runtime.store.files import FileRunStore
from halo_tui.app import WorkbenchApp
from halo_tui.models.document import Document
from halo_tui.models.options import Options
from halo_tui.screens.workbench import Workbench

DEADLINE = 30.0
"""Seconds that `until` waits at most; only a broken workbench makes it wait so long."""


class Bench:
    """A workbench with its pilot."""

    def __init__(self, app: WorkbenchApp, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> Workbench:
        """The workbench, also while a form lies over it."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, Workbench))

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, holds: Callable[[], object]) -> None:
        """Let the application work until something holds."""
        deadline = monotonic() + DEADLINE
        while not holds():
            assert monotonic() < deadline, f"it never held; the screen shows:\n{self.text()}"
            await self.pilot.pause(0.01)

    async def until_open(self, form: type[Screen]) -> None:  # type: ignore[type-arg] - of any result
        """Wait until a form lies on top and takes keys."""
        await self.until(lambda: isinstance(self.app.screen, form) and self.app.screen.focused is not None)

    async def until_shown(self, text: str) -> None:
        await self.until(lambda: text in self.text())

    def text(self) -> str:
        """What stands on the screen."""
        return "\n".join(
            "".join(segment.text for segment in strip) for strip in self.app.screen._compositor.render_strips()
        )


OpenBench = Callable[..., AbstractAsyncContextManager[Bench]]


@pytest.fixture
def bench(tmp_path: Path) -> OpenBench:
    """Opens a program, with its replies beside it, in a workbench."""

    @asynccontextmanager
    async def open_bench(
        program: str,
        replies: object = None,
        *,
        size: tuple[int, int] = (120, 36),
        inputs: dict[str, str] | None = None,
        run: bool = False,
    ) -> AsyncIterator[Bench]:
        path = tmp_path / "main.halo"
        path.write_text(program, encoding="utf-8")
        if replies is not None:
            (tmp_path / "main.replies.json").write_text(json.dumps(replies), encoding="utf-8")
        options = Options(inputs=inputs or {}, run=run, open_store=lambda: FileRunStore(tmp_path / ".halo"))
        app = WorkbenchApp(Document.open(path), options)
        async with app.run_test(size=size, notifications=True) as pilot:
            bench = Bench(app, pilot)
            await bench.until(lambda: app.screen_stack[1:] and bench.screen.findings)
            yield bench

    return open_bench
