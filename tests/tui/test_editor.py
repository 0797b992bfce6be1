"""The editor widget: what it draws after edits, and what it never does to a text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from textual._wait import wait_for_idle
from textual.events import Key, Paste
from textual.geometry import Region
from textual.strip import Strip

from halo_tui.editor.area import Editor
from halo_tui.models.marks import GutterMark, Underline

OpenBench = Callable[..., AbstractAsyncContextManager]  # type: ignore[type-arg] - of a Bench, see conftest

TEXT = 'agent Bot [openai/gpt-4o-mini]\n  system "be kind"\n\npipeline Main() -> Result:\n  "hi" |> Bot.say()\n'


def drawn(editor: Editor) -> list[Strip]:
    return editor.render_lines(Region(0, 0, editor.size.width, editor.size.height))


@pytest.fixture
async def editor(bench: OpenBench) -> AsyncIterator[Editor]:
    async with bench(TEXT, size=(100, 24)) as opened:
        yield opened.screen.editor


@pytest.mark.parametrize(
    "edits",
    [
        [((0, 0), (0, 0), "x")],
        [((1, 0), (1, 0), '"""'), ((4, 0), (4, 0), '"""'), ((1, 0), (1, 3), "")],
        [((0, 0), (2, 0), ""), ((0, 0), (0, 0), "\n/*\n"), ((3, 2), (3, 2), "*/")],
        [((4, 0), (4, 19), ""), ((3, 0), (4, 0), "")],
        [((2, 0), (2, 0), "a\tb\x1b[31mc")],
    ],
)
async def test_rows_drawn_after_edits_are_those_drawn_afresh(editor: Editor, edits: list) -> None:  # type: ignore[type-arg]
    for start, end, text in edits:
        drawn(editor)
        editor.replace(text, start, end)
        kept = drawn(editor)
        editor.notify_style_update()
        assert kept == drawn(editor)
    editor.undo()
    kept = drawn(editor)
    editor.notify_style_update()
    assert kept == drawn(editor)


async def test_the_line_of_the_cursor_keeps_its_colours(editor: Editor) -> None:
    colours = {segment.text: segment.style.color for segment in drawn(editor)[0] if segment.style}
    editor.move_cursor((2, 0))
    assert {s.text: s.style.color for s in drawn(editor)[0] if s.style}.items() >= {"Bot": colours["Bot"]}.items()
    assert colours["Bot"] != colours[" ["]


async def test_a_problem_is_underlined_and_marked_beside_its_number(editor: Editor) -> None:
    editor.show_underlines({3: (Underline(9, 13, "error"),)})
    editor.show_gutter({3: GutterMark("●", "error")})
    row = drawn(editor)[3]
    assert "4●" in row.text
    assert [segment.text for segment in row if segment.style and segment.style.underline] == ["Main"]


async def test_escape_sequences_in_a_file_are_signs_on_the_screen(editor: Editor) -> None:
    editor.load_text("a\x1b]52;c;AAAA\x07b")
    assert "a␛]52;c;AAAA␇b" in drawn(editor)[0].text
    assert editor.text == "a\x1b]52;c;AAAA\x07b"


async def test_undo_gives_the_text_back_exactly(editor: Editor) -> None:
    editor.load_text("a\fb\r\nc\u2028d\n")
    editor.replace("", (0, 0), (1, 1))
    editor.undo()
    assert editor.text == "a\fb\r\nc\u2028d\n"


async def test_a_paste_keeps_its_lines_and_is_one_step_to_undo(editor: Editor) -> None:
    editor.load_text("")
    editor.post_message(Paste("one\r\n  two\rthree\n"))
    await wait_for_idle(0)
    assert editor.text == "one\n  two\nthree\n"
    editor.undo()
    assert editor.text == ""


async def test_keys_that_come_together_take_effect_in_their_order(editor: Editor) -> None:
    editor.load_text("abc")
    for key in ("end", "backspace", "x", "home", "y", "right", "z"):
        editor.app.post_message(Key(key, key if len(key) == 1 else None))
    await wait_for_idle(0)
    assert editor.text == "yazbx"
