"""Readers of document formats, from bytes to pages of Markdown and tables; run in a process of their own."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time
from typing import Any, Final

from halo_runtime.json_types import JsonObject
from halo_runtime.tools.documents.html import read_html
from halo_runtime.tools.documents.limits import UnreadableError
from halo_runtime.tools.documents.text import markdown_table

MAX_PAGES: Final = 5_000
MAX_CELLS: Final = 2_000_000

Rows = list[list[Any]]


def read_pdf(data: bytes, tables: bool) -> JsonObject:
    """Each page's text layer; tables by their lines and alignment."""
    import pypdf

    document = pypdf.PdfReader(io.BytesIO(data))
    if document.is_encrypted and not document.decrypt(""):
        raise UnreadableError("is encrypted; save it without a password")
    if len(document.pages) > MAX_PAGES:
        raise UnreadableError(f"has {len(document.pages):,} pages, over {MAX_PAGES:,}")
    pages = [page.extract_text().strip() for page in document.pages]
    if not any(pages):
        raise UnreadableError("has no text layer: its pages are pictures; run it through text recognition (OCR) first")
    about: Any = document.metadata or pypdf.DocumentInformation()
    found = _pdf_tables(data) if tables else []
    return _answer("pdf", pages, found, title=about.title, author=about.author)


def _pdf_tables(data: bytes) -> list[Rows]:
    import pdfplumber

    with pdfplumber.open(io.BytesIO(data)) as document:
        tables = [table for page in document.pages for table in page.extract_tables()]
    return [[[cell or "" for cell in row] for row in table] for table in tables]


def read_docx(data: bytes, tables: bool) -> JsonObject:
    """Headings, lists, paragraphs and tables in their order; one page, as only a printer knows where others begin."""
    import docx

    document: Any = docx.Document(io.BytesIO(data))
    blocks: list[str] = []
    found: list[Rows] = []
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            found.append([[cell.text for cell in row.cells] for row in block.rows])
            blocks.append(markdown_table(found[-1]))
        elif block.text.strip():
            blocks.append(_paragraph(block))
    about = document.core_properties
    return _answer("docx", ["\n\n".join(blocks)], found, title=about.title, author=about.author)


def _paragraph(paragraph: Any) -> str:
    text, style = paragraph.text.strip(), (paragraph.style.name if paragraph.style is not None else "") or ""
    if style == "Title":
        return f"# {text}"
    if style.startswith("Heading "):
        level = style.removeprefix("Heading ")
        return f"{'#' * min(int(level), 6) if level.isdigit() else '##'} {text}"
    return f"- {text}" if style.startswith("List") else text


def read_xlsx(data: bytes, tables: bool) -> JsonObject:
    """A page and a table for each sheet, with the values that formulas had when the file was saved."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    pages: list[str] = []
    found: list[Rows] = []
    for sheet in book.worksheets:
        # The size that a sheet says it has may be anything; the rows themselves tell it.
        sheet.reset_dimensions()
        rows = _trimmed(_counted([_plain(cell) for cell in row] for row in sheet.iter_rows(values_only=True)))
        found += [rows] if rows else []
        pages.append(f"## {sheet.title}\n\n{markdown_table(rows)}".strip())
    about = book.properties
    return _answer("xlsx", pages, found, title=about.title, author=about.creator)


def _counted(rows: Iterable[list[Any]]) -> Iterator[list[Any]]:
    cells = 0
    for row in rows:
        cells += len(row) + 1
        if cells > MAX_CELLS:
            raise UnreadableError(f"has more than {MAX_CELLS:,} cells in a sheet")
        yield row


def _trimmed(rows: Iterable[list[Any]]) -> Rows:
    """Rows without what is empty at their ends, and without empty rows at the end.

    Where a lost cell far away makes a table too large to be written down, all empty rows go. Raises UnreadableError
    where it still is.
    """
    kept: Rows = []
    for row in rows:
        while row and row[-1] is None:
            row.pop()
        kept.append(row)
    while kept and not kept[-1]:
        kept.pop()
    width = max(map(len, kept), default=0)
    if len(kept) * width > MAX_CELLS:
        kept = [row for row in kept if row]
    if len(kept) * width > MAX_CELLS:
        raise UnreadableError(f"has more than {MAX_CELLS:,} cells in a sheet")
    return kept


def _plain(cell: Any) -> Any:
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    if isinstance(cell, date | time):
        return cell.isoformat()
    return cell if isinstance(cell, int | float | str) else None


def read_pptx(data: bytes, tables: bool) -> JsonObject:
    """A page for each slide: its title, texts and tables in their order, the speaker's notes."""
    import pptx

    show = pptx.Presentation(io.BytesIO(data))
    pages: list[str] = []
    found: list[Rows] = []
    for slide in show.slides:
        title = slide.shapes.title
        blocks = [f"# {title.text_frame.text}"] if title is not None and title.text_frame.text else []
        for shape in _shapes(slide.shapes):
            if shape.has_table:
                found.append([[cell.text for cell in row.cells] for row in shape.table.rows])
                blocks.append(markdown_table(found[-1]))
            elif shape.has_text_frame and shape != title and shape.text_frame.text.strip():
                blocks.append(shape.text_frame.text.strip())
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        blocks += [f"Notes: {notes.text.strip()}"] if notes is not None and notes.text.strip() else []
        pages.append("\n\n".join(blocks))
    about = show.core_properties
    return _answer("pptx", pages, found, title=about.title, author=about.author)


def _shapes(shapes: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < 10:
            yield from _shapes(shape.shapes, depth + 1)
        elif hasattr(shape, "has_table"):
            yield shape


def read_page(data: bytes, tables: bool) -> JsonObject:
    """A web page, without what is not shown."""
    page = read_html(_decode(data))
    return _answer("html", [page.text], page.tables, title=page.title)


def read_text(data: bytes, tables: bool) -> JsonObject:
    """A text as it is, with its tables of Markdown."""
    text = _decode(data)
    return _answer("text", [text], [*_markdown_tables(text)])


def _markdown_tables(text: str) -> Iterator[Rows]:
    rows: Rows = []
    for line in [*text.splitlines(), ""]:
        line = line.strip()
        if line.startswith("|") and line.endswith("|") and len(line) > 1:
            rows.append([cell.strip() for cell in line[1:-1].replace("\\|", "\0").split("|")])
            continue
        if len(rows) > 1 and all(set(cell) <= set(":- ") and "-" in cell for cell in rows[1]):
            yield [[cell.replace("\0", "|") for cell in row] for row in (rows[0], *rows[2:])]
        rows = []


def read_csv(data: bytes, tables: bool) -> JsonObject:
    """One table. Commas, semicolons, tabs or bars are told from each other by what the text has."""
    text = _decode(data)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = _trimmed(_counted([cell or None for cell in row] for row in csv.reader(io.StringIO(text), dialect)))
    return _answer("csv", [markdown_table(rows)], [rows] if rows else [])


def _decode(data: bytes) -> str:
    """UTF-8, UTF-16 by its mark, else Latin-1 as old files have it. Raises UnreadableError for what is no text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    if b"\0" in data[:8192]:
        raise UnreadableError("is a binary file, no text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _answer(kind: str, pages: list[str], tables: list[Rows], **about: str | None) -> JsonObject:
    metadata = {"format": kind, "pages": len(pages)} | {name: value for name, value in about.items() if value}
    return {"pages": pages, "metadata": metadata, "tables": tables}


READERS: Final[dict[str, Callable[[bytes, bool], JsonObject]]] = {
    "pdf": read_pdf,
    "docx": read_docx,
    "xlsx": read_xlsx,
    "pptx": read_pptx,
    "html": read_page,
    "text": read_text,
    "csv": read_csv,
}
