"""Source places as people see them on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.assist.positions import cells
from halo_lang.excerpt import MAX_COLUMNS, excerpt, visible
from halo_lang.source import Source, Span


def test_carets_stand_under_the_span() -> None:
    source = Source("one\n  two three\n")
    assert excerpt(source, Span(10, 15)) == ["  |", "2 |   two three", "  |       ^^^^^"]


def test_the_gutter_is_as_wide_as_the_line_number() -> None:
    assert excerpt(Source("\n" * 99 + "x"), Span(99, 100)) == ["    |", "100 | x", "    | ^"]


@pytest.mark.parametrize(
    ("text", "span", "line", "carets"),
    [
        ("\tx", Span(1, 2), "1 | \tx", "  | \t^"),
        ("日本 x", Span(3, 4), "1 | 日本 x", "  |      ^"),
        ("日本", Span(0, 2), "1 | 日本", "  | ^^^^"),
        ("é\u0301x", Span(2, 3), "1 | é\u0301x", "  |  ^"),
        ("\x1b[31mx", Span(5, 6), "1 | \\x1b[31mx", "  |         ^"),
        ("x", Span(1, 1), "1 | x", "  |  ^"),
        ("", Span(0, 0), "1 |", "  | ^"),
        ("ab\r\ncd", Span(1, 6), "1 | ab", "  |  ^"),
    ],
    ids=["tab", "wide", "wide-marked", "combining", "control", "end", "empty", "over-lines"],
)
def test_carets_stand_right_under_any_text(text: str, span: Span, line: str, carets: str) -> None:
    assert excerpt(Source(text), span)[1:] == [line, carets]


def test_a_line_of_any_length_is_cut_around_the_place() -> None:
    lines = excerpt(Source("(" * 1_000_000 + "x" + ")" * 1_000_000), Span(1_000_000, 1_000_001))
    assert max(map(len, lines)) < MAX_COLUMNS + 10
    assert lines[1][lines[2].index("^")] == "x"


@given(st.text(max_size=400), st.data())
def test_an_excerpt_is_always_three_lines_that_no_terminal_obeys(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    lines = excerpt(Source(text), Span(start, data.draw(st.integers(start, len(text)))))
    assert len(lines) == 3
    assert not any(ord(c) < 32 and c != "\t" for line in lines for c in line)
    assert "^" in lines[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 👩‍🚀 a\u00a0b", "plain é 日本 👩‍🚀 a\u00a0b"),
        ("\x1b[2J\x07\x00\r\n", "\\x1b[2J\\x07\\x00\\x0d\\x0a"),
        ("a\tb", "a\tb"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\x9b31m\u2028", "\\x9b31m\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_what_would_act_on_a_terminal_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_line_breaks_may_be_kept() -> None:
    assert visible("a\nb\x1b", keep="\t\n") == "a\nb\\x1b"


def test_cells_count_what_a_terminal_shows() -> None:
    assert [cells(text) for text in ("abc", "日本", "e\u0301", "")] == [3, 4, 1, 0]
