"""Text that grows, and text cut into rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.assist.positions import MARKS, cells, first_cells, last_cells
from halo_tui.models.growing import MAX_KEPT, Growing
from halo_tui.models.lines import Line
from halo_tui.models.wrapping import Page, Section, Wrapper


def rows_of(text: str, width: int, *, pieces: int = 1) -> list[str]:
    wrapper = Wrapper(width)
    size = max(1, -(-len(text) // pieces))
    for start in range(0, len(text), size):
        wrapper.feed(text[start : start + size], "text")
    return [told(row) for row in wrapper.rows]


def told(row: Line) -> str:
    return "".join(text for text, _ in row)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("one two three", ["one two ", "three"]),
        ("one  two\n\nthree", ["one  two", "", "three"]),
        ("exactly10c and", ["exactly10c", "and"]),
        ("averylongword", ["averylongw", "ord"]),
        ("a averylongword", ["a ", "averylongw", "ord"]),
        ("日本語日本語", ["日本語日本", "語"]),
        ("a\tb", ["a    b"]),
        ("   indented text", ["   indente", "d text"]),
        ("e\u0301" * 12, ["e\u0301" * 10, "e\u0301" * 2]),
        ("", []),
        ("\n", [""]),
    ],
)
def test_text_is_cut_at_spaces_where_there_are_some(text: str, rows: list[str]) -> None:
    assert rows_of(text, 10) == rows


texts = st.text("ab \n\t日e\u0301", max_size=80)


@given(texts, st.integers(1, 12), st.integers(1, 80))
def test_pieces_are_cut_as_the_whole_is(text: str, width: int, pieces: int) -> None:
    assert rows_of(text, width, pieces=pieces) == rows_of(text, width)


@given(texts, st.integers(2, 12))
def test_rows_are_no_wider_than_there_is_room_and_keep_every_letter(text: str, width: int) -> None:
    rows = rows_of(text, width)
    assert all(cells(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


def test_a_row_holds_no_endless_marks() -> None:
    assert max(map(len, rows_of("e" + "\u0301" * 5000, 10))) <= 10 * MARKS


@given(st.text(), st.integers(0, 20))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cells(first_cells(text, width)) <= width
    assert cells(last_cells(text, width)) <= width


def test_of_a_long_text_the_end_is_kept_from_a_lines_beginning() -> None:
    growing = Growing()
    for number in range(10_000):
        growing.add(f"line {number}\n")
    assert growing.total == sum(len(f"line {number}\n") for number in range(10_000))
    assert MAX_KEPT // 2 <= len(growing.text) <= 2 * MAX_KEPT + 20
    assert growing.text.startswith("line ")
    assert growing.text.endswith("line 9999\n")
    assert growing.first + len(growing.text) == growing.total
    assert growing.end(10) == "line 9999\n"
    assert growing.since(growing.total - 5) == "9999\n"


def test_a_line_without_an_end_is_bounded_too() -> None:
    growing = Growing("x" * 1_000_000)
    assert (len(growing.text), growing.total) == (MAX_KEPT, 1_000_000)


class Made:
    """Sections that count how often they are made."""

    def __init__(self) -> None:
        self.count = 0

    def section(self, key: str, stamp: object, text: str, grows: Growing | None = None) -> Section:
        def runs() -> list[tuple[str, str]]:
            self.count += 1
            return [(text, "text")]

        return Section(key, stamp, runs, grows)  # type: ignore[arg-type]


def test_a_page_cuts_only_what_has_changed_and_goes_on_with_what_grows() -> None:
    made, page, growing = Made(), Page(), Growing("live")
    first, live = made.section("a", 1, "one two"), made.section("b", 1, "> ", growing)
    assert page.show([first, live], 20)
    assert [told(page[index]) for index in range(len(page))] == ["one two", "> live"]
    assert not page.show([first, live], 20)
    growing.add(" and more\nand more")
    assert page.show([first, live], 20)
    assert [told(page[index]) for index in range(len(page))] == ["one two", "> live and more", "and more"]
    assert made.count == 2
    assert page.show([made.section("a", 2, "new"), live], 20)
    assert told(page[0]) == "new"
    assert page.show([live], 20)
    assert len(page) == 2


def test_another_width_cuts_anew_and_what_is_not_kept_is_told_of() -> None:
    made, page, growing = Made(), Page(), Growing("x" * 100_000)
    page.show([made.section("b", 1, "", growing)], 50)
    assert told(page[0]) == f"… {100_000 - MAX_KEPT:,} earlier characters"
    assert len(page) == 1 + MAX_KEPT // 50
    page.show([made.section("b", 1, "", growing)], 100)
    assert len(page) == 1 + MAX_KEPT // 100


def test_streaming_text_is_shown_and_never_obeyed() -> None:
    page, growing = Page(), Growing("[bold]\x1b[2J\x00\u202e")
    page.show([Section("b", 1, lambda: (), growing)], 80)
    assert told(page[0]) == "[bold]\\x1b[2J\\x00\\u202e"
