"""A pane of text that draws only the rows in sight, so that it may be long and grow while it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.content import Content
from textual.geometry import Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from halo_tui.models.wrapping import Page, Section
from halo_tui.widgets.roles import ROLE_CLASSES, content


class Reader(ScrollView, can_focus=True):
    """Text in sections. It follows its end as that grows until a person scrolls up, and says then how much has come."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*ROLE_CLASSES, "row--cursor"}
    ALLOW_SELECT = True

    # Not the layout of the screen depends on it, only the scrollbar: text that grows would have all laid out anew.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0))

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes="pane")
        self._page = Page()
        self._sections: tuple[Section, ...] = ()
        self._grows = False
        self._follows = True
        self._read = 0  # rows that have been in sight, counted from the top

    @property
    def unread(self) -> int:
        """Rows that have come below since a person scrolled up."""
        return 0 if self._follows else max(0, len(self._page) - self._read)

    def show(self, sections: Iterable[Section], *, grows: bool) -> None:
        """Show these sections, cutting what is new; from the end where more `grows` there, else from the top."""
        self._sections = tuple(sections)
        self._follows |= grows and not self._grows
        self._grows = grows
        if self.size.width:  # else it is not laid out, and cutting for another width would be for nothing
            self._cut()

    def _cut(self) -> None:
        if not self._page.show(self._sections, self.size.width):
            return
        follows = self._follows
        if follows:
            self._read = len(self._page)
        self._grow_to(len(self._page))
        if follows:
            go = self.scroll_end if self._grows else self.scroll_home
            # By force: the scrollbar, without which nothing scrolls, comes with the next layout only.
            go(animate=False, immediate=True, force=True)
        self.refresh()

    def _grow_to(self, rows: int) -> None:
        self.virtual_size = Size(0, rows)
        self.vertical_scrollbar.window_virtual_size = rows
        if (rows > self.size.height) is not self.show_vertical_scrollbar:
            self.refresh(layout=True)

    def on_resize(self) -> None:
        self._cut()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        top = round(new_value)
        self._follows = top >= self.max_scroll_y
        self._read = max(self._read, top + self.size.height)

    def render_line(self, y: int) -> Strip:
        width, style = self.size.width, self.visual_style
        unread = self.unread
        if unread and y == self.size.height - 1:
            style = self.get_visual_style("row--cursor")
            shown = content(self, ((f"↓ {unread:,} more below · End", "accent"),)).truncate(width, ellipsis=True)
            return Strip(shown.render_segments(style), shown.cell_length).extend_cell_length(width, style.rich_style)
        index = y + self.scroll_offset.y
        shown = self._row(index) if index < len(self._page) else Content("")
        strip = Strip(shown.render_segments(style), shown.cell_length).extend_cell_length(width, style.rich_style)
        return strip.apply_offsets(0, index)

    def _row(self, index: int) -> Content:
        shown = content(self, self._page[index])
        span = None if self.text_selection is None else self.text_selection.get_span(index)
        if span is None:
            return shown
        start, end = span
        style = self.screen.get_visual_style("screen--selection")
        return shown.stylize(style, start, len(shown) if end == -1 else end)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that a person has marked with the mouse, row by row."""
        rows = ("".join(text for text, _ in self._page[index]) for index in range(len(self._page)))
        return selection.extract("\n".join(rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()
