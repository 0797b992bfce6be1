"""Position arithmetic: code points, units of an encoding, terminal cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang import Source, decode
from halo_lang.assist.positions import (
    Encoding,
    Place,
    cell_of,
    cells,
    index_at,
    index_at_cell,
    offset_of,
    place_of,
    units,
)

ANY_TEXT = st.text(
    st.sampled_from("ab é\u0301漢😀\U0001f469\u200d\U0001f680\t\r\n\ud800\udfff\u00a0\ufe0f"), max_size=30
) | st.text(max_size=30)
ENCODINGS = st.sampled_from(Encoding)


@pytest.mark.parametrize(
    ("text", "utf8", "utf16", "utf32"),
    [
        ("", 0, 0, 0),
        ("abc", 3, 3, 3),
        ("é", 2, 1, 1),
        ("e\u0301", 3, 2, 2),
        ("漢", 3, 1, 1),
        ("😀", 4, 2, 1),
        ("👩\u200d🚀", 11, 5, 3),
        ("\ud800", 3, 1, 1),
    ],
    ids=["empty", "ascii", "two-bytes", "combining", "wide", "emoji", "joined", "lone-surrogate"],
)
def test_a_text_takes_units_of_each_encoding(text: str, utf8: int, utf16: int, utf32: int) -> None:
    assert [units(text, encoding) for encoding in Encoding] == [utf8, utf16, utf32]


@pytest.mark.parametrize(
    ("column", "index"),
    [(-1, 0), (0, 0), (1, 1), (2, 1), (3, 2), (4, 3), (99, 3)],
    ids=["before", "first", "second", "inside-a-pair", "behind-it", "end", "beyond"],
)
def test_units_lead_to_the_character_they_are_in(column: int, index: int) -> None:
    assert index_at("a😀b", column, Encoding.UTF16) == index


@pytest.mark.parametrize(
    ("offset", "place"),
    [
        (0, Place(0, 0)),
        (2, Place(0, 3)),
        (3, Place(0, 3)),
        (4, Place(1, 0)),
        (5, Place(1, 1)),
        (-5, Place(0, 0)),
        (99, Place(2, 0)),
    ],
    ids=["start", "line-end", "inside-the-break", "next-line", "in-it", "before", "beyond"],
)
def test_an_offset_has_a_place_in_a_file_with_crlf(offset: int, place: Place) -> None:
    assert place_of(Source("a😀\r\nbc\n"), offset) == place


def test_a_place_outside_the_text_is_its_nearest_end() -> None:
    source = Source("ab\r\ncd")
    assert [offset_of(source, place) for place in (Place(-1, 9), Place(0, 9), Place(1, 9), Place(9, 0))] == [0, 2, 6, 6]


def test_a_carriage_return_in_a_line_is_a_character() -> None:
    source = Source("a\rb\r\r\nc")
    assert [place_of(source, offset) for offset in (2, 4, 6)] == [Place(0, 2), Place(0, 4), Place(1, 0)]


def test_a_byte_order_mark_takes_no_place() -> None:
    source = decode("\ufeffab".encode())
    assert (place_of(source, 1), offset_of(source, Place(0, 1))) == (Place(0, 1), 1)


@given(ANY_TEXT, ENCODINGS, st.data())
def test_an_offset_and_its_place_tell_each_other(text: str, encoding: Encoding, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    inside_break = text[offset - 1 : offset + 1] == "\r\n" and offset > 0
    source = Source(text)
    assert offset_of(source, place_of(source, offset, encoding), encoding) == offset - inside_break


@given(ANY_TEXT, ENCODINGS, st.integers(-3, 200), st.integers(-3, 200))
def test_every_place_has_an_offset_in_its_line(text: str, encoding: Encoding, line: int, column: int) -> None:
    source = Source(text)
    offset = offset_of(source, Place(line, column), encoding)
    found = place_of(source, offset, encoding)
    assert 0 <= offset <= len(text)
    assert found.line == max(0, min(line, len(source.line_starts) - 1))


@pytest.mark.parametrize(
    ("line", "index", "cell"),
    [
        ("abc", 2, 2),
        ("\tx", 1, 4),
        ("ab\tx", 3, 4),
        ("abcd\tx", 5, 8),
        ("漢\tx", 2, 4),
        ("漢字x", 2, 4),
        ("e\u0301x", 2, 1),
        ("😀x", 1, 2),
        ("👩\u200dx", 2, 2),
        ("❤\ufe0fx", 2, 1),
    ],
    ids=[
        "ascii",
        "tab",
        "tab-inside",
        "tab-at-a-stop",
        "tab-behind-wide",
        "wide",
        "mark",
        "emoji",
        "joiner",
        "variant",
    ],
)
def test_a_character_begins_in_a_cell(line: str, index: int, cell: int) -> None:
    assert cell_of(line, index) == cell
    assert line[index_at_cell(line, cell)] in "cx"


def test_every_cell_of_a_wide_character_or_tab_is_its_own() -> None:
    assert [index_at_cell("漢\tx", cell) for cell in (-1, 0, 1, 2, 3, 4, 5)] == [0, 0, 0, 1, 1, 2, 3]


@given(ANY_TEXT.filter(lambda text: "\n" not in text), st.integers(1, 8), st.data())
def test_the_caret_is_on_a_character_that_begins_there(line: str, tab_size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(line)))
    cell = cell_of(line, index, tab_size)
    found = index_at_cell(line, cell, tab_size)
    assert found >= index
    assert cell_of(line, found, tab_size) == cell


@given(ANY_TEXT.filter(lambda text: "\t" not in text))
def test_without_tabs_a_line_is_as_wide_as_its_text(line: str) -> None:
    assert cell_of(line, len(line)) == cells(line)
