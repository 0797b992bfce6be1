"""Replies on a real terminal while they stream: they are seen as they come, and nothing in them is obeyed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import KEY, FakeOpenAI, chunk, events
from tests.terminal import Terminal

pytestmark = pytest.mark.terminal

HALO = Path(sys.executable).with_name("halo")
AGENT = "agent Bot [openai/gpt-4o-mini]"
MAIN = "\n\npipeline Main() -> Result:\n  |> Bot.answer()\n"
HOSTILE = "\x1b]2;OWNED\x07\x1b]52;c;T1dORUQ=\x07\x1b[2J\x1b[?1049h\x9b2J\x00\r\u202e[bold]shown[/bold]"
SHOWN = r"OWNED\x07\x1b]52;c;T1dORUQ=\x07\x1b[2J\x1b[?1049h\x9b2J\x00"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "main.halo").write_text(AGENT + MAIN)
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def assert_untouched(terminal: Terminal) -> None:
    assert "OWNED" not in terminal.flag("pane_title")
    assert terminal.flag("alternate_on") == "0"
    assert terminal.clipboard() == ""


def test_the_terminal_of_these_tests_would_obey(terminal: Terminal) -> None:
    terminal.type(r"printf '\033]2;OWNED\007\033]52;c;T1dORUQ=\007'; echo done", "Enter")
    terminal.until("\ndone")
    assert (terminal.flag("pane_title"), terminal.clipboard()) == ("OWNED", "OWNED")


async def test_text_is_seen_before_the_run_ends_and_a_stop_leaves_a_clean_line(terminal: Terminal) -> None:
    async with FakeOpenAI() as service:
        service.answer(events(*(chunk({"content": text}) for text in ("Once upon ", "a time")), done=False, hang=True))
        terminal.type(f"clear; OPENAI_BASE_URL={service.url} OPENAI_API_KEY={KEY} {HALO} run main.halo", "Enter")
        await asyncio.to_thread(terminal.until, "│ Once upon a time")
        terminal.type("C-c")
        await asyncio.to_thread(terminal.until, "interrupted: ")
        await asyncio.wait_for(service.left.wait(), 10)
        assert "Once upon" not in terminal.screen()


async def test_nothing_that_streams_is_obeyed(terminal: Terminal) -> None:
    async with FakeOpenAI() as service:
        service.answer(events(chunk({"content": HOSTILE}), done=False, hang=True))
        terminal.type(f"clear; OPENAI_BASE_URL={service.url} OPENAI_API_KEY={KEY} {HALO} run main.halo", "Enter")
        await asyncio.to_thread(terminal.until, r"\u202e[bold]shown[/bold]")
        assert SHOWN in terminal.screen()
        assert_untouched(terminal)
        terminal.type("C-c")
        await asyncio.to_thread(terminal.until, "interrupted: ")


@pytest.mark.parametrize("options", ["", "--quiet", "--json"])
def test_nothing_of_an_output_is_obeyed(terminal: Terminal, tmp_path: Path, options: str) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"Bot": HOSTILE}))
    terminal.type(f"clear; {HALO} run main.halo --replies r.json {options}; echo left with $?", "Enter")
    terminal.until("left with 0")
    assert "[bold]shown[/bold]" in terminal.screen().replace("\n", "")
    assert_untouched(terminal)


def test_not_on_a_terminal_the_output_is_exact_and_no_half_line_is_told(terminal: Terminal, tmp_path: Path) -> None:
    reply = {"delay": "200ms", "reply": HOSTILE + " two three"}
    (tmp_path / "r.json").write_text(json.dumps({"Bot": reply}))
    terminal.type(f"clear; {HALO} run main.halo --replies r.json >out 2>err; echo left with $?", "Enter")
    terminal.until("left with 0")
    assert (tmp_path / "out").read_bytes().decode() == HOSTILE + " two three\n"
    assert [line.split(":")[0] for line in (tmp_path / "err").read_text().splitlines()] == ["line 4", "completed"]


def test_with_rules_for_answers_nothing_is_seen_before_they_have_passed(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "main.halo").write_text(f"policy Short : MaxLength(20)\n{AGENT}\n  requires Short{MAIN}")
    replies = {"Bot": {"delay": "1500ms", "reply": "this one is seen by nobody, since it is too long"}}
    (tmp_path / "r.json").write_text(json.dumps(replies))
    terminal.type(f"clear; {HALO} run main.halo --replies r.json | cat; echo left", "Enter")
    seen: list[str] = []
    while "\nleft" not in (screen := terminal.screen()):
        seen.append(screen)
    assert any("Bot.answer: " in screen for screen in seen)
    assert not any("this one" in screen for screen in [*seen, terminal.screen()])


def test_a_try_after_a_timeout_starts_anew(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "main.halo").write_text("@timeout(2s)\n@retry(1, 1ms)\n" + AGENT + MAIN)
    replies = [{"delay": "30s", "reply": "lost " * 120}, {"delay": "30s", "reply": "found " * 120}]
    (tmp_path / "r.json").write_text(json.dumps({"Bot": replies}))
    terminal.type(f"clear; {HALO} run main.halo --replies r.json; echo left", "Enter")
    terminal.until("│ lost lost")
    terminal.until("Bot.answer (try 2)")
    terminal.until("│ found found")
    assert "lost" not in terminal.screen()
    terminal.until("TimeoutExceeded")
