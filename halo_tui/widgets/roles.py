"""From lines of the models to what Textual draws. Nothing on the way reads markup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from textual.content import Content
from textual.widget import Widget

from halo_tui.models.lines import ROLES, Line, Run

ROLE_CLASSES: Final = {f"role--{role}" for role in ROLES}
"""The component classes of a widget that draws lines; app.tcss gives them their looks."""


def content(widget: Widget, line: Line) -> Content:
    """One line in the looks that the widget's theme gives its roles."""
    return joined(widget, line)


def joined(widget: Widget, runs: Iterable[Run]) -> Content:
    """Runs of text one after another, line feeds included."""
    return Content.assemble(
        *((text, widget.get_visual_style(f"role--{role}", partial=True)) for text, role in runs if text)
    )


class RoleText(Widget):
    """A text of many lines, made of runs. It takes its looks anew whenever it is drawn, so it follows the theme."""

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES

    def __init__(self) -> None:
        super().__init__()
        self._runs: tuple[Run, ...] = ()

    def show(self, runs: Iterable[Run]) -> None:
        """Show these runs of text instead of what stood there."""
        self._runs = tuple(runs)
        self.refresh(layout=True)

    def render(self) -> Content:
        return joined(self, self._runs)
