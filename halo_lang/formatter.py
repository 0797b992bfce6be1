"""One canonical layout for a program; its meaning, comments and string literals stay as they are.

A declaration is printed from its tokens, of which only the commas behind last items may come and go; the tree says
where its directives, modifiers and stages begin. A declaration that does not parse is kept byte for byte.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, takewhile

from halo_lang.layout import Break, Doc, LineComment, group, nest, render
from halo_lang.nodes import Agent, BranchStage, Declaration, ModelRef, Pipeline
from halo_lang.parser import parse
from halo_lang.program import Program, Unit
from halo_lang.records import record
from halo_lang.source import Source
from halo_lang.trivia import Gap, Remark, Token, code_end, read_gap, tokens

WIDTH = 100
"""Terminal cells that a line should not pass."""

_BODY, _STAGE = 2, 4
_TIGHT_BEFORE = frozenset(".,:)]")
_TIGHT_BEHIND = frozenset(".([@!")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")


def format_source(source: Source) -> str:
    """The text of `source` in canonical layout, with the line ends it has: CRLF where all are, else LF.

    Formatting the result again changes nothing. A byte order mark is no part of the text, here as in `source`.
    """
    text = source.text
    line_end = "\r\n" if "\n" in text and text.count("\n") == text.count("\r\n") else "\n"
    # With a line break at its end, as the result has one, a last comment stands like any other.
    program = parse(Source(text + "\n"))
    parts = [part for glue, block in _blocks(program, line_end) for part in (glue.replace("\n", line_end), block)]
    return "".join([*parts[1:], line_end]) if parts else ""


def _blocks(program: Program, line_end: str) -> Iterator[tuple[str, str]]:
    """Declarations and the comments between them, each with what parts it from the block in front."""
    glue = "\n\n"
    for unit, start in zip(program.units, program.starts, strict=True):
        block, gap = _unit(unit, program.source.position(start).column - 1, line_end)
        if block:
            yield glue, block
            glue = "\n\n"
        for remark in gap.remarks:
            yield "\n\n" if remark.lines_before > 1 else glue, remark.text
            glue = "\n"
        if gap.remarks:
            glue = {0: " ", 1: "\n"}.get(gap.lines_after, "\n\n")


def _unit(unit: Unit, column: int, line_end: str) -> tuple[str, Gap]:
    """A unit's declaration as text, with the comments that go with it, and the gap to the next one."""
    text, declaration = unit.text, unit.declaration
    if declaration is None or unit.diagnostics:
        return _as_written(text, column)
    found, gap = tokens(text, dict(_models(declaration)))
    own, rest = gap.split(_comments_of(gap, column))
    behind = nest(_STAGE if isinstance(declaration, Pipeline) else _BODY, *_inside(own))
    return render(nest(0, *_declaration(declaration, found), behind), WIDTH, line_end), rest


def _as_written(text: str, column: int) -> tuple[str, Gap]:
    """A unit without a usable declaration: its text up to the comments that belong to what follows."""
    end = code_end(text)
    gap, _ = read_gap(text, end)
    count = _comments_of(gap, column) if end else 0
    kept = end + gap.remarks[count - 1].end if count else end
    return text[:kept].rstrip(), gap.split(count)[1]


def _comments_of(gap: Gap, column: int) -> int:
    """How many comments of a gap go with the declaration in front, which begins at `column`.

    The one on its last line, and those below that are indented deeper, such as a stage that is commented out.
    """
    return len(gap.after) + sum(1 for _ in takewhile(lambda remark: remark.indent > column, gap.own))


def _models(declaration: Declaration) -> Iterator[tuple[int, int]]:
    """Start and end of the model references, whose characters are several tokens anywhere else."""
    if isinstance(declaration, Agent):
        yield declaration.model.span
    if isinstance(declaration, Agent | Pipeline):
        for argument in (argument for directive in declaration.directives for argument in directive.args):
            if isinstance(argument.value, ModelRef):
                yield argument.value.span
            if argument.name:
                yield argument.name.span


# --- declarations


@record
class _Clause:
    """A part of a declaration that begins a line: a directive, the head, a modifier, the start value, a stage."""

    indent: int
    tokens: list[Token]

    @property
    def is_stage(self) -> bool:
        return self.tokens[0].text[0] in "|~"

    @property
    def is_listing(self) -> bool:
        """Whether it is one of the declarations with a colon behind the name that is set apart."""
        return self.tokens[0].text in ("policy", "tool", "store")

    def doc(self) -> Doc:
        """The clause without the comments in front of it; further lines of a stage stand under what it calls."""
        hanging = len(self.tokens[0].text) + 1 if self.is_stage else 0
        frame = _read(self)
        return nest(hanging, group(*frame.docs), *(frame.comma or ()))

    def on_own_line(self, doc: Doc) -> list[Doc]:
        """The comment that ends the line in front, the line break, the comments in front, and the clause's `doc`."""
        gap = self.tokens[0].gap
        return [*_trailing(gap.after), nest(self.indent, Break.HARD, *_leading(gap), doc)]


def _declaration(declaration: Declaration, found: list[Token]) -> list[Doc]:
    first, *clauses = _clauses(declaration, found)
    last: list[Doc] = []
    if isinstance(declaration, Pipeline) and _may_share_line(declaration, clauses):
        *clauses, start, stage = clauses
        gap = stage.tokens[0].gap
        behind = nest(_STAGE - _BODY, Break.LINE, *_leading(gap), stage.doc())
        last = start.on_own_line(group(start.doc(), *_trailing(gap.after), behind))
    return [first.doc(), *(doc for clause in clauses for doc in clause.on_own_line(clause.doc())), *last]


def _may_share_line(pipeline: Pipeline, clauses: list[_Clause]) -> bool:
    """Whether the body is so simple that it stands on one line if it fits: a value and one stage."""
    if pipeline.start is None or len(pipeline.stages) != 1 or isinstance(pipeline.stages[0], BranchStage):
        return False
    return not any("\n" in token.text for clause in clauses[-2:] for token in clause.tokens)


def _clauses(declaration: Declaration, found: list[Token]) -> list[_Clause]:
    starts, indents = zip((0, 0), *_boundaries(declaration), strict=True)
    parts = groupby(found, key=lambda token: bisect_right(starts, token.start) - 1)
    return [_Clause(indents[number], list(part)) for number, part in parts]


def _boundaries(declaration: Declaration) -> Iterator[tuple[int, int]]:
    """Offsets behind which a new clause begins, with its indentation, in order."""
    match declaration:
        case Agent():
            yield from ((directive.span.end, 0) for directive in declaration.directives)
            yield from ((modifier.span.start, _BODY) for modifier in declaration.modifiers)
        case Pipeline():
            yield from ((directive.span.end, 0) for directive in declaration.directives)
            if declaration.start:
                yield declaration.start.span.start, _BODY
            indent = _STAGE if declaration.start else _BODY
            yield from ((stage.span.start, indent) for stage in declaration.stages)
        case _:
            pass


# --- tokens


@dataclass(slots=True)
class _Frame:
    """What has been read of a clause, or of a pair of brackets in it."""

    bracket: str = ""
    separated: bool = True
    """Whether commas separate its items; else it holds a condition or an event's name."""
    broken: bool = False
    """Whether each item stands on a line of its own even if all fit on one."""
    head: list[Doc] = field(default_factory=list[Doc])
    """The comment that ends the bracket's line."""
    docs: list[Doc] = field(default_factory=list[Doc])
    comma: list[Doc] | None = None
    """The comments around a comma that is written once another item follows."""

    def put(self, gap: Gap, spacing: Break | None) -> None:
        """What comes in front of the next token: a comma, or a space, with the comments."""
        if not self.docs:
            self._begin(gap)
            return
        if self.comma is not None:
            docs = [",", *self.comma, *_trailing(gap.after), Break.LINE, *_leading(gap)]
            self.comma = None
        else:
            docs = [*_inside(gap), spacing or Break.SPACE] if spacing or gap.remarks else []
        # Outside brackets, where a clause goes on in a further line it is indented below its first.
        self.docs += docs if self.bracket else [nest(_BODY, *docs)]

    def _begin(self, gap: Gap) -> None:
        """The comments behind the bracket: the first may end its line, or go on to the next."""
        if gap.after and gap.after[0].takes_line:
            self.head += _trailing(gap.after)
        elif gap.after:
            self.docs += [gap.after[0].text, Break.SPACE if len(gap.remarks) == 1 else Break.HARD]
        self.docs += _leading(gap)

    def put_comma(self, gap: Gap) -> None:
        self.comma = [*(self.comma or ()), *_inside(gap)]

    def close(self, token: Token) -> Doc:
        """The brackets with all that is in them."""
        comments = [*(self.comma or ()), *_inside(token.gap)]
        if not self.docs and not comments:
            return self.bracket + token.text
        edge = Break.LINE if self.bracket == "{" else Break.SOFT
        last = [Break.COMMA, *comments] if self.docs and self.separated else comments if self.docs else comments[1:]
        return group(
            self.bracket, *self.head, nest(_BODY, edge, *self.docs, *last), edge, token.text, broken=self.broken
        )


def _read(clause: _Clause) -> _Frame:
    """The tokens of a clause with the space between them; what is in brackets is a group."""
    frames = [_Frame()]
    previous: Token | None = None
    for token in clause.tokens:
        frame = frames[-1]
        if token.text == ",":
            frame.put_comma(token.gap)
        elif token.text in _CLOSING and len(frames) > 1:
            frames.pop()
            frames[-1].docs.append(frame.close(token))
        else:
            if previous:
                frame.put(token.gap, _spacing(clause, previous, token))
            if token.text in _OPENING:
                frames.append(_Frame(token.text, _is_separated(clause, previous, token), _is_branch(previous, token)))
            else:
                frame.docs.append(token.text)
        previous = token
    return frames[0]


def _is_separated(clause: _Clause, previous: Token | None, opening: Token) -> bool:
    listens = clause.tokens[0].text == "~>"
    return opening.text != "(" or (previous is not None and previous.is_word and not listens)


def _is_branch(previous: Token | None, opening: Token) -> bool:
    return opening.text == "{" and previous is not None and previous.text == "|?"


def _spacing(clause: _Clause, previous: Token, token: Token) -> Break | None:
    """What stands between two tokens that no comma and no bracket's edge parts."""
    before, text = previous.text, token.text
    if text in ("&", "&&", "||"):
        return Break.LINE
    if clause.is_listing and text == ":" and previous is clause.tokens[1]:
        return Break.SPACE
    if text in _TIGHT_BEFORE or before in _TIGHT_BEHIND or (text == "(" and previous.is_word):
        return None
    in_type = not clause.is_stage and (text in ("<", ">") or before == "<")
    return None if in_type else Break.SPACE


# --- comments


def _comment(remark: Remark) -> Doc:
    return LineComment(remark.text) if remark.takes_line else remark.text


def _trailing(remarks: tuple[Remark, ...]) -> list[Doc]:
    """Comments behind what is on the line."""
    return [doc for remark in remarks for doc in (Break.SPACE, _comment(remark))]


def _on_lines(remarks: tuple[Remark, ...]) -> list[Doc]:
    """Comments on lines of their own."""
    return [doc for remark in remarks for doc in (Break.HARD, _comment(remark), Break.HARD)]


def _leading(gap: Gap) -> list[Doc]:
    """The comments in front of a token that begins an item or a clause."""
    return [*_on_lines(gap.own), *(doc for remark in gap.before for doc in (_comment(remark), Break.SPACE))]


def _inside(gap: Gap) -> list[Doc]:
    """All comments of a gap, behind what is on the line."""
    return [*_trailing(gap.after), *_on_lines(gap.own), *_trailing(gap.before)]
