"""Lines and server-sent events, however the bytes are cut."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_runtime.models.streams import Event, Events, Lines

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


def test_bytes_that_are_no_utf_8_become_replacement_characters() -> None:
    assert lines([b"a\xff\xe2\x82", b"b\n\xf0\x9f"]) == ["a\ufffd\ufffdb", "\ufffd"]


def test_a_line_is_handed_out_as_soon_as_it_ends() -> None:
    decoder = Lines()
    assert decoder.feed(b"a\nb") == ["a"]
    assert decoder.feed(b"\r") == []
    assert decoder.feed(b"\nc\n") == ["b", "c"]
