"""Text for the screen."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.json_types import Json
from halo_tui.editor.signs import with_signs
from halo_tui.models.lines import PREVIEW_WIDTH, duration, money, one_line, pretty, preview, visible


@given(st.text())
def test_no_text_keeps_a_character_that_a_terminal_obeys(text: str) -> None:
    for shown in (visible(text), one_line(text), pretty(text), preview(text)):
        assert not any((ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 for c in shown)


@given(st.text())
def test_signs_stand_one_for_one_so_that_columns_stay(text: str) -> None:
    shown = with_signs(text)
    assert len(shown) == len(text)
    assert all(c == "\t" or (ord(c) >= 32 and not 127 <= ord(c) < 160) for c in shown)


def test_control_characters_are_seen_in_the_editor() -> None:
    assert with_signs("a\x1b[31m\x7f\u202e\tb") == "a␛[31m␡�\tb"


def test_one_line_is_cut_with_an_ellipsis() -> None:
    assert one_line("a\nb") == "a⏎b"
    assert len(one_line("x" * 1_000_000)) == PREVIEW_WIDTH


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": 1, "b": 2}, "{2 fields}"),
        ({}, "{0 fields}"),
        ([1], "[1 item]"),
        ("[/red]", '"[/red]"'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
    ],
)
def test_previews(value: Json, shown: str) -> None:
    assert preview(value) == shown


def test_values_for_reading_are_text_or_indented_json() -> None:
    assert pretty("a\nb") == "a\nb"
    assert pretty({"a": "ü"}) == '{\n  "a": "ü"\n}'


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0002, "<1ms"), (0.0204, "20ms"), (3.21, "3.2s"), (125, "2m05s"), (3725, "1h02m")],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_money_shows_small_amounts_too() -> None:
    assert money(Decimal("1.5")) == "$1.50"
    assert money(Decimal("0.0003")) == "$0.0003"
