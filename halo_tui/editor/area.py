"""The editor widget. It shows text, colours, problems and running stages; it decides nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import DocumentNavigator, Location, Selection, TextAreaTheme

from halo_lang.highlight import (
    BINDING,
    CALLEE,
    DECLARED,
    DIRECTIVE,
    FUNCTION,
    LABEL,
    MODEL,
    PLACEHOLDER,
    STAGE,
    TokenType,  # pyright: ignore[reportPrivateUsage] - Pygments has no public name for it
)
from halo_tui.editor.buffer import Buffer, Unwrapped
from halo_tui.editor.colours import Colours
from halo_tui.editor.signs import with_signs
from halo_tui.models.marks import GutterMark, Underline

TOKEN_CLASSES: Final[dict[TokenType, str]] = {
    Comment: "comment",
    Error: "invalid",
    Keyword: "keyword",
    Keyword.Type: "type",
    Keyword.Constant: "constant",
    Name.Builtin: "type",
    Number: "constant",
    Operator: "operator",
    String: "string",
    STAGE: "stage",
    MODEL: "model",
    DIRECTIVE: "stage",
    PLACEHOLDER: "placeholder",
    DECLARED: "declared",
    FUNCTION: "function",
    CALLEE: "callee",
    BINDING: "label",
    LABEL: "label",
}
"""Token types and the component class that colours them; a type without one takes its parent's."""

_CACHED_ROW: Final = 2
"""Where the keys of TextArea's cache of drawn rows have the row."""

IDLE_LINES: Final = 200
"""Lines lexed in one idle slice: about a millisecond of work."""


class _Theme(TextAreaTheme):
    """Takes all colours from CSS. The stock cursor line also sets a foreground, which would wipe the syntax colours."""

    def apply_css(self, text_area: TextArea) -> None:
        super().apply_css(text_area)
        if self.cursor_line_style is not None:
            self.cursor_line_style = Style(bgcolor=self.cursor_line_style.bgcolor)


class Editor(TextArea, inherit_bindings=False):
    """A Halo program being written."""

    # F6 goes to the next pane everywhere; the stock editor selects a line with it.
    BINDINGS: ClassVar[list[BindingType]] = [
        binding for binding in TextArea.BINDINGS if isinstance(binding, Binding) and binding.key != "f6"
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"code--{name}" for name in TOKEN_CLASSES.values()),
        *(f"mark--{name}" for name in ("error", "warning", "info", "running")),
    }

    _line_cache: LRUCache[tuple[object, ...], Strip]

    @dataclass
    class TextEdited(Message):
        """The text is another one now."""

        editor: Editor

        @property
        def control(self) -> Editor:
            return self.editor

    @dataclass
    class CursorMoved(Message):
        """The cursor stands elsewhere: row and column from 0."""

        editor: Editor
        place: Location

        @property
        def control(self) -> Editor:
            return self.editor

    def __init__(self, text: str, *, id: str = "editor", read_only: bool = False) -> None:  # noqa: A002 - Textual's name
        self._underlines: Mapping[int, tuple[Underline, ...]] = {}
        self._gutter: Mapping[int, GutterMark] = {}
        self._token_styles: dict[TokenType, Style] = {}
        self._splices: list[tuple[int, int, int]] = []
        self._moved_over: set[int] | None = None
        super().__init__(
            text,
            id=id,
            read_only=read_only,
            soft_wrap=False,
            tab_behavior="indent",
            show_line_numbers=True,
            compact=True,
        )
        self.register_theme(_Theme("halo"))
        self.theme = "halo"
        self.indent_width = 2
        self.cursor_blink = False

    def on_mount(self) -> None:
        self._idle = self.set_interval(0.02, self._colour_more, name="colours")

    # --- what others tell it ---------------------------------------------------------------------------------

    def show_underlines(self, underlines: Mapping[int, tuple[Underline, ...]]) -> None:
        """Mark parts of lines, by row from 0."""
        rows = _differing(self._underlines, underlines)
        self._underlines = underlines
        self._repaint_rows(rows)

    def show_gutter(self, marks: Mapping[int, GutterMark]) -> None:
        """Put signs behind line numbers, by row from 0."""
        rows = _differing(self._gutter, marks)
        self._gutter = marks
        self._repaint_rows(rows)

    def go_to(self, place: Location) -> None:
        """Put the cursor at a row and column from 0, in the middle of the view when it was out of sight."""
        self.move_cursor(place, center=not self._in_sight(place[0]))

    # --- Textual's hooks -------------------------------------------------------------------------------------

    def get_line(self, line_index: int) -> Text:
        """One line with its colours and marks, control characters as visible signs."""
        text = Text(with_signs(self.document.get_line(line_index)), end="", no_wrap=True)
        for start, end, kind in self._colours.spans(line_index):
            style = self._token_style(kind)
            if style is not None:
                text.stylize(style, start, end)
        for mark in self._underlines.get(line_index, ()):
            style = self.get_component_rich_style(f"mark--{mark.look}", partial=True)
            text.stylize(style + Style(underline=True), mark.start, mark.end)
        return text

    def notify_style_update(self) -> None:
        self._token_styles.clear()
        super().notify_style_update()

    def _set_document(self, text: str, language: str | None) -> None:
        # As the stock method does for plain text, with our document and wrapping.
        self._highlight_query = None
        self.document = buffer = Buffer(text)
        self.wrapped_document = Unwrapped(buffer, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._colours = Colours(buffer.lines)
        self._splices = []
        buffer.on_splice = self._spliced
        self._build_highlight_map()
        self.move_cursor((0, 0))
        self._rewrap_and_refresh_virtual_size()

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """As Textual's; a repaint because the cursor moved is one of the rows it moved between."""
        rows, self._moved_over = self._moved_over, None
        if rows is not None and not (regions or layout or recompose):
            regions = tuple(self._row_region(row) for row in rows)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _watch_selection(self, previous_selection: Selection, selection: Selection) -> None:
        # Textual repaints the whole widget right after this, also for one typed character.
        bracket = self._matching_bracket_location
        super()._watch_selection(previous_selection, selection)
        rows = self._touched_rows(previous_selection, selection)
        if rows is not None:
            rows |= {place[0] for place in (bracket, self._matching_bracket_location) if place is not None}
        self._moved_over = rows

    def _build_highlight_map(self) -> None:
        # Called after every edit; the stock method would lex the whole document here, and draw all rows anew.
        rows = self._changed_rows()
        self._splices.clear()
        if rows is None:
            self._line_cache.clear()
            return
        self._forget(rows)

    def _render_line(self, y: int) -> Strip:
        strip = super()._render_line(y)
        mark = self._mark_at(y)
        if mark is None or not strip:
            return strip
        number, *rest = strip
        style = self.get_component_rich_style(f"mark--{mark.look}", partial=True)
        sign = Segment(f"{mark.glyph} ", (number.style or Style()) + style)
        return Strip([Segment(number.text[:-2], number.style), sign, *rest], strip.cell_length)

    async def _on_key(self, event: events.Key) -> None:
        # Textual lets a bound key travel up to the application before its action runs, while characters are typed at
        # once: of keys that come together (a macro, a slow line) Backspace or End would be overtaken by what follows.
        bound = self._bindings.key_to_bindings.get(event.key)
        if bound:
            event.stop()
            event.prevent_default()
            await self.run_action(bound[0].action)

    def _on_paste(self, event: events.Paste) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - both run
        # Terminals send pasted line ends as carriage returns; the stock handler, which runs next, would keep them.
        event.text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        event.stop()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if not self._colours.complete:
            self._idle.resume()
        self.post_message(self.TextEdited(self))

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self.post_message(self.CursorMoved(self, event.selection.end))

    # --- its own ---------------------------------------------------------------------------------------------

    def _token_style(self, kind: TokenType) -> Style | None:
        style = self._token_styles.get(kind)
        if style is None:
            name = _class_of(kind)
            style = Style.null() if name is None else self.get_component_rich_style(f"code--{name}", partial=True)
            self._token_styles[kind] = style
        return style or None

    def _mark_at(self, y: int) -> GutterMark | None:
        row, section = self._row_at(y)
        return self._gutter.get(row) if section == 0 else None

    def _row_at(self, y: int) -> tuple[int, int]:
        lines = self.wrapped_document._offset_to_line_info  # pyright: ignore[reportPrivateUsage]
        at = y + self.scroll_offset.y
        return lines[at] if at < len(lines) else (-1, -1)

    def _in_sight(self, row: int) -> bool:
        return Region(0, self.scroll_offset.y, 1, max(1, self.size.height)).contains(0, row)

    def _spliced(self, top: int, removed: int, inserted: int) -> None:
        self._colours.spliced(top, removed, inserted)
        self._splices.append((top, removed, inserted))

    def _changed_rows(self) -> range | None:
        """The rows that look different after an edit, None when others than the edited ones may."""
        if len(self._splices) != 1:
            return None
        top, removed, inserted = self._splices[0]
        if removed != inserted or not self._colours.settled(top + inserted):
            return None
        return range(top, top + inserted)

    def _touched_rows(self, before: Selection, after: Selection) -> set[int] | None:
        """The rows that look different after a move or an edit, None when that may be any."""
        edited = self._changed_rows() if self._splices else range(0)
        if edited is None:
            return None
        rows = {before.end[0], after.end[0], *edited}
        for selection in (before, after):
            if not selection.is_empty:
                first, last = sorted((selection.start[0], selection.end[0]))
                rows.update(range(first, last + 1))
        return rows

    def _row_region(self, row: int) -> Region:
        return Region(0, row - self.scroll_offset.y, self.size.width, 1)

    def _colour_more(self) -> None:
        """Lex what is out of sight in small slices, so that a jump to the end finds its colours there."""
        self._colours.advance(IDLE_LINES)
        if self._colours.complete:
            self._idle.pause()
            if self._colours.guessed:
                self._colours.guessed = False
                self._line_cache.clear()
                self.refresh()

    def _repaint_rows(self, rows: Set[int]) -> None:
        self._forget(rows)
        regions = [self._row_region(row) for row in rows if self._in_sight(row)]
        if regions:
            self.refresh(*regions)

    def _forget(self, rows: Container[object]) -> None:
        """Drop drawn rows from Textual's cache."""
        stale = [key for key in self._line_cache.keys() if key[_CACHED_ROW] in rows]  # noqa: SIM118 - it is no dict
        for key in stale:
            self._line_cache.discard(key)


def _differing(before: Mapping[int, object], after: Mapping[int, object]) -> set[int]:
    """The rows that are marked otherwise than before."""
    return {row for row in before.keys() | after.keys() if before.get(row) != after.get(row)}


def _class_of(kind: TokenType) -> str | None:
    known: TokenType | None = kind
    while known is not None and known not in TOKEN_CLASSES:
        known = known.parent
    return None if known is None else TOKEN_CLASSES[known]
