"""Documents taken into a vector store: cut, named after their files, and kept in step with them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools.vectors import ingest
from tests.tools.vectors import Words, call, files, ids, store


def write(folder: Path, **texts: str) -> None:
    """Files of a handbook: name without its ending → text."""
    (folder / "handbook").mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / "handbook" / f"{name}.md").write_text(text)


def done(files: int, entries: int, removed: int = 0, skipped: Any = ()) -> dict[str, Any]:
    return {"files": files, "entries": entries, "removed": removed, "skipped": [*skipped]}


async def test_a_folder_is_cut_into_entries_that_name_their_file(tmp_path: Path) -> None:
    long = "\n\n".join(f"Paragraph {number} {'about refunds ' * 20}" for number in range(8))
    write(tmp_path, refunds=long, hours="We are closed on Sundays.")
    (tmp_path / "handbook" / "deep").mkdir()
    (tmp_path / "handbook" / "deep" / "prices.csv").write_text("name;price\nbasic;9\n")
    (tmp_path / "handbook" / "picture.png").write_bytes(b"\x89PNG")
    async with store(tmp_path, k=100) as tool:
        told = await call(tool, "ingest", path="handbook")
        found = await call(tool, "search", query="closed sundays")
        assert told == done(3, len(found))
        assert found[0] == {
            "id": "handbook/hours.md#1", "text": "We are closed on Sundays.", "score": found[0]["score"],
            "metadata": {"source": "handbook/hours.md"},
        }  # fmt: skip
        pieces = sorted(one["id"] for one in found if one["metadata"]["source"] == "handbook/refunds.md")
        assert pieces == [f"handbook/refunds.md#{number}" for number in range(1, len(pieces) + 1)]
        assert len(pieces) > 1
        only = {"source": "handbook/deep/prices.csv"}
        assert ids(await call(tool, "search", query="price", filter=only)) == ["handbook/deep/prices.csv#1"]


async def test_pages_are_noted_where_there_are_several(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.worksheets[0].append(["first sheet"])
    book.create_sheet("Two").append(["second sheet"])
    book.save(tmp_path / "book.xlsx")
    async with store(tmp_path) as tool:
        assert await call(tool, "ingest", path="book.xlsx") == done(1, 2)
        [found] = await call(tool, "search", query="second", k=1)
        assert found["metadata"] == {"source": "book.xlsx", "page": 2}


async def test_a_new_version_takes_the_place_of_the_old_one_and_only_its_news_are_embedded(tmp_path: Path) -> None:
    words = Words()
    first, second = "a " * 450, "b " * 450
    write(tmp_path, notes=first + second, other="stays")
    async with store(tmp_path, words) as tool:
        before = await call(tool, "ingest", path="handbook")
        words.asked.clear()
        assert await call(tool, "ingest", path="handbook") == before
        assert words.asked == []
        write(tmp_path, notes="Only this.")
        assert await call(tool, "ingest", path="handbook/notes.md") == done(1, 1)
        assert words.asked == ["Only this."]
        assert await call(tool, "count") == 2
        assert ids(await call(tool, "search", query="a", k=100, filter={"source": "handbook/notes.md"})) == [
            "handbook/notes.md#1"
        ]


async def test_what_is_gone_from_a_folder_goes_from_the_store(tmp_path: Path) -> None:
    write(tmp_path, a="one", b="two")
    (tmp_path / "handbook2").mkdir()
    (tmp_path / "handbook2" / "c.md").write_text("three")
    async with store(tmp_path) as tool:
        await call(tool, "add", text="by hand", id="own", metadata={"source": "handbook/none.md"})
        await call(tool, "ingest", path="handbook")
        await call(tool, "ingest", path="handbook2")
        (tmp_path / "handbook" / "a.md").unlink()
        assert await call(tool, "ingest", path="./handbook/") == done(1, 1, removed=1)
        assert sorted(ids(await call(tool, "search", query="x", k=100))) == [
            "handbook/b.md#1", "handbook2/c.md#1", "own",
        ]  # fmt: skip


async def test_an_emptied_file_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path, a="one")
    async with store(tmp_path) as tool:
        await call(tool, "ingest", path="handbook")
        write(tmp_path, a=" \n")
        assert await call(tool, "ingest", path="handbook") == done(1, 0)
        assert await call(tool, "count") == 0


async def test_what_cannot_be_read_is_named_and_its_former_version_stays(tmp_path: Path) -> None:
    write(tmp_path, a="one")
    (tmp_path / "handbook" / "b.pdf").write_bytes(b"no pdf")
    async with store(tmp_path) as tool:
        told = await call(tool, "ingest", path="handbook")
        assert (told["files"], told["entries"], [one["path"] for one in told["skipped"]]) == (1, 1, ["handbook/b.pdf"])
        assert "cannot be read" in told["skipped"][0]["reason"]
        with pytest.raises(ToolError, match=r"Docs\.ingest: `handbook/b.pdf` cannot be read"):
            await call(tool, "ingest", path="handbook/b.pdf")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("../secret.md", "leads up"),
        ("/etc/hosts", "no path inside"),
        ("~/x.md", "no path inside"),
        ("link.md", "leads out"),
        ("linked", "leads out"),
        (".env", "closed"),
        ("nothing.md", "nothing.md"),
        ("picture.png", "of no kind that can be read"),
    ],
)
async def test_nothing_outside_the_programs_folder_is_read(path: str, told: str, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    (tmp_path / "secret.md").write_text("a secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "linked").symlink_to(tmp_path)
    (folder / ".env").write_text("KEY=secret")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    words = Words()
    async with store(folder, words) as tool:
        with pytest.raises(ToolError, match=told):
            await call(tool, "ingest", path=path)
        assert await call(tool, "ingest", path=".") == done(0, 0)
    assert words.asked == []


async def test_a_pdf_without_the_extra_for_documents_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "is_installed", lambda extra: False)
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    async with store(tmp_path) as tool:
        with pytest.raises(ToolError, match=r"pip install 'halo-workbench\[documents\]'"):
            await call(tool, "ingest", path="a.pdf")


async def test_too_many_files_are_refused_before_any_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MAX_FILES", 1)
    write(tmp_path, a="one", b="two")
    async with store(tmp_path) as tool:
        with pytest.raises(ToolError, match="has 2 documents, over 1; ingest its folders one by one"):
            await call(tool, "ingest", path="handbook")


async def test_a_cancelled_ingest_has_taken_in_whole_files_only(tmp_path: Path) -> None:
    words = Words(gate=asyncio.Event())
    write(tmp_path, a="one " * 900)
    async with store(tmp_path, words) as tool:
        task = asyncio.create_task(call(tool, "ingest", path="handbook"))
        await words.waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await call(tool, "count") == 0
    assert files(tmp_path) == ["handbook"]


async def test_a_pipe_among_the_files_does_not_hang_it(tmp_path: Path) -> None:
    write(tmp_path, a="one")
    os.mkfifo(tmp_path / "handbook" / "b.md")
    async with store(tmp_path) as tool:
        assert await call(tool, "ingest", path="handbook") == done(1, 1)
        with pytest.raises(ToolError):
            await call(tool, "ingest", path="handbook/b.md")
