"""A list of rows draws anew only the rows that have changed, and all of them where it must."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from halo_tui.models.lines import Line
from halo_tui.themes import DARK
from halo_tui.widgets.rows import Rows


class Listed(Rows[str]):
    """Rows of text that remember which were drawn."""

    def __init__(self) -> None:
        super().__init__(self._line, id="listed")
        self.clock = ""
        self.drawn: list[int] = []

    def _line(self, item: str) -> Line:
        return ((f"{item}{self.clock if item == 'b' else ''}", "text"),)

    def render_line(self, y: int) -> Strip:
        self.drawn.append(y)
        return super().render_line(y)


class Small(App[None]):
    """Nothing but a list."""

    # The roles that rows are drawn in are styled by the workbench's own sheet.
    CSS_PATH = "../../halo_tui/app.tcss"

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.theme = DARK.name
        self.rows = Listed()

    def compose(self) -> ComposeResult:
        yield self.rows

    async def drawn_for(self, pilot: Pilot[None]) -> set[int]:
        """The rows that were drawn since this was asked last."""
        await pilot.pause()
        drawn, self.rows.drawn = set(self.rows.drawn), []
        return drawn


@pytest.mark.parametrize(
    ("items", "drawn"),
    [
        (["a", "b", "c"], set[int]()),
        (["a", "B", "c"], {1}),
    ],
    ids=["nothing new", "one changed"],
)
async def test_only_rows_that_changed_are_drawn(items: list[str], drawn: set[int]) -> None:
    app = Small()
    async with app.run_test(size=(20, 8)) as pilot:
        app.rows.show(["a", "b", "c"])
        await app.drawn_for(pilot)
        app.rows.show(items)
        assert await app.drawn_for(pilot) == drawn


@pytest.mark.parametrize("items", [["a", "b", "c", "d"], ["a"], []], ids=["one more", "fewer", "none"])
async def test_another_number_of_rows_draws_what_it_must(items: list[str]) -> None:
    app = Small()
    async with app.run_test(size=(20, 8)) as pilot:
        app.rows.show(["a", "b", "c"])
        await app.drawn_for(pilot)
        app.rows.show(items)
        changed = set(range(min(3, len(items)), max(3, len(items))))
        assert changed <= await app.drawn_for(pilot)


async def test_rows_whose_time_has_passed_are_drawn() -> None:
    app = Small()
    async with app.run_test(size=(20, 8)) as pilot:
        app.rows.show(["a", "b", "c"])
        await app.drawn_for(pilot)
        app.rows.clock = " 1s"
        app.rows.follow_the_clock()
        assert await app.drawn_for(pilot) == {1}


async def test_a_list_out_of_sight_is_drawn_when_it_comes_into_sight() -> None:
    app = Small()
    async with app.run_test(size=(20, 8)) as pilot:
        app.rows.show(["a", "b", "c"])
        app.rows.display = False
        await app.drawn_for(pilot)
        app.rows.show(["a", "B", "c"])
        assert await app.drawn_for(pilot) == set()
        app.rows.display = True
        assert {0, 1, 2} <= await app.drawn_for(pilot)
