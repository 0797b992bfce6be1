"""HTML as Markdown with the standard library's parser: headings, lists, links, tables (pure)."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

from halo_lang.records import record
from halo_runtime.tools.documents.text import markdown_table

_HIDDEN: Final = ("script", "style", "noscript", "template", "head", "svg")
_BLOCKS: Final = frozenset(
    re.findall(
        r"\w+",
        "p div section article header footer main nav aside ul ol table form figure blockquote pre h1 h2 h3 h4 h5 h6 hr"
        " dl dd dt fieldset address details summary",
    )
)
_DECLARATION: Final = re.compile(r"<[!?][^<>]*>")
_VALUE: Final = re.compile(r"=\s+(?=[\"'])")
_NO_TAG: Final = re.compile(r"""<(?!/?[a-zA-Z][^<>'"]*+(?:(?<==)(?:"[^"<]{0,9999}"|'[^'<]{0,9999}')[^<>'"]*+)*+>)""")
"""A `<` without a whole tag behind it, in which quotes stand only around values."""
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}


@record
class HtmlText:
    """What a page shows: its title, its text, its tables as rows of texts."""

    title: str
    text: str
    tables: list[list[list[str]]]


def read_html(text: str) -> HtmlText:
    """What a page shows."""
    reader = _Reader()
    reader.feed(tame(text))
    reader.close()
    reader.end_block()
    return HtmlText(reader.title.strip(), "\n\n".join(reader.blocks), reader.tables)


def tame(text: str) -> str:
    """The same page for a parser that takes minutes over tags without an end, and fails at odd declarations.

    Comments and declarations go, and a `<` that begins no whole tag stands for itself, as browsers show it.
    """
    return _NO_TAG.sub("&lt;", _VALUE.sub("=", _DECLARATION.sub("", _without_comments(text))))


def _without_comments(text: str) -> str:
    """In one pass: a comment that does not end goes on to the end of the page."""
    kept: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        kept.append(text[at:start])
        end = text.find("-->", start + 4)
        at = len(text) if end < 0 else end + 3
    return "".join((*kept, text[at:]))


class _Reader(HTMLParser):
    """Collects blocks. Cells of a table are collected apart, and become a block when it ends."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.blocks: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._line: list[str] = []
        self._rows: list[list[str]] | None = None
        self._hidden: list[str] = []
        self._in_title = False
        self._prefix = ""
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag == "table" and self._rows is None:
            self.end_block()
            self._rows = []
        elif self._rows is not None and tag in ("tr", "td", "th"):
            self._cell(tag)
        elif tag == "br":
            self._line.append("\n")
        elif tag == "li":
            self.end_block()
            self._prefix = "- "
        elif tag in _BLOCKS:
            self.end_block()
            self._prefix = _HEADINGS.get(tag, "")
        elif tag == "a":
            self._link = next((value or "" for name, value in attrs if name == "href"), "")
            self._line += ["["] if self._link else []

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag == "table" and self._rows is not None:
            self._end_table()
        elif tag == "a" and self._link:
            self._line.append(f"]({self._link})")
            self._link = ""
        elif tag == "li" or tag in _BLOCKS:
            self.end_block()

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._hidden:
            self._line.append(re.sub(r"\s+", " ", data))

    def end_block(self) -> None:
        """What was collected is a block. In a table it stays in its cell."""
        if self._rows is not None:
            self._line.append(" ")
            return
        text = re.sub(r" *\n *", "\n", re.sub(r" {2,}", " ", "".join(self._line))).strip()
        if text:
            block = self._prefix + text
            if self._prefix == "- " and self.blocks and self.blocks[-1].startswith("- "):
                self.blocks[-1] += f"\n{block}"
            else:
                self.blocks.append(block)
        self._line, self._prefix = [], ""

    def _cell(self, tag: str) -> None:
        assert self._rows is not None, "in a table"
        self._end_cell()
        if tag == "tr" or not self._rows:
            self._rows.append([])
        if tag != "tr":
            self._rows[-1].append("")

    def _end_cell(self) -> None:
        text = re.sub(r"\s+", " ", "".join(self._line)).strip()
        self._line = []
        if self._rows and self._rows[-1] and text:
            self._rows[-1][-1] = text

    def _end_table(self) -> None:
        self._end_cell()
        rows = [row for row in self._rows or [] if row]
        self._rows = None
        if rows:
            self.tables.append(rows)
            self.blocks.append(markdown_table(rows))
