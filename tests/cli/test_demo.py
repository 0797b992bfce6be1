"""`halo demo`: the packaged program, headless and as a copy for the workbench."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

import halo_lang
from halo_lang.formatter import format_source
from halo_runtime.cli import demonstration
from halo_runtime.cli.demonstration import PROGRAM, REPLIES, DemoOptions, data_folder, show, working_copy
from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]

STEPS = (
    "agent Florist",
    "on the replies in",
    "line 11: |> Florist.answer",
    "Cut the stems",
    "Send this answer?",
    "the demo answers: yes",
    "completed: 1 call",
    "The output:",
    "draft: Cut the stems",
    "Next:",
)


@pytest.fixture(autouse=True)
def _without_the_embedded_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration, "is_installed", lambda extra: False)


def test_the_packaged_program_is_clean_and_in_layout() -> None:
    source = halo_lang.decode(PROGRAM.read_bytes(), PROGRAM.name)
    assert halo_lang.check(halo_lang.parse(source)).diagnostics == ()
    assert format_source(source) == source.text


def test_without_a_terminal_it_runs_here_and_tells_each_step(capsys: Captured) -> None:
    assert main(["demo"]) == 0
    told = capsys.readouterr().out
    for step in STEPS:
        _, found, told = told.partition(step)
        assert found, step


def test_without_the_embedded_model_it_says_how_to_get_it(capsys: Captured) -> None:
    main(["demo"])
    assert "pip install 'halo-workbench[local]'" in capsys.readouterr().out


def test_replies_of_ones_own_may_be_given(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "own.json").write_text('{"*": "my own \\u001b[2J answer"}')
    assert main(["demo", "--replies", str(tmp_path / "own.json")]) == 0
    assert "my own \\x1b[2J answer" in capsys.readouterr().out


def test_a_failure_of_the_demo_is_a_block_like_any_other(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "none.json").write_text("{}")
    assert main(["demo", "--replies", str(tmp_path / "none.json")]) == 1
    assert "first_hour.halo:11:5: error ModelError" in capsys.readouterr().err


@pytest.mark.local
def test_with_the_embedded_model_it_runs_on_it(capsys: Captured) -> None:
    assert show(DemoOptions(model="local/smollm2")) == 0
    assert "completed: 1 call" in capsys.readouterr().out


def test_a_copy_is_the_packaged_program_with_its_replies(tmp_path: Path) -> None:
    program = working_copy(tmp_path / "new" / "folder")
    assert program.read_bytes() == PROGRAM.read_bytes()
    assert program.with_name(REPLIES.name).read_bytes() == REPLIES.read_bytes()
    assert working_copy(tmp_path / "new" / "folder") == program


@pytest.mark.parametrize("name", [PROGRAM.name, REPLIES.name])
def test_a_copy_that_its_owner_changed_stays_and_the_demo_begins_anew_beside_it(tmp_path: Path, name: str) -> None:
    changed = working_copy(tmp_path / "demo").with_name(name)
    changed.write_text("changed")
    program = working_copy(tmp_path / "demo")
    assert program == tmp_path / "demo-2" / PROGRAM.name
    assert program.read_bytes() == PROGRAM.read_bytes()
    assert working_copy(tmp_path / "demo") == program
    assert changed.read_text() == "changed"


def test_changed_copies_never_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration, "MAX_COPIES", 3)
    for _ in range(3):
        working_copy(tmp_path / "demo").write_text("changed")
    with pytest.raises(FileExistsError):
        working_copy(tmp_path / "demo")


def opened_with(monkeypatch: pytest.MonkeyPatch, options: DemoOptions) -> list[str]:
    """What the workbench's command is given when the demo runs on a terminal."""
    seen: list[str] = []

    @click.command()
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def edit(arguments: tuple[str, ...]) -> int:
        seen.extend(arguments)
        return 0

    def found(group: str, name: str) -> list[Entry]:
        assert (group, name) == ("halo.commands", "edit")
        return [Entry()]

    class Entry:
        def load(self) -> click.Command:
            edit.context_settings = {"ignore_unknown_options": True}
            return edit

    monkeypatch.setattr(demonstration, "_on_terminal", lambda: True)
    monkeypatch.setattr(demonstration, "entry_points", found)
    assert show(options) == 0
    return seen


def test_on_a_terminal_the_workbench_opens_a_copy_with_its_replies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    program, *rest = opened_with(monkeypatch, DemoOptions())
    assert Path(program) == data_folder() / "first_hour.halo"
    assert data_folder().parent == tmp_path / "halo"
    assert rest == ["--project", str(data_folder()), "--run", "-i", f"question={demonstration.QUESTION}"]
    assert (data_folder() / "replies.json").read_bytes() == REPLIES.read_bytes()


def test_what_answers_is_handed_to_the_workbench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    *_, option, model = opened_with(monkeypatch, DemoOptions(model="local/smollm2"))
    assert (option, model) == ("--model", "local/smollm2")


def test_where_no_folder_can_be_made_the_copy_is_a_temporary_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    program, *_ = opened_with(monkeypatch, DemoOptions(model="local/smollm2"))
    assert Path(program).read_bytes() == PROGRAM.read_bytes()
    assert "halo-demo-" in program
