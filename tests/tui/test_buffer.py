"""The editor's document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_tui.editor.buffer import Buffer

TEXTS = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\r\n\f\v\x1c\x85\u2028\t")))


@given(TEXTS)
def test_lines_rejoin_to_the_text(text: str) -> None:
    buffer = Buffer(text)
    assert buffer.newline.join(buffer.lines) == buffer.text == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a\r\nb\r\n", ["a", "b", ""]),
        ("a\r\nb\n", ["a\r", "b", ""]),
        ("a\fb\u2028c", ["a\fb\u2028c"]),
        ("\r", ["\r"]),
    ],
)
def test_only_a_line_feed_ends_a_line_and_crlf_where_all_do(text: str, lines: list[str]) -> None:
    assert Buffer(text).lines == lines


@given(TEXTS, TEXTS, st.data())
def test_an_edit_replaces_its_range_and_can_be_taken_back(text: str, inserted: str, data: st.DataObject) -> None:
    buffer = Buffer(text)
    rows = st.integers(0, len(buffer.lines) - 1)
    places = [(row, data.draw(st.integers(0, len(buffer.lines[row])))) for row in (data.draw(rows), data.draw(rows))]
    start, end = sorted(places)
    result = buffer.replace_range(start, end, inserted)
    buffer.replace_range(start, result.end_location, result.replaced_text)
    assert buffer.text == text


def test_a_typed_line_feed_takes_the_file_s_line_ends() -> None:
    buffer = Buffer("a\r\nb")
    buffer.replace_range((0, 1), (0, 1), "\nx\r\ny")
    assert buffer.text == "a\r\nx\r\ny\r\nb"


@given(TEXTS, TEXTS)
def test_the_size_after_an_edit_is_that_of_a_fresh_document(text: str, inserted: str) -> None:
    buffer = Buffer(text)
    buffer.get_size(4)
    buffer.replace_range((0, 0), (0, 0), inserted)
    fresh = Buffer("")
    fresh.replace_range((0, 0), (0, 0), buffer.text) if buffer.newline == "\n" else None
    if buffer.newline == "\n":
        assert buffer.get_size(4) == fresh.get_size(4)
