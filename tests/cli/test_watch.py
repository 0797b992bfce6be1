"""`halo check --watch`: what a look finds changed, and the command as a process that is told of changes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from halo_runtime.cli import sources, watched
from halo_runtime.cli.main import main
from halo_runtime.cli.watched import News, Programs

GOOD = "pipeline Main(x: String) -> Result: x\n"
BAD = "pipeline Main(x: String) -> Result: x |> Missing.go()\n"
PATIENCE = 30.0
"""Seconds that a slow machine may take; nothing waits for them to pass."""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("a.halo").write_text(GOOD)
    Path("b.halo").write_text(BAD)


def found(news: News) -> dict[str, list[str]]:
    """The codes of each fresh report."""
    return {report.source.path: [d.code for d in report.diagnostics] for report in news.fresh}


def replace(path: str, text: str) -> None:
    """As editors do it: a new file under the old name."""
    Path("new.tmp").write_text(text)
    Path("new.tmp").replace(path)


# --- a look --------------------------------------------------------------------------------------------------


def test_the_first_look_finds_everything_and_a_second_nothing_new() -> None:
    programs = Programs(["."])
    assert found(programs.look()) == {"a.halo": [], "b.halo": ["HL203"]}
    again = programs.look()
    assert (again.changed, again.fresh, len(again.reports)) == (False, (), 2)


def test_only_what_changed_is_fresh() -> None:
    programs = Programs(["a.halo", "b.halo"])
    programs.look()
    replace("b.halo", GOOD)
    news = programs.look()
    assert found(news) == {"b.halo": []}
    assert len(news.reports) == 2


def test_a_file_that_is_written_anew_with_the_same_text_is_no_news() -> None:
    programs = Programs(["a.halo"])
    programs.look()
    replace("a.halo", GOOD)
    assert not programs.look().changed


def test_a_file_that_was_touched_is_read_although_it_looks_the_same() -> None:
    programs = Programs(["a.halo"])
    programs.look()
    times = Path("a.halo").stat()
    Path("a.halo").write_text(GOOD.replace("Main", "Name"))
    os.utime("a.halo", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not programs.look().changed
    assert programs.look({str(Path("a.halo").absolute())}).changed


def test_a_named_file_that_is_gone_is_told_once_and_comes_back() -> None:
    programs = Programs(["a.halo", "b.halo"])
    programs.look()
    Path("b.halo").rename("elsewhere")
    news = programs.look()
    assert (news.changed, news.troubles, [report.source.path for report in news.reports]) == (
        True,
        ("b.halo: no such file",),
        ["a.halo"],
    )
    assert not programs.look().changed
    Path("elsewhere").rename("b.halo")
    news = programs.look()
    assert (found(news), news.troubles) == ({"b.halo": ["HL203"]}, ())


def test_files_come_and_go_in_a_folder() -> None:
    programs = Programs(["."])
    programs.look()
    Path("b.halo").rename("c.halo")
    news = programs.look()
    assert found(news) == {"c.halo": ["HL203"]}
    assert [report.source.path for report in news.reports] == ["a.halo", "c.halo"]
    assert news.troubles == ()


def test_a_file_named_twice_is_one() -> None:
    assert len(Programs([".", "a.halo", "../work/b.halo"]).look().reports) == 2


def test_a_file_may_become_unreadable_as_text_and_readable_again() -> None:
    programs = Programs(["a.halo"])
    programs.look()
    Path("a.halo").write_bytes(b"\xff")
    assert found(programs.look()) == {"a.halo": ["HL101"]}
    Path("a.halo").write_text(BAD)
    assert found(programs.look()) == {"a.halo": ["HL203"]}


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for() -> None:
    programs = Programs(["a.halo"])
    programs.look()
    Path("a.halo").unlink()
    os.mkfifo("a.halo")
    assert programs.look().troubles == ("a.halo: no regular file",)


def test_what_did_not_change_in_a_file_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bool] = []
    monkeypatch.setattr(
        watched, "analyse", lambda source, before: kept.append(before is not None) or sources.analyse(source, before)
    )
    programs = Programs(["a.halo"])
    programs.look()
    Path("a.halo").write_text(BAD)
    programs.look()
    assert kept == [False, True]


def test_folders_are_those_of_files_and_all_below_folders_but_hidden_ones(tmp_path: Path) -> None:
    Path("sub/deep").mkdir(parents=True)
    Path(".git/objects").mkdir(parents=True)
    work = tmp_path / "work"
    assert Programs(["a.halo"]).folders() == {str(work)}
    assert Programs(["."]).folders() == {str(tmp_path), str(work), str(work / "sub"), str(work / "sub/deep")}


def test_for_what_is_not_there_the_nearest_folder_is_watched(tmp_path: Path) -> None:
    assert Programs(["gone/away/a.halo"]).folders() == {str(tmp_path / "work")}


def test_the_target_of_a_link_is_watched_too(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far/c.halo").write_text(GOOD)
    Path("link.halo").symlink_to("../far/c.halo")
    programs = Programs(["link.halo"])
    assert programs.folders() == {str(tmp_path / "work"), str(tmp_path / "far")}
    assert programs.concern(str(tmp_path / "far/c.halo"))
    assert not programs.concern(str(tmp_path / "far/d.halo"))


# --- the command ---------------------------------------------------------------------------------------------


class Watch:
    """A `halo check --watch` process whose stdout is a pipe, or a terminal."""

    def __init__(self, *arguments: str, terminal: bool = False) -> None:
        master, slave = pty.openpty() if terminal else os.pipe()
        command = [sys.executable, "-m", "halo_runtime.cli.main", "check", "--watch", *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE, env={**os.environ, "TERM": "xterm"}
        )
        os.close(slave)
        self._output = master

    def until(self, pattern: str) -> str:
        """What it prints up to a pattern."""
        text, end = "", time.monotonic() + PATIENCE
        while not re.search(pattern, text):
            assert select.select([self._output], [], [], end - time.monotonic())[0], text
            piece = os.read(self._output, 65536)
            assert piece, text
            text += piece.decode().replace("\r\n", "\n")
        return text

    def interrupted(self) -> tuple[int, str]:
        """The exit code after Ctrl-C, and all that went to stderr."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors.decode().strip()

    def close(self) -> None:
        os.close(self._output)


@pytest.fixture
def started() -> Iterator[list[Watch]]:
    watches: list[Watch] = []
    yield watches
    for watch in watches:
        watch.process.kill()
        watch.process.communicate()


def start(started: list[Watch], *arguments: str, terminal: bool = False) -> Watch:
    started.append(Watch(*arguments, terminal=terminal))
    return started[-1]


def test_each_change_is_a_block_and_ctrl_c_ends_quietly(started: list[Watch]) -> None:
    watch = start(started, ".")
    assert "b.halo:1:42: error HL203" in watch.until("2 files: 1 error\n\n")
    replace("b.halo", GOOD)
    assert watch.until("2 files: .*\n\n") == "b.halo: no problems\n\n2 files: no problems\n\n"
    replace("c.halo", BAD)
    assert watch.until("3 files: .*\n\n").startswith("c.halo:1:42: error HL203")
    assert watch.interrupted() == (130, "watching; Ctrl-C ends it")


def test_a_new_folder_is_watched_too(started: list[Watch]) -> None:
    watch = start(started, ".")
    watch.until("2 files: .*\n\n")
    Path("sub").mkdir()
    Path("sub/c.halo").write_text(GOOD)
    watch.until("3 files: .*\n\n")
    replace("sub/c.halo", BAD)
    assert "sub/c.halo:1:42" in watch.until("3 files: 2 errors\n\n")


def test_a_vanished_file_is_told_of_and_waited_for(started: list[Watch]) -> None:
    watch = start(started, "a.halo", "b.halo")
    watch.until("2 files: .*\n\n")
    Path("b.halo").unlink()
    watch.until("1 file: no problems\n\n")
    Path("b.halo").write_text(BAD)
    watch.until("2 files: 1 error\n\n")
    code, errors = watch.interrupted()
    assert (code, errors.splitlines()[1:]) == (130, ["b.halo: no such file; waiting for it"])


def test_on_a_terminal_the_screen_is_cleared_and_shows_everything(started: list[Watch]) -> None:
    watch = start(started, ".", terminal=True)
    first = watch.until("Ctrl-C ends it")
    assert first.startswith("\x1b[H\x1b[2J\x1b[3Jb.halo:1:42")
    replace("b.halo", GOOD)
    again = watch.until("2 files: no problems\n\n.*Ctrl-C ends it")
    assert "\x1b[2J" in again
    assert "a.halo: no problems\nb.halo: no problems\n\n2 files: no problems\n" in again
    assert watch.interrupted() == (130, "")


def test_in_json_each_change_is_a_line_with_the_whole_state(started: list[Watch]) -> None:
    watch = start(started, "--json", ".")
    assert json.loads(watch.until("\n"))["errors"] == 1
    replace("b.halo", GOOD)
    document = json.loads(watch.until("\n"))
    assert (document["errors"], len(document["files"])) == (0, 2)


def test_it_ends_when_nobody_reads_any_more(started: list[Watch]) -> None:
    watch = start(started, ".")
    watch.until("2 files: .*\n\n")
    watch.close()
    replace("b.halo", GOOD)
    assert watch.process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["-"], "- (stdin) cannot be watched"), (["nowhere.halo"], "nowhere.halo: no such file")],
)
def test_what_cannot_be_watched_is_refused_at_the_start(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--watch", *arguments]) == 2
    assert message in capsys.readouterr().err
