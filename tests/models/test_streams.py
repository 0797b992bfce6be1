"""Lines and server-sent events, however the bytes are cut."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_runtime.models.streams import Event, Events, Lines
from halo_runtime.models.surrogates import Mended, valid_text

TEXTS = st.text(st.sampled_from("ab:é😀 \n\r\u2028\x85\x0b\x0c\ufeff"), max_size=40)
STREAMS = st.lists(
    st.sampled_from(["data: a", "data:b", "data", "event: x", "event", "id: 1", ": ping", "dat: c", "data:  é\u2028"]),
    max_size=12,
).flatmap(
    lambda lines: st.tuples(*(st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\r", "\r\n\r\n"]) for _ in lines)).map(
        lambda ends: "".join(line + end for line, end in zip(lines, ends, strict=True))
    )
)


def lines(parts: list[bytes]) -> list[str]:
    decoder = Lines()
    return [line for part in parts for line in decoder.feed(part)] + decoder.end()


def events(parts: list[bytes]) -> list[Event]:
    decoder = Events()
    return [event for part in parts for event in decoder.feed(part)] + decoder.end()


def pieces(text: str, cuts: list[int]) -> list[bytes]:
    whole = text.encode()
    places = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]
    return [whole[start:end] for start, end in pairwise(places)]


@given(TEXTS, st.lists(st.integers(0, 200), max_size=8))
@settings(max_examples=150)
def test_lines_end_at_line_ends_only_wherever_the_bytes_are_cut(text: str, cuts: list[int]) -> None:
    expected = re.split("\r\n|\n|\r", text.removeprefix("\ufeff"))
    if not expected[-1]:
        expected.pop()
    assert lines(pieces(text, cuts)) == expected


@given(STREAMS, st.lists(st.integers(0, 400), max_size=8))
@settings(max_examples=150)
def test_events_are_the_same_wherever_the_bytes_are_cut(text: str, cuts: list[int]) -> None:
    assert events(pieces(text, cuts)) == events([text.encode()])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data: a\n\n", [Event("message", "a")]),
        ("event: x\ndata: a\n\ndata: b\n\n", [Event("x", "a"), Event("message", "b")]),
        ("data: a\ndata:\ndata:  b\n\n", [Event("message", "a\n\n b")]),
        (": ping\n\n:\ndata: a\r\r\n", [Event("message", "a")]),
        ("event: x\n\nid: 1\nretry: 3\n\n", []),
        ("data\n\n", [Event("message", "")]),
        ("data: a\n\ndata: b", [Event("message", "a"), Event("message", "b")]),
        ("\ufeffdata: a\n\n", [Event("message", "a")]),
        ('data: "\u2028\x85"\n\n', [Event("message", '"\u2028\x85"')]),
    ],
)
def test_events_are_read_by_the_standard(text: str, expected: list[Event]) -> None:
    assert events([text.encode()]) == expected
    assert events([bytes([byte]) for byte in text.encode()]) == expected


@pytest.mark.parametrize("part", [b"a\xff", b"\xe2\x82b", b"\xed\xa0\xbd\n"])
def test_bytes_that_are_no_utf_8_are_an_error(part: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        lines([b"x\n", part])


def test_a_character_that_was_begun_when_the_stream_ended_is_seen() -> None:
    assert lines([b"a\n\xf0\x9f"]) == ["a", "\ufffd"]


@given(st.text(st.sampled_from("ab\ud83d\ude00\udbff\udc00😀é"), max_size=20), st.data())
@settings(max_examples=150)
def test_text_in_pieces_is_mended_as_the_whole_is(text: str, data: st.DataObject) -> None:
    shown: list[str] = []
    mended, rest = Mended(shown.append), text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        mended.feed(rest[:size])
        rest = rest[size:]
    mended.end()
    assert "".join(shown) == valid_text(text) == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    "".join(shown).encode()


def test_a_line_is_handed_out_as_soon_as_it_ends() -> None:
    decoder = Lines()
    assert decoder.feed(b"a\nb") == ["a"]
    assert decoder.feed(b"\r") == []
    assert decoder.feed(b"\nc\n") == ["b", "c"]
