"""Colours of a changing text are those of the text coloured as a whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from halo_lang.highlight import START, ColouredSpan, highlight_line
from halo_tui.editor.buffer import Buffer
from halo_tui.editor.colours import FAR, Colours

PIECES = ['"""', "/*", "*/", "agent A [o-1]", "\n", '"', "// c", "|> A.b()", "pipeline P(x: String) -> Result:", " "]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
EDITS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30), TEXTS), max_size=6)


def whole(lines: list[str]) -> list[tuple[ColouredSpan, ...]]:
    state, rows = START, []
    for line in lines:
        spans, state = highlight_line(line, state)
        rows.append(spans)
    return rows


def place(buffer: Buffer, index: int) -> tuple[int, int]:
    row = 0
    while row < len(buffer.lines) - 1 and index > len(buffer.lines[row]):
        index -= len(buffer.lines[row]) + 1
        row += 1
    return row, min(index, len(buffer.lines[row]))


@given(TEXTS, EDITS, st.integers(0, 5))
def test_after_any_edits_every_line_has_the_colours_of_the_whole_text(
    text: str, edits: list[tuple[int, int, str]], looked_at: int
) -> None:
    buffer = Buffer(text)
    colours = Colours(buffer.lines)
    buffer.on_splice = colours.spliced
    for start, length, inserted in edits:
        buffer.replace_range(place(buffer, start), place(buffer, start + length), inserted)
        colours.spans(min(looked_at, len(buffer.lines) - 1))
    assert [colours.spans(row) for row in range(len(buffer.lines))] == whole(buffer.lines)


def test_an_edit_inside_a_long_text_lexes_only_its_line() -> None:
    buffer = Buffer("agent A [o-1]\n" * 1_000)
    colours = Colours(buffer.lines)
    buffer.on_splice = colours.spliced
    colours.advance(2_000)
    buffer.replace_range((500, 0), (500, 0), "x")
    colours.advance(1)
    assert colours.complete


def test_a_line_far_below_is_coloured_before_all_above_it_is_lexed() -> None:
    lines = ["agent A [o-1]"] * (FAR * 3)
    colours = Colours(lines)
    assert colours.spans(FAR * 3 - 1) == highlight_line(lines[0], START)[0]
    assert not colours.complete
