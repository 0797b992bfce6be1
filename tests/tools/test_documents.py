"""Documents of all kinds are read as text, and none of them does harm (spec 5, reference 2.14)."""

from __future__ import annotations

import asyncio
import io
import os
import zipfile
from collections.abc import AsyncIterator, Callable
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang import catalog
from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.documents import formats as documents_formats
from halo_runtime.tools.documents import limits as documents_limits
from halo_runtime.tools.documents import provider as documents
from halo_runtime.tools.documents import reading as documents_reading
from halo_runtime.tools.documents.html import read_html
from halo_runtime.tools.documents.provider import Documents
from halo_runtime.tools.documents.text import chunks_of, find_passages, markdown_table


def pdf(*pages: str) -> bytes:
    """A PDF whose pages are these drawing commands, with a font F1."""
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", font, b"<< /Title (The Contract) /Author (Ada) >>"]
    kids: list[str] = []
    for page in pages:
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {number + 1} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(f"<< /Length {len(page)} >>\nstream\n{page}\nendstream".encode())
    objects[1] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(kids)}] >>".encode()
    data, places = b"%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + text + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"<< /Size {len(objects) + 1} /Root 1 0 R /Info 4 0 R >>"
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n{trailer}\nstartxref\n{len(data)}\n%%EOF\n"
    return data + end.encode()


def shown(text: str, x: int = 72, y: int = 700) -> str:
    """The drawing command for a line of text."""
    return f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET"


def grid(rows: list[list[str]]) -> str:
    """Drawing commands for a table with lines around its cells."""
    drawn: list[str] = []
    for line, row in enumerate(rows):
        for column, cell in enumerate(row):
            x, y = 72 + 100 * column, 600 - 20 * line
            drawn += [f"{x} {y} 100 20 re S", shown(cell, x + 5, y + 5)]
    return "\n".join(drawn)


def saved(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def word() -> bytes:
    document = docx.Document()
    document.core_properties.title, document.core_properties.author = "Terms", "Bob"
    document.add_heading("Terms", 0)
    document.add_heading("Liability", 1)
    document.add_paragraph("Nobody is liable.")
    table = document.add_table(2, 2)
    for row, texts in zip(table.rows, (["item", "price"], ["pen", "2 | 3"]), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    document.add_paragraph("one", "List Bullet")
    return saved(document)


def sheet() -> bytes:
    book = openpyxl.Workbook()
    book.active.title = "Prices"
    for row in (["item", "price", "since"], ["pen", 2.5, date(2026, 1, 2)], ["cup", 3, None]):
        book.active.append(row)
    book.create_sheet("Empty")
    return saved(book)


def slides() -> bytes:
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "Plan", "First liability, then lunch."
    slide.notes_slide.notes_text_frame.text = "Smile."
    table = show.slides.add_slide(show.slide_layouts[6]).shapes.add_table(1, 2, 0, 0, 1000, 1000).table
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    return saved(show)


PAGE = (
    "<html><head><title>Help</title><style>p{}</style></head><body><h1>Refunds &amp; more</h1><script>evil()</script>"
    "<p>They take <b>five</b>\n days, see <a href='/x'>here</a>.<br>Soon.</p><ul><li>one<li>two</ul>"
    "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><p>2</p></td></tr></table></body></html>"
)
PDF_ROWS = [["item", "price"], ["pen", "2"]]

MADE: dict[str, Callable[[], bytes]] = {
    "contract.pdf": lambda: pdf(shown("First page about liability."), f"{shown('Second page.')}\n{grid(PDF_ROWS)}"),
    "terms.docx": word,
    "prices.xlsx": sheet,
    "plan.pptx": slides,
    "help.html": PAGE.encode,
    "notes.md": b"# Notes\n\n| a | b |\n|---|---|\n| 1 | x \\| y |\n\nLiability is limited.\n".__bytes__,
    "list.csv": 'name;size\nLiability;1\n"a;b";2\n'.encode,
    "plain.txt": b"caf\xe9".__bytes__,
}


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    return {name: make() for name, make in MADE.items()}


@pytest.fixture
def folder(tmp_path: Path, made: dict[str, bytes]) -> Path:
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture
async def papers(folder: Path) -> AsyncIterator[Documents]:
    papers = Documents("Papers", folder)
    yield papers
    await papers.close()


async def refusal(papers: Documents, method: str, **args: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await papers.call(method, args)
    return caught.value.message


def test_the_code_has_the_methods_of_the_catalogue_and_no_others() -> None:
    spec = catalog.provider("Documents")
    assert spec is not None
    assert {*documents._OPERATIONS, "search"} == set(spec.method_names)


TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "contract.pdf": ("First page about liability.\n\nSecond page.", {"title": "The Contract", "author": "Ada"}),
    "terms.docx": (
        "# Terms\n\n# Liability\n\nNobody is liable.\n\n| item | price |\n| --- | --- |\n| pen | 2 \\| 3 |\n\n- one",
        {"title": "Terms", "author": "Bob"},
    ),
    "prices.xlsx": (
        "## Prices\n\n| item | price | since |\n| --- | --- | --- |\n| pen | 2.5 | 2026-01-02 |\n| cup | 3 |  |",
        {},
    ),
    "plan.pptx": ("# Plan\n\nFirst liability, then lunch.\n\nNotes: Smile.", {}),
    "help.html": (
        "# Refunds & more\n\nThey take five days, see [here](/x).\nSoon.\n\n- one\n- two\n\n| a | b |\n| --- | --- |\n"
        "| 1 | 2 |",
        {"title": "Help"},
    ),
    "notes.md": ("# Notes", {}),
    "list.csv": ("| name | size |\n| --- | --- |\n| Liability | 1 |\n| a;b | 2 |", {}),
    "plain.txt": ("café", {}),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_document_is_read_as_markdown(papers: Documents, name: str) -> None:
    document = await papers.call("read", {"path": name})
    text, metadata = TEXTS[name]
    assert document["text"].startswith(text)
    assert document["metadata"]["format"] == documents.FORMATS[name.split(".")[1]]
    assert metadata.items() <= document["metadata"].items()


TABLES: dict[str, list[Any]] = {
    "contract.pdf": [PDF_ROWS],
    "terms.docx": [[["item", "price"], ["pen", "2 | 3"]]],
    "prices.xlsx": [[["item", "price", "since"], ["pen", 2.5, "2026-01-02"], ["cup", 3]]],
    "plan.pptx": [[["a", "b"]]],
    "help.html": [[["a", "b"], ["1", "2"]]],
    "notes.md": [[["a", "b"], ["1", "x | y"]]],
    "list.csv": [[["name", "size"], ["Liability", "1"], ["a;b", "2"]]],
    "plain.txt": [],
}


@pytest.mark.parametrize("name", TABLES)
async def test_tables_are_lists_of_rows(papers: Documents, name: str) -> None:
    assert await papers.call("tables", {"path": name}) == TABLES[name]


async def test_pages_slides_and_sheets_are_read_one_by_one(papers: Documents) -> None:
    both = await papers.call("pages", {"path": "contract.pdf"})
    assert [page["page"] for page in both] == [1, 2]
    assert await papers.call("pages", {"path": "contract.pdf", "start": 1, "end": 1}) == both[:1]
    assert both[0] == {"page": 1, "text": "First page about liability."}
    assert len(await papers.call("pages", {"path": "contract.pdf", "start": 2, "end": 9})) == 1
    assert "has only 2 pages; start is 3" in await refusal(papers, "pages", path="contract.pdf", start=3)
    assert "page 1 (end) comes before page 2" in await refusal(papers, "pages", path="contract.pdf", start=2, end=1)


async def test_words_are_found_in_all_documents_best_first(papers: Documents, folder: Path) -> None:
    (folder / "broken.docx").write_bytes(b"PK no archive")
    (folder / "zz.md").write_text("Liability limited, liability limited.")
    found = await papers.call("search", {"query": "liability LIMITED"})
    assert [(match["path"], match["page"]) for match in found] == [
        ("zz.md", 1), ("notes.md", 1), ("contract.pdf", 1), ("list.csv", 1), ("plan.pptx", 1), ("terms.docx", 1),
        ("broken.docx", None),
    ]  # fmt: skip
    assert found[-1]["text"].startswith("[not searched: `broken.docx` is damaged")
    only = await papers.call("search", {"query": "liability", "glob": "*.csv"})
    assert [match["path"] for match in only] == ["list.csv"]
    assert await papers.call("search", {"query": "liability", "glob": "none*"}) == []
    assert "has no word" in await refusal(papers, "search", query="?!")


async def test_too_many_passages_and_documents_are_told(
    papers: Documents, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_PASSAGES", 1)
    (folder / "b.md").write_text("liability")
    found = await papers.call("search", {"query": "liability", "glob": "*.md"})
    assert found[1:] == [{"path": None, "page": None, "text": "[… 1 more passages; use more words or a glob]"}]
    monkeypatch.setattr(documents, "MAX_SEARCHED", 1)
    assert "there are 2 documents, over 1" in await refusal(papers, "search", query="x", glob="*.md")


async def test_chunks_cover_the_text(papers: Documents) -> None:
    pieces = await papers.call("chunks", {"path": "terms.docx", "size": 40, "overlap": 5})
    assert all(len(piece) <= 40 for piece in pieces)
    assert pieces[0] + "".join(piece[5:] for piece in pieces[1:]) == TEXTS["terms.docx"][0]
    assert "overlap (40) must be less than size (40)" in await refusal(
        papers, "chunks", path="terms.docx", size=40, overlap=40
    )


async def test_what_has_changed_is_read_again_and_what_has_not_is_not(
    papers: Documents, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await papers.call("read", {"path": "notes.md"})
    taken = documents.take_apart
    monkeypatch.setattr(documents, "take_apart", None)
    assert (await papers.call("read", {"path": "notes.md"}))["text"].startswith("# Notes")
    monkeypatch.setattr(documents, "take_apart", taken)
    (folder / "notes.md").write_text("new")
    assert (await papers.call("read", {"path": "notes.md"}))["text"] == "new"


async def test_long_results_are_cut_where_one_sees_it(papers: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_CHARS", 20)
    assert (await papers.call("read", {"path": "contract.pdf"}))["text"].endswith("more characters cut]")
    assert (await papers.call("pages", {"path": "contract.pdf"}))[1] == {
        "page": 2, "text": "[… 1 more pages cut; read on with start: 2]",
    }  # fmt: skip


# --- what cannot be read


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.exe", b"MZ", "`x.exe` is of no kind that can be read: pdf, docx"),
        ("x", b"", "`x` is of no kind that can be read"),
        ("x.pdf", pdf("0 0 100 100 re f"), "`x.pdf` has no text layer: its pages are pictures"),
        ("x.pdf", b"%PDF-1.4 nothing", "`x.pdf` cannot be read; it is damaged, or no pdf file"),
        ("x.docx", b"no archive", "`x.docx` is damaged, or no Office file"),
        ("x.txt", b"a\0b", "`x.txt` is a binary file, no text"),
    ],
)
async def test_what_cannot_be_read_says_why(papers: Documents, folder: Path, name: str, data: bytes, said: str) -> None:
    (folder / name).write_bytes(data)
    assert said in await refusal(papers, "read", path=name)


def archive(**parts: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name.replace("__", "/").replace("_", "."), data)
    return file.getvalue()


BOMB = "<!DOCTYPE a [<!ENTITY b 'ha'><!ENTITY c '&b;&b;'>]><a>&c;</a>"
NOISE = Random(1).randbytes(1_100_000).hex()
"""So little can be packed of this that its archive is no bomb."""
LATE_BOMB = f"<!--{NOISE[: 2**20 - 8]}-->{BOMB}<!--{NOISE}-->".encode()
"""Its declaration begins in the first megabyte and ends in the second."""


@pytest.mark.parametrize("kind", ["docx", "xlsx", "pptx"])
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (archive(word__document_xml=b"\0" * 8_000_000), "is a zip bomb: word/document.xml"),
        (archive(word__document_xml=BOMB.encode()), "declares XML entities (word/document.xml)"),
        (archive(word__document_xml=BOMB.encode("utf-16")), "declares XML entities"),
        (archive(word__document_xml=LATE_BOMB), "declares XML entities"),
        (archive(**{f"x{n}": b"" for n in range(10_001)}), "has 10,001 parts"),
        (archive(x=b""), "cannot be read; it is damaged, or no"),
    ],
    ids=["bomb", "entities", "entities in UTF-16", "entities behind a long comment", "parts", "empty"],
)
def test_office_files_that_would_do_harm_are_refused(kind: str, data: bytes, said: str) -> None:
    assert said in documents_reading.take_apart(data, kind, tables=True)["error"]


def test_archives_that_unpack_to_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_limits, "MAX_UNPACKED_BYTES", 1000)
    assert "unpacks to more than" in documents_reading.take_apart(word(), "docx", tables=False)["error"]


def test_sheets_with_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_formats, "MAX_CELLS", 5)
    assert "has more than 5 cells" in documents_reading.take_apart(sheet(), "xlsx", tables=False)["error"]


def test_a_lost_cell_far_away_does_not_make_a_sheet_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_formats, "MAX_CELLS", 1000)
    book = openpyxl.Workbook()
    book.active["A1"], book.active["B2"], book.active["Z200"] = "first", "second", "lost"
    assert documents_reading.take_apart(saved(book), "xlsx", tables=True)["tables"] == [
        [["first"], [None, "second"], [*[None] * 25, "lost"]]
    ]


def test_a_ragged_table_is_refused_before_its_gaps_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_formats, "MAX_CELLS", 50)
    data = b"a,b,c,d,e,f,g,h\n" + b"1\n" * 10
    assert "has more than 50 cells" in documents_reading.take_apart(data, "csv", tables=False)["error"]


async def test_nothing_outside_the_folder_is_read(papers: Documents, folder: Path, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.md"
    outside.write_text("secret")
    (folder / "link.md").symlink_to(outside)
    (folder / ".env").write_text("secret")
    for path in ("../x.md", str(outside), "link.md", ".env"):
        assert "secret" not in await refusal(papers, "read", path=path)
    assert await papers.call("search", {"query": "secret", "glob": "*.md"}) == []


async def test_a_document_that_takes_too_long_is_given_up_with_its_process(folder: Path) -> None:
    papers = Documents("Papers", folder, seconds=0.001)
    assert "`contract.pdf` took longer than 0.001 s" in await refusal(papers, "read", path="contract.pdf")
    await papers.close()


@pytest.mark.parametrize("method", ["read", "pages", "chunks", "tables"])
async def test_a_cancelled_call_ends_its_process(
    papers: Documents, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    started: list[asyncio.subprocess.Process] = []
    begun = asyncio.Event()
    create = asyncio.create_subprocess_exec

    async def watched(*args: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await create(*args, **options))
        begun.set()
        return started[-1]

    monkeypatch.setattr(documents.asyncio, "create_subprocess_exec", watched)
    task = asyncio.create_task(papers.call(method, {"path": "contract.pdf"}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started[0].returncode == -9
    with pytest.raises(ProcessLookupError):
        os.kill(started[0].pid, 0)


async def test_a_cancelled_search_ends_all_its_processes(papers: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()
    running = set[str]()

    async def slow(descriptor: int, kind: str, name: str, **options: Any) -> Any:
        running.add(name)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            running.discard(name)

    monkeypatch.setattr(documents, "take_apart", slow)
    task = asyncio.create_task(papers.call("search", {"query": "x"}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running == set()


async def test_a_missing_folder_is_named_as_declared(tmp_path: Path) -> None:
    papers = tool_factory("Documents")(ToolConfig("Papers", "Documents", {"root": "none"}, tmp_path))
    with pytest.raises(ToolError, match=r"^Papers.read: there is no folder none; create it"):
        await papers.call("read", {"path": "x.md"})
    await papers.close()


# --- texts


@given(st.text("ab. \n", max_size=300), st.integers(1, 50), st.integers(0, 49))
def test_pieces_join_to_the_text_again(text: str, size: int, overlap: int) -> None:
    if overlap >= size:
        with pytest.raises(ToolError):
            list(chunks_of(text, size, overlap))
        return
    pieces = list(chunks_of(text, size, overlap))
    assert "".join(pieces[:1] + [piece[overlap:] for piece in pieces[1:]]) == text
    assert all(0 < len(piece) <= size for piece in pieces)


def test_pieces_end_where_sentences_do() -> None:
    assert list(chunks_of("One two. Three four. Five.", 12, 0)) == ["One two. ", "Three four. ", "Five."]


def test_words_are_whole_from_their_beginning() -> None:
    assert [passage.score for passage in find_passages("Liability. Reliability.", ("liab",))] == [1.01]
    assert list(find_passages("Reliability", ("liab",))) == []


@given(st.lists(st.lists(st.none() | st.text("a|\n ", max_size=5), max_size=4), max_size=4))
def test_a_table_has_a_line_for_each_row_and_one_more(rows: list[list[str | None]]) -> None:
    text = markdown_table(rows)
    assert text.count("\n") == (len(rows) if rows else 0)


@given(st.text(max_size=200) | st.text("<>/abtdrhlip \"'=&;!-", max_size=200))
def test_whatever_a_page_holds_is_read(text: str) -> None:
    page = read_html(text)
    assert page.text == page.text.strip()
    assert all(table for table in page.tables)
