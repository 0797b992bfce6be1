"""Breaking lines: a document of texts and places where a line may end, and its rendering within a width.

After Wadler, "A prettier printer", in the form that Prettier gave it. A group stands on one line if it fits, else
each of its own breaks becomes a line break. Line breaks and spaces are written only when text follows them, so
several in a row are one and no line ends in white space.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias

from halo_lang.assist.positions import cells
from halo_lang.records import record


class Break(Enum):
    """A place between texts."""

    SPACE = auto()
    """A space."""
    LINE = auto()
    """A space on one line, else a line break."""
    SOFT = auto()
    """Nothing on one line, else a line break."""
    HARD = auto()
    """A line break."""
    COMMA = auto()
    """Nothing on one line, else the comma behind a last item."""


@record
class LineComment:
    """A text that the rest of its line belongs to; it never counts for the width."""

    text: str


@record
class Nest:
    """Parts whose line breaks are indented by `width` more."""

    width: int
    parts: tuple[Doc, ...]


@record
class Group:
    """Parts that share one line, or are broken at each of their own breaks; `broken` ones always are."""

    parts: tuple[Doc, ...]
    broken: bool


Doc: TypeAlias = str | Break | LineComment | Nest | Group


def nest(width: int, *parts: Doc) -> Doc:
    """The parts, indented."""
    return Nest(width, parts)


def group(*parts: Doc, broken: bool = False) -> Doc:
    """The parts as a group, broken where one of them must be."""
    return Group(parts, broken or any(map(_must_break, parts)))


def _must_break(doc: Doc) -> bool:
    match doc:
        case Group():
            return doc.broken
        case Nest():
            return any(map(_must_break, doc.parts))
        case _:
            return doc is Break.HARD or isinstance(doc, LineComment)


@record
class _Task:
    """A part to be written, at an indentation, on one line or not."""

    doc: Doc
    indent: int
    flat: bool

    def inside(self, doc: Nest | Group, flat: bool) -> list[_Task]:
        """The tasks of the parts, the first one last."""
        indent = self.indent + doc.width if isinstance(doc, Nest) else self.indent
        return [_Task(part, indent, flat) for part in reversed(doc.parts)]


class _Writer:
    """The text so far, and the white space that is due once more text comes."""

    def __init__(self, line_end: str) -> None:
        self._line_end = line_end
        self._parts: list[str] = []
        self._due = ""
        self._column = 0

    @property
    def column(self) -> int:
        """Where the next text begins."""
        return self._column + (1 if self._due == " " else 0)

    def text(self, text: str) -> None:
        self._parts += (self._due, text)
        self._column, self._due = _column_behind(self.column, text), ""

    def space(self) -> None:
        self._due = self._due or " "

    def newline(self, indent: int) -> None:
        self._due, self._column = self._line_end + " " * indent, indent

    def result(self) -> str:
        return "".join(self._parts)


def render(doc: Doc, width: int, line_end: str) -> str:
    """The document as text, in lines of at most `width` terminal cells where that can be had."""
    writer = _Writer(line_end)
    tasks = [_Task(doc, 0, flat=False)]
    while tasks:
        task = tasks.pop()
        match task.doc:
            case Nest():
                tasks += task.inside(task.doc, task.flat)
            case Group():
                whole = _Task(task.doc, task.indent, flat=True)
                flat = task.flat or (not task.doc.broken and _fits(whole, tasks, width, writer.column))
                tasks += task.inside(task.doc, flat)
            case _:
                _write(writer, task)
    return writer.result()


def _write(writer: _Writer, task: _Task) -> None:
    match task.doc:
        case str():
            writer.text(task.doc)
        case LineComment():
            writer.text(task.doc.text)
            writer.newline(task.indent)
        case Break.COMMA:
            if not task.flat:
                writer.text(",")
        case _ if _ends_line(task):
            writer.newline(task.indent)
        case Break.SPACE | Break.LINE:
            writer.space()
        case _:
            pass


def _ends_line(task: _Task) -> bool:
    return task.doc is Break.HARD or (task.doc in (Break.LINE, Break.SOFT) and not task.flat)


def _fits(first: _Task, behind: list[_Task], width: int, column: int) -> bool:
    """Whether the rest of the line stays within the width, from `first` to the first line break that must come."""
    tasks, rest = [first], len(behind)
    while column <= width:
        if not tasks:
            if rest == 0:
                return True
            rest -= 1
            tasks.append(behind[rest])
        task = tasks.pop()
        match task.doc:
            case str():
                if column + cells(task.doc.partition("\n")[0]) > width:
                    return False
                column = _column_behind(column, task.doc)
            case Nest():
                tasks += task.inside(task.doc, task.flat)
            case Group():
                tasks += task.inside(task.doc, task.flat and not task.doc.broken)
            case Break.SPACE | Break.LINE if not _ends_line(task):
                column += 1
            case _:
                if isinstance(task.doc, LineComment) or _ends_line(task):
                    return True
    return False


def _column_behind(column: int, text: str) -> int:
    """Where a text ends that begins at `column`; a string literal may hold line breaks."""
    last = text.rfind("\n")
    return column + cells(text) if last == -1 else cells(text[last + 1 :])
