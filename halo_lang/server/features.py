"""The requests that the server answers, each a function of a document's version.

Those of the first table are given the analysis of the version as well; those of the second need only its text. A new
feature is a function and a line in a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from lsprotocol import types

from halo_lang import assist
from halo_lang.analysis import Analysis
from halo_lang.assist.completion import ItemKind
from halo_lang.assist.positions import units
from halo_lang.assist.signatures import ParameterHelp
from halo_lang.server import findings
from halo_lang.server.colours import LEGEND
from halo_lang.server.reformat import formatting
from halo_lang.server.view import View

OfAnalysis: TypeAlias = Callable[[View, Analysis, Any], object]
OfText: TypeAlias = Callable[[View, Any], object]

_MOST_ITEMS: Final = 250
_LOOK_BACK: Final = 40
_DUE: Final = {
    " ": re.compile(r"(?:\b(?:equips|requires)|\|>|[,:(&|=!<>]) $"),
    "{": re.compile(r"\{\{$"),
}
"""What stands in front of a cursor where a typed space or brace is a question. Elsewhere it is none: a list that opens
unasked takes the next Enter for its first item."""

_COMPLETED: Final = {
    ItemKind.KEYWORD: types.CompletionItemKind.Keyword,
    ItemKind.OPERATOR: types.CompletionItemKind.Operator,
    ItemKind.POLICY: types.CompletionItemKind.Interface,
    ItemKind.TOOL: types.CompletionItemKind.Module,
    ItemKind.SCHEMA: types.CompletionItemKind.Struct,
    ItemKind.AGENT: types.CompletionItemKind.Class,
    ItemKind.PIPELINE: types.CompletionItemKind.Function,
    ItemKind.UNKNOWN: types.CompletionItemKind.Text,
    ItemKind.PROVIDER: types.CompletionItemKind.Constructor,
    ItemKind.RULE: types.CompletionItemKind.Constructor,
    ItemKind.DIRECTIVE: types.CompletionItemKind.Keyword,
    ItemKind.MODEL: types.CompletionItemKind.EnumMember,
    ItemKind.TYPE: types.CompletionItemKind.TypeParameter,
    ItemKind.METHOD: types.CompletionItemKind.Method,
    ItemKind.EVENT: types.CompletionItemKind.Event,
    ItemKind.ARGUMENT: types.CompletionItemKind.Property,
    ItemKind.CHOICE: types.CompletionItemKind.EnumMember,
    ItemKind.PARAMETER: types.CompletionItemKind.Variable,
    ItemKind.RESULT: types.CompletionItemKind.Variable,
    ItemKind.FIELD: types.CompletionItemKind.Field,
    ItemKind.NAMESPACE: types.CompletionItemKind.Module,
    ItemKind.CONSTANT: types.CompletionItemKind.Constant,
    ItemKind.VARIABLE: types.CompletionItemKind.Variable,
}
_OUTLINED: Final[dict[str, types.SymbolKind]] = {
    "agent": types.SymbolKind.Class,
    "field": types.SymbolKind.Field,
    "pipeline": types.SymbolKind.Function,
    "policy": types.SymbolKind.Interface,
    "schema": types.SymbolKind.Struct,
    "stage": types.SymbolKind.Event,
    "store": types.SymbolKind.Module,
    "tool": types.SymbolKind.Module,
}


def hover(view: View, analysis: Analysis, params: types.HoverParams) -> types.Hover | None:
    """What the name at a position is."""
    found = assist.hover(analysis, view.places.offset(params.position))
    return types.Hover(view.prose(found.markdown), view.range(found.span)) if found else None


def definition(view: View, analysis: Analysis, params: types.DefinitionParams) -> list[types.Location]:
    """Where the name at a position is declared."""
    return [view.location(span) for span in assist.definition(analysis, view.places.offset(params.position))]


def references(view: View, analysis: Analysis, params: types.ReferenceParams) -> list[types.Location]:
    """All places that mean what the name at a position means."""
    offset = view.places.offset(params.position)
    found = assist.references(analysis, offset, declaration=params.context.include_declaration)
    return [view.location(span) for span in found]


def highlights(view: View, analysis: Analysis, params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
    """The same places, for marking them; the one that declares the name is marked as written to."""
    offset = view.places.offset(params.position)
    declared = set(assist.definition(analysis, offset))
    kinds = {True: types.DocumentHighlightKind.Write, False: types.DocumentHighlightKind.Read}
    return [
        types.DocumentHighlight(view.range(span), kinds[span in declared])
        for span in assist.references(analysis, offset)
    ]


def prepare_rename(view: View, analysis: Analysis, params: types.PrepareRenameParams) -> types.Range | None:
    """What a rename at a position would ask a new name for."""
    span = assist.rename_span(analysis, view.places.offset(params.position))
    return view.range(span) if span is not None else None


def rename(view: View, analysis: Analysis, params: types.RenameParams) -> types.WorkspaceEdit:
    """All edits of a rename. assist.RenameRefused says why there are none."""
    edits = assist.rename(analysis, view.places.offset(params.position), params.new_name)
    return findings.edit(view, edits)


def symbols(view: View, analysis: Analysis, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """The outline."""
    return [_symbol(view, symbol) for symbol in assist.outline(analysis)]


def _symbol(view: View, symbol: assist.Symbol) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=symbol.name,
        kind=_OUTLINED[symbol.kind],
        range=view.range(symbol.span),
        selection_range=view.range(symbol.name_span),
        detail=symbol.detail,
        children=[_symbol(view, child) for child in symbol.children],
    )


def workspace_symbols(
    documents: Sequence[tuple[View, Analysis]], params: types.WorkspaceSymbolParams
) -> list[types.WorkspaceSymbol]:
    """The declarations of the open documents whose names hold the characters asked for, in their order."""
    return [
        types.WorkspaceSymbol(view.location(symbol.name_span), symbol.name, _OUTLINED[symbol.kind])
        for view, analysis in documents
        for symbol in assist.outline(analysis)
        if _holds(symbol.name.casefold(), params.query.casefold())
    ]


def _holds(name: str, query: str) -> bool:
    rest = iter(name)
    return all(character in rest for character in query)


def completion(view: View, analysis: Analysis, params: types.CompletionParams) -> types.CompletionList:
    """What can be written at a position, likeliest first; of very much only the beginning, until more is typed."""
    offset = view.places.offset(params.position)
    if not _is_due(view.places.source.text[max(0, offset - _LOOK_BACK) : offset], params.context):
        return types.CompletionList(is_incomplete=False, items=[])
    found = assist.complete(analysis, offset, models=view.knowledge.models)
    range_ = view.range(found.span)
    items = [_item(view, item, range_) for item in found.items[:_MOST_ITEMS]]
    return types.CompletionList(len(found.items) > len(items), items)


def _is_due(before: str, context: types.CompletionContext | None) -> bool:
    """Whether something is to be offered: always on request, unasked only where the next thing is surely a name."""
    character = context.trigger_character if context else None
    return character not in _DUE or bool(_DUE[character].search(before))


def _item(view: View, item: assist.Item, range_: types.Range) -> types.CompletionItem:
    return types.CompletionItem(
        label=item.label,
        kind=_COMPLETED[item.kind],
        detail=item.detail or None,
        documentation=view.prose(item.documentation) if item.documentation else None,
        sort_text=item.sort,
        text_edit=types.TextEdit(range_, item.insert),
    )


def signature_help(view: View, analysis: Analysis, params: types.SignatureHelpParams) -> types.SignatureHelp | None:
    """The parameters of the call around a position, and which of them stands there."""
    found = assist.signature_help(analysis, view.places.offset(params.position))
    if found is None:
        return None
    documentation = view.prose(found.documentation) if found.documentation else None
    parameters = [_parameter(view, found.label, one) for one in found.parameters]
    signature = types.SignatureInformation(found.label, documentation, parameters)
    return types.SignatureHelp([signature], active_signature=0, active_parameter=found.active)


def _parameter(view: View, label: str, parameter: ParameterHelp) -> types.ParameterInformation:
    start, end = parameter.span
    # The protocol counts these in UTF-16, whatever it counts columns in.
    place = (units(label[:start]), units(label[:end])) if view.client.label_offsets else label[start:end]
    documentation = view.prose(parameter.documentation) if parameter.documentation else None
    return types.ParameterInformation(place, documentation)


def semantic_tokens(view: View, params: types.SemanticTokensParams) -> types.SemanticTokens:
    """The colours of the whole document."""
    return view.colours.full(view.places)


def semantic_tokens_delta(
    view: View, params: types.SemanticTokensDeltaParams
) -> types.SemanticTokens | types.SemanticTokensDelta:
    """What differs from the colours that were told before."""
    return view.colours.delta(view.places, params.previous_result_id)


def semantic_tokens_range(view: View, params: types.SemanticTokensRangeParams) -> types.SemanticTokens:
    """The colours of some lines."""
    return view.colours.lines(view.places, params.range.start.line, params.range.end.line)


OF_ANALYSIS: Final[dict[str, OfAnalysis]] = {
    types.TEXT_DOCUMENT_CODE_ACTION: findings.code_actions,
    types.TEXT_DOCUMENT_COMPLETION: completion,
    types.TEXT_DOCUMENT_DEFINITION: definition,
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: highlights,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: symbols,
    types.TEXT_DOCUMENT_HOVER: hover,
    types.TEXT_DOCUMENT_PREPARE_RENAME: prepare_rename,
    types.TEXT_DOCUMENT_REFERENCES: references,
    types.TEXT_DOCUMENT_RENAME: rename,
    types.TEXT_DOCUMENT_SIGNATURE_HELP: signature_help,
}

OF_TEXT: Final[dict[str, OfText]] = {
    types.TEXT_DOCUMENT_FORMATTING: formatting,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: semantic_tokens,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA: semantic_tokens_delta,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE: semantic_tokens_range,
}

OPTIONS: Final[dict[str, object]] = {
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions(findings.KINDS),
    types.TEXT_DOCUMENT_COMPLETION: types.CompletionOptions([".", "@", "[", "/", *_DUE]),
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: LEGEND,
    types.TEXT_DOCUMENT_SIGNATURE_HELP: types.SignatureHelpOptions(["(", ","]),
}
