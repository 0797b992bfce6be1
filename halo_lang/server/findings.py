"""Diagnostics as the client shows them, and code actions that apply their fixes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lsprotocol import types

from halo_lang.analysis import Analysis
from halo_lang.diagnostics import Diagnostic, Fix, Severity
from halo_lang.server.view import View
from halo_lang.source import Span

SOURCE: Final = "halo"
FIX_ALL: Final = f"{types.CodeActionKind.SourceFixAll.value}.halo"
KINDS: Final = (types.CodeActionKind.QuickFix.value, FIX_ALL)
"""The kinds of code actions that there are."""

_SEVERITIES: Final = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
_FADED: Final = frozenset({"HL505", "HL506"})
"""What is never used and what never runs: editors show it faded."""

_SHOWN: Final = 40
"""Characters of a text that a title quotes."""


def diagnostics(view: View, analysis: Analysis) -> list[types.Diagnostic]:
    """All findings of a version, in order."""
    return [_told(view, found) for found in analysis.diagnostics]


def code_actions(view: View, analysis: Analysis, params: types.CodeActionParams) -> list[types.CodeAction]:
    """A quick fix for each fixable finding at the range or named by the client, and one action for all of them.

    Some clients ask at the cursor and name the findings of its line: a fix is offered anywhere on the line then.
    """
    span = view.places.span(params.range)
    named = {(one.code, view.places.span(one.range)) for one in params.context.diagnostics}
    fixable = [found for found in analysis.diagnostics if found.fix is not None]
    here = [found for found in fixable if _touches(found.span, span) or (found.code, found.span) in named]
    wanted = params.context.only
    return [
        *(_quick_fix(view, found) for found in here if _is_wanted(types.CodeActionKind.QuickFix.value, wanted)),
        *([_fix_all(view, fixable)] if _offers_all(here, fixable, wanted) else []),
    ]


def _told(view: View, found: Diagnostic) -> types.Diagnostic:
    related = [types.DiagnosticRelatedInformation(view.location(r.span), r.message) for r in found.related]
    return types.Diagnostic(
        range=view.range(found.span),
        message=f"{found.message}\nhint: {found.hint}" if found.hint else found.message,
        severity=_SEVERITIES[found.severity],
        code=found.code,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if found.code in _FADED else None,
        related_information=related if related and view.client.related else None,
    )


def _touches(one: Span, other: Span) -> bool:
    """Whether two ranges share a character or an edge; a cursor behind the last character is still at it."""
    return one.start <= other.end and other.start <= one.end


def _is_wanted(kind: str, wanted: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether the client asked for that kind, or one that it is a kind of, or for whatever there is."""
    return wanted is None or any(f"{kind}.".startswith(f"{_text(one)}.") for one in wanted if _text(one))


def _text(kind: types.CodeActionKind | str) -> str:
    return kind.value if isinstance(kind, types.CodeActionKind) else kind


def _offers_all(
    here: Sequence[Diagnostic], fixable: Sequence[Diagnostic], wanted: Sequence[types.CodeActionKind | str] | None
) -> bool:
    """On request wherever something is fixable; unasked, only where it would do more than the quick fix beside it."""
    if wanted is None:
        return bool(here) and len(fixable) > 1
    return bool(fixable) and _is_wanted(FIX_ALL, wanted)


def _quick_fix(view: View, found: Diagnostic) -> types.CodeAction:
    assert found.fix is not None
    return types.CodeAction(
        title=_title(view.places.source.text, found.fix),
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[_told(view, found)],
        is_preferred=True,
        edit=edit(view, [found.fix]),
    )


def _fix_all(view: View, fixable: Sequence[Diagnostic]) -> types.CodeAction:
    fixes = list(_apart(found.fix for found in fixable if found.fix is not None))
    return types.CodeAction("Fix all that has a certain fix", FIX_ALL, edit=edit(view, fixes))


def edit(view: View, fixes: Iterable[Fix]) -> types.WorkspaceEdit:
    """Edits of the document, as one change."""
    return types.WorkspaceEdit(changes={view.uri: [view.edit(fix.span, fix.text) for fix in fixes]})


def _apart(fixes: Iterable[Fix]) -> Iterator[Fix]:
    """Fixes that can be applied together: of two that touch, the first; the other is found again afterwards."""
    end = -1
    for fix in sorted(fixes, key=lambda fix: fix.span):
        if fix.span.start > end:
            yield fix
            end = fix.span.end


def _title(text: str, fix: Fix) -> str:
    before, after = _quoted(text[fix.span.start : fix.span.end]), _quoted(fix.text)
    if not before:
        return f"Insert {after}"
    return f"Replace {before} by {after}" if after else f"Remove {before}"


def _quoted(text: str) -> str:
    """A text for a title: on one line, and not too long; spaces alone are called so."""
    line = " ".join(text.split())
    if not line:
        return "white space" if text else ""
    return f"`{line[:_SHOWN]}…`" if len(line) > _SHOWN else f"`{line}`"
