"""One-row widgets: the status line and the tabs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from halo_tui.models.lines import Line
from halo_tui.widgets.roles import ROLE_CLASSES, content


class Status(Widget):
    """The line at the bottom: what is open, where the cursor stands, what is wrong, how the run goes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES

    left: reactive[Line] = reactive((), layout=False)
    right: reactive[Line] = reactive(())

    def render(self) -> Content:
        right = content(self, self.right)
        room = max(0, self.size.width - right.cell_length)
        left = content(self, self.left).truncate(room, ellipsis=True, pad=True)
        return Content.assemble(left, right)


class Tabs(Widget):
    """Names of panes, one of them shown."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tab--active", "tab--idle"}

    active: reactive[str] = reactive("")
    waiting: reactive[int] = reactive(0)
    """How many questions are open, beside the name of the inbox."""

    @dataclass
    class Selected(Message):
        """A person clicked the tab of a pane."""

        tabs: Tabs
        pane: str

        @property
        def control(self) -> Tabs:
            return self.tabs

    def __init__(self, panes: tuple[str, ...], active: str, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._panes = panes
        self.set_reactive(Tabs.active, active)

    def render(self) -> Content:
        return Content.assemble(
            *(
                (self._label(pane), self.get_visual_style(f"tab--{'active' if pane == self.active else 'idle'}"))
                for pane in self._panes
            )
        )

    def on_click(self, event: events.Click) -> None:
        at = 0
        for pane in self._panes:
            at += len(self._label(pane))
            if event.x < at:
                self.post_message(self.Selected(self, pane))
                return

    def _label(self, pane: str) -> str:
        return f" {self._told(pane)}" if self._is_tight else f" {self._told(pane)} "

    def _told(self, pane: str) -> str:
        badge = f" {self.waiting}" if pane == "inbox" and self.waiting else ""
        return f"{pane.capitalize()}{badge}"

    @property
    def _is_tight(self) -> bool:
        """Whether there is no room for a space on both sides of each name."""
        return sum(len(self._told(pane)) + 2 for pane in self._panes) > self.size.width
