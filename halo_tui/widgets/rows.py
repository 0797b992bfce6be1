"""A list of rows that draws only those in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from halo_tui.models.lines import Line
from halo_tui.widgets.roles import ROLE_CLASSES, content

T = TypeVar("T")


class Rows(ScrollView, Generic[T], can_focus=True):
    """Rows of any kind; a subclass says how one looks. Enter or a click chooses one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "first", "First", show=False),
        Binding("end", "last", "Last", show=False),
        Binding("enter,space", "choose", "Choose", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {*ROLE_CLASSES, "row--cursor"}

    cursor: reactive[int] = reactive(0)

    @dataclass
    class Chosen(Message):
        """A person chose the row at `index`."""

        rows: Rows[object]
        index: int

        @property
        def control(self) -> Rows[object]:
            return self.rows

    @dataclass
    class Moved(Message):
        """A person moved the cursor; it stands where `rows.cursor` says."""

        rows: Rows[object]

        @property
        def control(self) -> Rows[object]:
            return self.rows

    def __init__(self, line_of: Callable[[T], Line], *, id: str, classes: str = "") -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._line_of = line_of
        self.items: Sequence[T] = ()
        self.empty: Line = ()
        """What stands there when there is no row."""
        self._drawn: dict[int, tuple[Line, bool]] = {}
        """What stands in each row of the screen, as it was drawn last."""

    def show(self, items: Sequence[T]) -> None:
        """Show these rows, the cursor where it was."""
        self.items = items
        self.virtual_size = Size(0, max(1, len(items)))
        self.set_reactive(Rows.cursor, max(0, min(self.cursor, len(items) - 1)))
        if self.is_on_screen:
            self._draw_changed()
        else:
            self.refresh()  # it is drawn when it comes into sight, if ever

    def follow_the_clock(self) -> None:
        """Draw anew the rows in sight that read otherwise than before, because time has passed."""
        if self.is_on_screen:
            self._draw_changed()

    def _draw_changed(self) -> None:
        """A run that streams changes one row of many, twenty times a second."""
        for y in range(self.size.height):
            if self._look(y) != self._drawn.get(y):
                self.refresh_line(y + self.scroll_offset.y)

    def _look(self, y: int) -> tuple[Line, bool]:
        """What a row of the screen says, and whether the cursor is seen there."""
        index = y + self.scroll_offset.y
        line = self._line_of(self.items[index]) if index < len(self.items) else self.empty if index == 0 else ()
        return line, self.has_focus and bool(self.items) and index == self.cursor

    def render_line(self, y: int) -> Strip:
        line, with_cursor = self._drawn[y] = self._look(y)
        width = self.size.width
        style = self.get_visual_style("row--cursor") if with_cursor else self.visual_style
        shown = content(self, line).truncate(width, ellipsis=True)
        strip = Strip(shown.render_segments(style), shown.cell_length)
        return strip.extend_cell_length(width, style.rich_style)

    def watch_cursor(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False)

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self.items) - 1))

    def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if index < len(self.items):
            self._move_to(index)
            self.action_choose()

    def action_move(self, by: int) -> None:
        self._move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self._move_to(self.cursor + by * max(1, self.size.height - 1))

    def action_first(self) -> None:
        self._move_to(0)

    def action_last(self) -> None:
        self._move_to(len(self.items) - 1)

    def _move_to(self, index: int) -> None:
        self.cursor = index
        self.post_message(self.Moved(self))  # pyright: ignore[reportArgumentType] - T is any row

    def action_choose(self) -> None:
        if self.items:
            self.post_message(self.Chosen(self, self.cursor))  # pyright: ignore[reportArgumentType] - T is any row
