"""The workbench as a person uses it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from textual.widgets import Input

from halo_tui.editor.area import Editor
from halo_tui.screens import checking
from halo_tui.screens.arguments import Arguments
from halo_tui.screens.dialogs import Choose, Confirm, Help
from halo_tui.screens.question import Ask
from halo_tui.themes import DARK, LIGHT
from halo_tui.widgets.bars import Status
from halo_tui.widgets.panes import Problems

OpenBench = Callable[..., AbstractAsyncContextManager]  # type: ignore[type-arg] - of a Bench, see conftest

HELLO = """agent Bot [openai/gpt-4o-mini]

pipeline Main() -> Result:
  "hello" |> Bot.answer() as said
"""
ASKING = """agent Bot [openai/gpt-4o-mini]

pipeline Main() -> Result:
  "hello"
    |> Bot.answer() as said
    |! yield("Send {{said}}?") as decision
    |? (context.data.decision == "yes")
    |> System.Value("sent")
"""
COUNT = "pipeline Main(count: Number) -> Result:\n  count |> System.Value(count)\n"
BROKEN = "pipeline Main() -> Result:\n  1 |> Nobody.say()\n"


async def test_a_program_opens_with_its_text_and_its_problems(bench: OpenBench) -> None:
    async with bench(BROKEN) as b:
        await b.until_shown("HL203")
        assert "1 |> Nobody.say()" in b.text()
        assert "main.halo" in b.text()


async def test_every_pane_says_what_it_is_for_before_the_first_run(bench: OpenBench) -> None:
    async with bench(HELLO, size=(90, 24)) as b:
        for key, text in (
            ("2", "its stages appear here"),
            ("3", "The output of a run"),
            ("4", "context.data of a run"),
        ):
            await b.press(f"alt+{key}")
            await b.until_shown(text)


async def test_a_narrow_screen_that_runs_at_once_shows_the_program_first_and_then_the_output(bench: OpenBench) -> None:
    async with bench(ASKING, {"Bot": "mail"}, size=(80, 24), run=True) as b:
        await b.until_open(Ask)
        assert b.screen.editor.is_on_screen
        await b.press("enter")
        await b.until_shown("✓ completed")
        assert not b.screen.editor.is_on_screen


async def test_a_tall_screen_has_the_data_in_sight_below_the_output(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": "Good morning"}, size=(120, 40)) as b:
        await b.press("f5")
        await b.until_shown("✓ completed")
        assert 'said  "Good morning"' in b.text()


async def test_problems_go_when_they_are_mended(bench: OpenBench) -> None:
    async with bench(BROKEN) as b:
        await b.until(lambda: b.screen.query_one(Problems).items)
        b.screen.query_one(Editor).load_text(HELLO)
        await b.until_shown("No problems")


async def test_f8_puts_the_cursor_on_the_next_problem(bench: OpenBench) -> None:
    async with bench(BROKEN) as b:
        await b.press("f8")
        assert b.screen.editor.cursor_location == (1, 7)


async def test_enter_in_the_list_goes_to_the_problem(bench: OpenBench) -> None:
    async with bench(BROKEN) as b:
        await b.press("f6", "enter")
        assert b.screen.editor.has_focus
        assert b.screen.editor.cursor_location == (1, 7)


async def test_f5_runs_to_the_output_with_the_replies_beside_the_program(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": "Good morning"}) as b:
        await b.press("f5")
        await b.until_shown("Good morning")
        assert "✓ completed" in b.text()
        await b.press("alt+2")
        assert "✓ |> Bot.answer" in b.text()
        await b.press("alt+4")
        assert 'said  "Good morning"' in b.text()


async def test_a_program_with_errors_does_not_run(bench: OpenBench) -> None:
    async with bench(BROKEN, {"Bot": "x"}) as b:
        await b.press("f5")
        await b.until_shown("The program has errors")
        assert b.screen.session.view.status == "idle"


async def test_a_question_is_answered_in_its_form_and_the_run_completes(bench: OpenBench) -> None:
    async with bench(ASKING, {"Bot": "[bold]mail[/bold]"}) as b:
        await b.press("f5")
        await b.until_open(Ask)
        assert "Send [bold]mail[/bold]?" in b.text()
        await b.press("enter")
        await b.until_shown("✓ completed")
        assert b.screen.session.view.output == "sent"


async def test_a_typed_answer_is_sent_as_it_is(bench: OpenBench) -> None:
    async with bench(ASKING, {"Bot": "mail"}) as b:
        await b.press("f5")
        await b.until_open(Ask)
        b.app.screen.query_one(Input).focus()
        await b.press("n", "o", "enter")
        await b.until_shown("■ halted")


async def test_what_is_no_json_is_refused_in_the_form(bench: OpenBench) -> None:
    program = 'pipeline Main() -> Result:\n  "x"\n    ~> listen(UI.Click)\n'
    async with bench(program, {}) as b:
        await b.press("f5")
        await b.until_open(Ask)
        await b.press(*"{x", "enter")
        assert "no JSON" in b.text()
        b.app.screen.query_one(Input).value = '{"at": 3}'
        await b.press("enter")
        await b.until_shown("✓ completed")
        assert b.screen.session.view.output == {"at": 3}


async def test_a_question_left_for_later_pauses_the_run_and_f4_answers_it(bench: OpenBench) -> None:
    async with bench(ASKING, {"Bot": "mail"}) as b:
        await b.press("f5")
        await b.until_open(Ask)
        b.app.screen.query_one("#later").press()
        await b.until(lambda: b.screen.session.view.status == "paused")
        await b.press("f4")
        await b.until_open(Ask)
        await b.press("enter")
        await b.until_shown("✓ completed")


async def test_a_failing_run_is_shown_and_the_editor_goes_on(bench: OpenBench) -> None:
    async with bench('pipeline Main() -> Result:\n  1 |> System.Fail("no [/way]")\n', {}) as b:
        await b.press("f5")
        await b.until_shown("ProgramFailure")
        assert "no [/way]" in b.text()
        await b.press("alt+1", "x")
        assert b.screen.document.text.startswith("x")


async def test_replies_that_cannot_be_read_fail_the_run_with_the_reason(bench: OpenBench, tmp_path: Path) -> None:
    async with bench(HELLO) as b:
        (tmp_path / "main.replies.json").write_text("{")
        await b.press("f5")
        await b.until_shown("✗ failed")
        assert "main.replies.json" in b.text()


@pytest.mark.parametrize("reply", ["[/path] [red]", "a\x1b[31mb", "\x00", "]]][[", "x" * 100_000])
async def test_what_a_model_says_is_shown_and_never_obeyed(bench: OpenBench, reply: str) -> None:
    async with bench(HELLO, {"Bot": reply}) as b:
        await b.press("f5")
        await b.until_shown("✓ completed")
        await b.press("alt+4", "alt+2", "alt+3")
        assert b.screen.session.view.output == reply
        assert "\x1b" not in b.text()


async def test_a_form_asks_for_the_arguments_and_remembers_them(bench: OpenBench) -> None:
    async with bench(COUNT, {}, inputs={"count": "many"}) as b:
        await b.press("f5")
        await b.until_open(Arguments)
        await b.press("enter")
        assert "count takes a Number" in b.text()
        b.app.screen.query_one(Input).value = "7"
        await b.press("enter")
        await b.until_shown("✓ completed")
        await b.press("f5")
        await b.until_open(Arguments)
        assert b.app.screen.query_one(Input).value == "7"


async def test_asked_to_run_at_once_it_runs_with_the_arguments_given(bench: OpenBench) -> None:
    async with bench(COUNT, {}, inputs={"count": "7"}, run=True) as b:
        await b.until_shown("✓ completed")
        assert b.screen.session.view.output == 7
        await b.press("f5")
        await b.until_open(Arguments)


@pytest.mark.parametrize("inputs", [{}, {"count": "many"}])
async def test_asked_to_run_at_once_it_asks_for_what_is_missing_or_wrong(
    bench: OpenBench, inputs: dict[str, str]
) -> None:
    async with bench(COUNT, {}, inputs=inputs, run=True) as b:
        await b.until_open(Arguments)


async def test_a_program_with_errors_that_is_to_run_at_once_is_opened_at_the_first(bench: OpenBench) -> None:
    async with bench(BROKEN, {}, run=True) as b:
        await b.until(lambda: b.screen.editor.cursor_location == (1, 7))


async def test_a_question_does_not_open_under_the_fingers_of_who_types(
    bench: OpenBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "TYPING", 1_000.0)
    async with bench(ASKING, {"Bot": "mail"}) as b:
        await b.press("end", "enter", "f5")
        await b.until_shown("? waiting")
        assert not isinstance(b.app.screen, Ask)
        monkeypatch.setattr(checking, "TYPING", 0.0)
        await b.until(lambda: isinstance(b.app.screen, Ask))


async def test_results_are_known_while_the_run_goes_on(bench: OpenBench) -> None:
    async with bench(ASKING, {"Bot": "Good morning"}) as b:
        await b.press("f5")
        await b.until_open(Ask)
        await b.press("escape", "alt+4")
        await b.until_shown('said  "Good morning"')
        assert b.screen.session.view.status == "waiting"


async def test_several_pipelines_are_offered(bench: OpenBench) -> None:
    program = "pipeline A() -> Result:\n  1 |> System.Value(1)\n\npipeline B() -> Result:\n  2 |> System.Value(2)\n"
    async with bench(program, {}) as b:
        await b.press("f5")
        await b.until_open(Choose)
        await b.press("down", "enter")
        await b.until_shown("✓ completed")
        assert b.screen.session.view.output == 2


async def test_shift_f5_stops_a_run_and_keeps_what_it_did(bench: OpenBench) -> None:
    program = 'pipeline Main() -> Result:\n  "x" |> System.Value("kept") as first |> System.Sleep(1h)\n'
    async with bench(program, {}) as b:
        await b.press("f5")
        await b.until(lambda: len(list(b.screen.session.view.rows())) == 2)
        await b.press("shift+f5")
        await b.until(lambda: b.screen.session.view.status == "interrupted")
        assert b.screen.session.view.data["first"] == "kept"


async def test_quitting_a_clean_workbench_asks_nothing(bench: OpenBench) -> None:
    async with bench(HELLO) as b:
        await b.press("ctrl+q")
        await b.until(lambda: b.app._exit)


async def test_quitting_with_unsaved_text_asks_and_names_the_file(bench: OpenBench, tmp_path: Path) -> None:
    async with bench(HELLO) as b:
        await b.press("x", "ctrl+q")
        await b.until_open(Confirm)
        assert "main.halo has changes" in b.text()
        await b.press("enter")
        await b.until(lambda: b.app._exit)
    assert (tmp_path / "main.halo").read_text().startswith("x")


async def test_ctrl_s_saves(bench: OpenBench, tmp_path: Path) -> None:
    async with bench(HELLO) as b:
        await b.press("x", "ctrl+s")
        await b.until(lambda: not b.screen.document.dirty)
    assert (tmp_path / "main.halo").read_text() == "x" + HELLO


async def test_saving_over_another_program_s_change_asks_first(bench: OpenBench, tmp_path: Path) -> None:
    async with bench(HELLO) as b:
        (tmp_path / "main.halo").write_text("theirs, longer than before")
        await b.press("x", "ctrl+s")
        await b.until_open(Confirm)
        await b.press("escape")
        await b.until(lambda: not isinstance(b.app.screen, Confirm))
        assert b.screen.document.dirty
    assert (tmp_path / "main.halo").read_text().startswith("theirs")


async def test_help_lists_every_action_with_its_key(bench: OpenBench) -> None:
    async with bench(HELLO, size=(120, 50)) as b:
        await b.press("f1")
        await b.until_open(Help)
        for text in ("Stop the run", "Shift+F5", "Next problem", "Ctrl+S"):
            assert text in b.text()
        await b.press("escape")
        assert not isinstance(b.app.screen, Help)


async def test_the_palette_finds_an_action_and_shows_its_key(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": "hi"}) as b:
        await b.press("ctrl+p", *"stages")
        await b.until_shown("Show the stages")
        assert "Alt+2" in b.text()


async def test_a_narrow_screen_shows_one_pane_at_a_time(bench: OpenBench) -> None:
    async with bench(HELLO, {"Bot": "Good morning"}) as b:
        await b.pilot.resize_terminal(80, 24)
        await b.until(lambda: b.screen.has_class("-narrow"))
        assert "pipeline Main() -> Result:" in b.text()
        assert "runs the program" not in b.text()
        await b.press("f5")
        await b.until_shown("Good morning")
        assert "pipeline Main() -> Result:" not in b.text()
        await b.press("alt+1")
        assert "pipeline Main() -> Result:" in b.text()


@pytest.mark.parametrize("size", [(20, 6), (40, 12), (99, 24), (200, 50)])
async def test_every_size_and_both_themes_draw(bench: OpenBench, size: tuple[int, int]) -> None:
    async with bench(ASKING, {"Bot": "mail"}, size=size) as b:
        await b.press("f5")
        await b.until_open(Ask)
        await b.press("escape")
        b.screen.action_palette()
        await b.pilot.pause()
        await b.press("escape")
        b.screen.action_switch_theme()
        await b.press("f1", "escape", "f6", "f6", "f6", "f6", "f6")
        assert b.app.is_running


async def test_it_opens_in_the_dark_theme_and_switches_to_the_light_one(bench: OpenBench) -> None:
    async with bench(HELLO) as b:
        ground = b.screen.query_one(Status).styles
        assert ground.background.hex.lower() == DARK.panel
        b.screen.action_switch_theme()
        await b.until(lambda: ground.background.hex.lower() == LIGHT.panel)


async def test_keys_pressed_twice_open_a_form_once(bench: OpenBench) -> None:
    async with bench(ASKING, {"Bot": "mail"}) as b:
        await b.press("f1", "f1", "f5", "f5")
        await b.until_open(Ask)
        await b.press("f4", "f5", "f8", "ctrl+s")
        assert sum(isinstance(screen, Ask) for screen in b.app.screen_stack) == 1
