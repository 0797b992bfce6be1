"""From lines of the models to what Textual draws. Nothing on the way reads markup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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
