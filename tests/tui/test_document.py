"""Opening and saving a program's file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halo_tui.models.document import Document, DocumentError

TEXTS = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\r\n\f\v\x85\u2028\ufeff")))


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@given(data=TEXTS.map(lambda text: text.encode()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_opening_and_saving_keeps_every_byte(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path / "a.halo", data)
    Document.open(path).save()
    assert path.read_bytes() == data


def test_a_byte_order_mark_is_no_part_of_the_text_and_comes_back(tmp_path: Path) -> None:
    path = written(tmp_path / "a.halo", b"\xef\xbb\xbfagent A [o-1]\r\n")
    document = Document.open(path)
    document.text += "x"
    document.save()
    assert document.text == "agent A [o-1]\r\nx"
    assert path.read_bytes() == b"\xef\xbb\xbfagent A [o-1]\r\nx"


def test_a_missing_file_is_an_empty_document_that_saving_creates(tmp_path: Path) -> None:
    document = Document.open(tmp_path / "new.halo")
    assert (document.text, document.dirty) == ("", False)
    document.text = "x"
    document.save()
    assert (tmp_path / "new.halo").read_text() == "x"


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"\xff\xfe", r"not UTF-8 text \(byte 0\)"), (b"ok \x80", r"not UTF-8 text \(byte 3\)")],
)
def test_what_is_no_text_is_refused_with_the_place(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        Document.open(written(tmp_path / "a.halo", data))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="it is a folder"):
        Document.open(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"the folder .*nowhere does not exist"):
        Document.open(tmp_path / "nowhere" / "a.halo")


def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DocumentError, match="not a regular file"):
        Document.open(tmp_path / "pipe")


def test_a_document_is_dirty_while_its_text_differs_from_the_file(tmp_path: Path) -> None:
    document = Document.open(written(tmp_path / "a.halo", b"x"))
    document.text = "y"
    assert document.dirty
    document.text = "x"
    assert not document.dirty


def test_a_failed_save_leaves_file_and_dirt_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    document = Document.open(folder / "a.halo")
    document.text = "x"
    folder.rmdir()
    with pytest.raises(DocumentError, match="the text is still here"):
        document.save()
    assert document.dirty


def test_text_that_no_file_can_hold_is_a_failed_save_and_leaves_no_stray_file(tmp_path: Path) -> None:
    document = Document.open(written(tmp_path / "a.halo", b"x"))
    document.text = "\ud800"
    with pytest.raises(DocumentError, match="cannot save"):
        document.save()
    assert [path.name for path in tmp_path.iterdir()] == ["a.halo"]
    assert (tmp_path / "a.halo").read_bytes() == b"x"


def test_saving_through_a_chain_of_links_changes_the_target_and_keeps_the_links(tmp_path: Path) -> None:
    target = written(tmp_path / "target.halo", b"x")
    (tmp_path / "middle.halo").symlink_to("target.halo")
    link = tmp_path / "link.halo"
    link.symlink_to("middle.halo")
    document = Document.open(link)
    document.text = "y"
    document.save()
    assert target.read_bytes() == b"y"
    assert link.is_symlink()
    assert (tmp_path / "middle.halo").is_symlink()


def test_permissions_survive_a_save(tmp_path: Path) -> None:
    path = written(tmp_path / "a.halo", b"x")
    path.chmod(0o640)
    document = Document.open(path)
    document.text = "y"
    document.save()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_change_by_another_program_is_noticed_and_ours_is_none(tmp_path: Path) -> None:
    path = written(tmp_path / "a.halo", b"x")
    document = Document.open(path)
    document.save()
    assert not document.changed_on_disk
    path.write_bytes(b"longer")
    assert document.changed_on_disk
