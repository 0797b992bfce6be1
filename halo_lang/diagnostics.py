"""What is wrong with a program: one value type for parser, checks, command line, workbench and language server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from halo_lang.excerpt import excerpt, visible
from halo_lang.records import record
from halo_lang.source import Source, Span
from halo_lang.spelling import Guess


class Severity(StrEnum):
    """How bad a finding is: a program with an error does not run."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@record
class Related:
    """Another place that explains a diagnostic ("first declared here")."""

    message: str
    span: Span


@record
class Fix:
    """A text edit that certainly mends the diagnostic: replace `span` by `text`."""

    span: Span
    text: str

    @classmethod
    def of(cls, guess: Guess | None, span: Span) -> Fix | None:
        """The edit that writes a misspelt name as it was meant, where nothing else can have been meant."""
        return cls(span, guess.name) if guess is not None and guess.certain else None


@record
class Diagnostic:
    """One finding. Codes are stable (spec 1.4); `message` says what, `hint` what to do.

    Spans are relative to a declaration while a check builds it, absolute in `Program.diagnostics` and
    `Analysis.diagnostics`.
    """

    code: str
    severity: Severity
    message: str
    span: Span
    hint: str | None = None
    related: tuple[Related, ...] = ()
    fix: Fix | None = None

    def shifted(self, offset: int) -> Diagnostic:
        """The same finding with all its places `offset` further right."""
        return replace(
            self,
            span=self.span.shifted(offset),
            related=tuple(Related(r.message, r.span.shifted(offset)) for r in self.related),
            fix=Fix(self.fix.span.shifted(offset), self.fix.text) if self.fix else None,
        )


def error(
    code: str,
    message: str,
    span: Span,
    *,
    hint: str | None = None,
    related: tuple[Related, ...] = (),
    fix: Fix | None = None,
) -> Diagnostic:
    """A diagnostic of severity error."""
    return Diagnostic(code, Severity.ERROR, message, span, hint, related, fix)


def to_json(diagnostic: Diagnostic, source: Source) -> dict[str, object]:
    """The stable shape of spec 8.1: lines and columns from 1, columns in code points."""
    fix = diagnostic.fix
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        **range_to_json(diagnostic.span, source),
        "hint": diagnostic.hint,
        "related": [_related(related, source) for related in diagnostic.related],
        "fix": None if fix is None else {**range_to_json(fix.span, source), "text": fix.text},
    }


def render(diagnostic: Diagnostic, source: Source, paint: Callable[[str, str], str] | None = None) -> str:
    """One block for people: place, what happened, source line, carets, what to do.

    `paint(severity, label)` may colour the label.
    """
    at = source.position(diagnostic.span.start)
    path = visible(source.path)
    severity, message = diagnostic.severity.value, visible(diagnostic.message, keep="\t\n")
    label = f"{severity} {diagnostic.code}"
    gutter = " " * len(str(at.line))
    lines = [
        f"{path}:{at.line}:{at.column}: {paint(severity, label) if paint else label}: {message}",
        *excerpt(source, diagnostic.span),
    ]
    for related in diagnostic.related:
        place = source.position(related.span.start)
        lines.append(f"{gutter} = {path}:{place.line}:{place.column}: {visible(related.message)}")
    if diagnostic.hint:
        lines.append(f"{gutter} = hint: {visible(diagnostic.hint)}")
    return "\n".join(lines)


def range_to_json(span: Span, source: Source) -> dict[str, object]:
    """A place as every JSON of ours tells it."""
    start, end = source.position(span.start), source.position(span.end)
    return {"line": start.line, "column": start.column, "endLine": end.line, "endColumn": end.column}


def _related(related: Related, source: Source) -> dict[str, object]:
    place = source.position(related.span.start)
    return {"line": place.line, "column": place.column, "message": related.message}
