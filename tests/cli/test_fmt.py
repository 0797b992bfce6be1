"""`halo fmt`: in place, in one step, or only told."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from halo_runtime.cli.fmt import replace_file
from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]

UGLY = b"agent   A[openai/gpt-4o-mini]\nschema S{a:String}\n"
PRETTY = b"agent A [openai/gpt-4o-mini]\n\nschema S { a: String }\n"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ugly.halo").write_bytes(UGLY)
    Path("pretty.halo").write_bytes(PRETTY)


def test_files_are_rewritten_in_place(capsys: Captured) -> None:
    assert main(["fmt", "."]) == 0
    assert Path("ugly.halo").read_bytes() == Path("pretty.halo").read_bytes() == PRETTY
    assert capsys.readouterr().err == "1 file formatted, 1 file unchanged\n"


@pytest.mark.parametrize(("options", "verb"), [([], "formatted"), (["--check"], "would be formatted")])
def test_the_summary_tells_what_was_formatted_in_part_and_what_not_at_all(
    options: list[str], verb: str, capsys: Captured
) -> None:
    Path("part.halo").write_bytes(UGLY + b"agent   Broken [x y]\n")
    Path("broken.halo").write_bytes(b"agent   Broken [x y]\n")
    main(["fmt", *options, "."])
    assert capsys.readouterr().err.splitlines() == [
        "broken.halo: what has syntax errors is kept as it is; halo check shows them",
        "part.halo: what has syntax errors is kept as it is; halo check shows them",
        f"1 file {verb}, 1 file {verb} in part, 2 files unchanged",
    ]


def test_diff_of_stdin_goes_to_stdout_and_changes_nothing(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(UGLY)))
    assert main(["fmt", "--diff", "-"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("--- -\n+++ - (formatted)\n@@")
    assert captured.err == ""


def test_check_and_diff_together_show_and_fail(capsys: Captured) -> None:
    assert main(["fmt", "--check", "--diff", "ugly.halo"]) == 1
    assert "+agent A [openai/gpt-4o-mini]" in capsys.readouterr().out
    assert Path("ugly.halo").read_bytes() == UGLY


def test_a_file_in_layout_is_not_touched() -> None:
    before = Path("pretty.halo").stat()
    assert main(["fmt", "pretty.halo"]) == 0
    assert (Path("pretty.halo").stat().st_ino, Path("pretty.halo").stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_check_changes_nothing_and_says_whether_it_would() -> None:
    assert main(["fmt", "--check", "ugly.halo"]) == 1
    assert main(["fmt", "--check", "pretty.halo"]) == 0
    assert Path("ugly.halo").read_bytes() == UGLY


def test_diff_shows_what_would_change(capsys: Captured) -> None:
    assert main(["fmt", "--diff", "ugly.halo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["--- ugly.halo", "+++ ugly.halo (formatted)"]
    assert "-agent   A[openai/gpt-4o-mini]" in lines
    assert "+agent A [openai/gpt-4o-mini]" in lines
    assert Path("ugly.halo").read_bytes() == UGLY


def test_line_ends_byte_order_mark_and_mode_are_kept() -> None:
    path = Path("ugly.halo")
    path.write_bytes(b"\xef\xbb\xbf" + UGLY.replace(b"\n", b"\r\n"))
    path.chmod(0o640)
    assert main(["fmt", "ugly.halo"]) == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + PRETTY.replace(b"\n", b"\r\n")
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_has_syntax_errors_is_kept_and_told_of(capsys: Captured) -> None:
    Path("ugly.halo").write_bytes(UGLY + b"agent   Broken [x y]\n")
    assert main(["fmt", "ugly.halo"]) == 0
    assert Path("ugly.halo").read_bytes() == PRETTY + b"\nagent   Broken [x y]\n"
    assert "ugly.halo: what has syntax errors is kept as it is" in capsys.readouterr().err


def test_a_symbolic_link_stays_one() -> None:
    Path("link.halo").symlink_to("ugly.halo")
    assert main(["fmt", "link.halo"]) == 0
    assert Path("link.halo").is_symlink()
    assert Path("ugly.halo").read_bytes() == PRETTY


def test_stdin_goes_to_stdout_byte_for_byte(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(UGLY.replace(b"\n", b"\r\n"))))
    assert main(["fmt", "-"]) == 0
    assert capsysbinary.readouterr().out == PRETTY.replace(b"\n", b"\r\n")


@pytest.mark.parametrize("paths", [["-", "ugly.halo"], ["ugly.halo", "nowhere.halo"], ["ugly.halo", "binary.halo"]])
def test_nothing_is_written_when_a_path_is_refused(paths: list[str]) -> None:
    Path("binary.halo").write_bytes(b"\xff")
    assert main(["fmt", *paths]) == 2
    assert Path("ugly.halo").read_bytes() == UGLY


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["fmt", "ugly.halo"]) == 2
    assert Path("ugly.halo").read_bytes() == UGLY
    assert sorted(path.name for path in Path().iterdir()) == ["pretty.halo", "ugly.halo"]


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it() -> None:
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)); "
    code += "from halo_runtime.cli.main import main; sys.exit(main(['fmt', 'ugly.halo']))"
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: ugly.halo: cannot be written: File too large\n"
    assert Path("ugly.halo").read_bytes() == UGLY
    assert sorted(path.name for path in Path().iterdir()) == ["pretty.halo", "ugly.halo"]


def test_a_folder_that_takes_no_new_file_is_told_of(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)  # root, as whom tests may run, may write in every folder
    assert main(["fmt", "ugly.halo"]) == 2
    assert capsys.readouterr().err == "error: ugly.halo: cannot be written: Permission denied\n"
    assert Path("ugly.halo").read_bytes() == UGLY


def test_a_file_that_is_not_utf8_is_refused_with_the_byte(capsys: Captured) -> None:
    Path("binary.halo").write_bytes(b"agent A\xff")
    assert main(["fmt", "binary.halo"]) == 2
    assert capsys.readouterr().err == (
        "error: binary.halo: invalid UTF-8 at byte 7\n  = hint: save the file as UTF-8\n"
    )


@pytest.mark.parametrize("options", [["--check"], ["--diff"], []])
def test_an_empty_file_stays_empty(options: list[str]) -> None:
    Path("empty.halo").touch()
    assert main(["fmt", *options, "empty.halo"]) == 0
    assert Path("empty.halo").read_bytes() == b""


def test_a_read_only_file_is_not_replaced(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root, as whom tests may run, may write every file
    assert main(["fmt", "ugly.halo"]) == 2
    assert capsys.readouterr().err == "error: ugly.halo: cannot be written: the file is read-only\n"
    assert Path("ugly.halo").read_bytes() == UGLY


def test_a_pipe_does_not_become_a_file() -> None:
    os.mkfifo("pipe.halo")
    with pytest.raises(OSError, match="no regular file"):
        replace_file(Path("pipe.halo"), PRETTY)
    assert Path("pipe.halo").is_fifo()


def test_a_file_is_replaced_by_any_bytes() -> None:
    replace_file(Path("ugly.halo"), b"\x00\xff\r\n")
    assert Path("ugly.halo").read_bytes() == b"\x00\xff\r\n"
