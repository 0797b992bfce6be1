"""Pages that are built to bring a parser down, or badly written, are read in little time and as browsers show them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.tools.documents.html import read_html

PIECES = (
    "<!", "<a ", "</a", "<!--", "-->", "<a href='", "<a href='>", "<a 'b='>", "<a b='c>'d='>", "<a b= '", "<![", "<?",
    "<a =>", "</a '>", "<a href=x'>", "<p", "<style><", "&#", "<a></b>", "<td>", "=  ",
)  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_no_page_takes_long(piece: str) -> None:
    begun = time.process_time()
    read_html((piece * 100_000)[:100_000])
    assert time.process_time() - begun < 2  # without care some of them take minutes


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>1 < 2 and 3 > 2</p>", "1 < 2 and 3 > 2"),
        ("a<!-- <b>hidden</b> -->b", "ab"),
        ("a<!-- never closed <p>hidden", "a"),
        ("<![if !mso]>seen<![endif]>", "seen"),
        ("<!DOCTYPE html><?xml version='1.0'?>seen", "seen"),
        ("<a href='x>y'>l</a>", "[l](x>y)"),
        ('<a title="it\'s" href = "x">l</a>', "[l](x)"),
        ("<p>a <b unclosed", "a <b unclosed"),
    ],
)
def test_odd_pages_are_read_as_they_are_shown(page: str, text: str) -> None:
    assert read_html(page).text == text


@given(st.lists(st.sampled_from([*PIECES, "x", " ", ">", "'", '"', "\n"]), max_size=30))
def test_no_page_brings_it_down(pieces: list[str]) -> None:
    read_html("".join(pieces))
