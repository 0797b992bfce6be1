"""`halo` as a process: pipes, signals, locales, and a person at a real terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HALO = [sys.executable, "-m", "halo_runtime.cli.main"]
PATIENCE = 30.0
"""Seconds that a slow machine may take; nothing waits for them to pass."""

ASKING = """agent Bot [openai/gpt-4o-mini]

pipeline Main(text: String) -> Result:
  text
    |> System.Print("before")
    |! yield("Send {{text}}?", timeout: 5m) as verdict
    |? {
         (verdict == "yes") => Bot.answer("Answer."),
         else => System.Value(verdict),
       }
"""
SLOW = '{"Bot.answer": {"reply": "late", "delay": "1h"}}'


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    Path("p.halo").write_text(ASKING)
    Path("echo.halo").write_text("pipeline Main(text: String) -> Result: text\n")
    Path("r.json").write_text('{"Bot.answer": "sent"}')
    Path("slow.json").write_text(SLOW)


ON_ITS_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from halo_runtime.cli.main import main
sys.exit(main())
"""
"""Starts `halo` as a shell would: its stdin is the terminal that Ctrl-C comes from."""


class Session:
    """A `halo` process whose stdin and stderr are a terminal; stdout is a pipe."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        command = [sys.executable, "-c", ON_ITS_TERMINAL, *arguments]
        self.process = subprocess.Popen(command, stdin=slave, stderr=slave, stdout=subprocess.PIPE)
        os.close(slave)
        self._unseen = ""

    def see(self, text: str) -> None:
        """Read the screen until `text` has been shown after all that was seen before."""
        deadline = time.monotonic() + PATIENCE
        while text not in self._unseen:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown; the screen: {self._unseen!r}"
            self._unseen += os.read(self._master, 65536).decode()
        self._unseen = self._unseen.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> tuple[int, str]:
        """Exit code and stdout."""
        out, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        os.close(self._master)


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session("run", "p.halo", "-i", "text=\x1b[2Jflowers", "--replies", "r.json")
    yield session
    session.close()


def test_a_person_at_the_terminal_answers_and_stdout_has_the_output_alone(session: Session) -> None:
    session.see("before")
    session.see("? Send \\x1b[2Jflowers?")
    session.see("checks for: yes")
    session.see("expires in 4 m 5")
    session.see("\n> ")
    session.type("YES\n")
    session.see("completed: 1 call")
    assert session.end() == (0, "sent\n")


def test_later_at_the_terminal_pauses_the_run(session: Session) -> None:
    session.see("\n> ")
    session.type("later\n")
    session.see("halo resume ")
    assert session.end() == (4, "")


def test_the_end_of_input_at_the_terminal_pauses_the_run(session: Session) -> None:
    session.see("\n> ")
    session.type("\x04")
    session.see("paused at:")
    assert session.end() == (4, "")


def test_ctrl_c_at_a_question_stops_the_run(session: Session) -> None:
    session.see("\n> ")
    session.type("\x03")
    session.see("interrupted: ")
    assert session.end() == (130, "")


def written(name: str) -> str:
    """What another process writes into a file."""
    deadline = time.monotonic() + PATIENCE
    while not (Path(name).exists() and Path(name).read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"{name} was not written"
    return Path(name).read_text()


def test_an_answer_from_elsewhere_is_taken_while_the_question_waits_at_the_terminal() -> None:
    Path("p.halo").write_text(ASKING.replace("\npipeline", "\n@checkpoint\npipeline"))
    session = Session("run", "p.halo", "-i", "text=x", "--replies", "r.json")
    session.see("\n> ")
    run_id = next(Path(".halo/checkpoints").glob("*.jsonl")).stem
    assert halo("signal", run_id, "yes", "--by", "ada").returncode == 0
    session.see("Send x? is answered by ada")
    session.see("completed: 1 call")
    assert session.end() == (0, "sent\n")
    session.close()


def test_resume_asks_the_open_questions_one_after_the_other() -> None:
    Path("p.halo").write_text(
        "pipeline Main(xs: Array) -> Result:\n"
        "  xs |* each(x in xs) => Ask(x) as answers\n\n"
        'pipeline Ask(x: Any) -> Any: x |! yield("Take {{x}}?")\n'
    )
    assert halo("run", "p.halo", "Main", "-i", 'xs=["a", "b"]').returncode == 4
    session = Session("resume", next(Path(".halo/checkpoints").glob("*.jsonl")).stem)
    session.see("? Take a?")
    session.see("\n> ")
    session.type("1\n")
    session.see("? Take b?")
    session.see("\n> ")
    session.type("2\n")
    session.see("completed")
    assert session.end() == (0, "[\n  1,\n  2\n]\n")
    session.close()


def test_a_question_that_is_asked_again_offers_the_answer_of_before() -> None:
    answered = ["run", "p.halo", "-i", "text=x", "--replies", "r.json", "--answer", "verdict=yes", "--keep"]
    assert halo(*answered).returncode == 0
    run_id = next(Path(".halo/checkpoints").glob("*.jsonl")).stem
    session = Session("run", "p.halo", "--checkpoint", f"{run_id}@1", "--replies", "r.json")
    session.see("answered before: yes")
    session.see("Enter gives the same answer")
    session.see("\n> ")
    session.type("\n")
    assert session.end() == (0, "sent\n")
    session.close()


def test_the_time_that_is_left_counts_down(session: Session) -> None:
    session.see("expires in 4 m 5")
    session.see("\x1b7\x1b[1A\r\x1b[2K  expires in 4 m 5")
    session.see("\x1b8")


def test_a_question_without_a_terminal_pauses_and_says_how_to_answer() -> None:
    done = halo("run", "p.halo", "-i", "text=x", "--replies", "r.json")
    assert (done.returncode, done.stdout) == (4, b"")
    run_id = next(Path(".halo/checkpoints").glob("*.jsonl")).stem
    assert f"    halo resume {run_id} --answer VALUE\n".encode() in done.stderr


def test_ctrl_c_twice_ends_at_once_and_leaves_a_journal_to_go_on_with() -> None:
    Path("p.halo").write_text(
        "tool Shell : Bash()\n\n@checkpoint\npipeline Main(text: String) -> Result:\n"
        '  text |> System.Value("first") |> Shell.run("trap \'\' TERM; echo $$ > shell.pid; sleep 60; sleep 60")\n'
    )
    session = Session("run", "p.halo", "-i", "text=x")
    session.see("tool Shell.run")
    shell = written("shell.pid")
    session.type("\x03")
    session.see("Ctrl-C again ends at once")
    session.type("\x03")
    assert session.end() == (130, "")
    session.close()
    os.killpg(int(shell), signal.SIGKILL)
    run_id = next(Path(".halo/checkpoints").glob("*.jsonl")).stem
    assert halo("verify", run_id).returncode == 0
    assert halo("resume", run_id).returncode == 4
    assert halo("resume", run_id, "--answer", '{"skip": "done by hand"}').stdout == b"done by hand\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_request_and_says_what_was_done(number: signal.Signals) -> None:
    session = Session("run", "p.halo", "-i", "text=x", "--answer", "verdict=yes", "--replies", "slow.json")
    session.see("Bot.answer")
    session.process.send_signal(number)
    session.see("Ctrl-C again ends at once")
    session.see("the run can go on: halo resume ")
    session.see("interrupted: ")
    assert session.end() == (130, "")
    session.close()


def halo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*HALO, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def test_an_interrupted_run_with_json_keeps_what_was_done() -> None:
    arguments = ["run", "p.halo", "-i", "text=x", "--answer", "verdict=yes", "--replies", "slow.json", "--json"]
    process = subprocess.Popen([*HALO, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "line 7" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert '"status": "interrupted"' in out
    assert '"verdict": "yes"' in out


def test_a_reader_that_has_gone_is_no_error() -> None:
    process = subprocess.Popen(
        [*HALO, "run", "echo.halo", "-i", "text=" + "x" * 100_000], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert b"Broken" not in process.stderr.read()
    assert process.wait(PATIENCE) == 0
    process.stderr.close()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_narrow_encoding_is_no_crash(encoding: str) -> None:
    done = halo("run", "echo.halo", "-i", "text=é日", PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert b"\\u65e5" in done.stdout
    assert b"Traceback" not in done.stderr


def test_closed_streams_are_no_crash() -> None:
    command = " ".join(HALO)
    done = subprocess.run(["sh", "-c", f"{command} run echo.halo -i text=x <&- >&- 2>&-"])
    assert done.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [["run", "echo.halo", "-i", "text=x"], ["run", "no.halo", "--json"], ["check", "p.halo"], ["--version"]],
)
def test_a_full_disk_is_said(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*HALO, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == b"error: the output cannot be written: No space left on device"
    assert b"bug" not in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--events", "--no-input"])
def test_a_full_disk_under_the_narration_holds_no_run_up(option: str) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [*HALO, "run", "echo.halo", "-i", "text=x", option]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, b"x\n")
