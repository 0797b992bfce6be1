"""The language server as an editor sees it: features, positions, edits."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from lsprotocol import types

from halo_lang.formatter import format_source
from halo_lang.source import Source
from tests.lang.editor_client import Editor, applied, at, editor, range_of, replace

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAM = """\
agent Bot [openai/gpt-4o-mini]

pipeline Main(text: String) -> Result:
  text
    |> Bot.answer() as reply
    |? (context.data.reply.kind = "bug")
    |> Bto.answer("{{reply}}")
"""
WHOLE = PROGRAM.replace(" = ", " == ").replace("Bto", "Bot")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Editor]:
    """One server for all tests that do not break it; each opens documents of its own."""
    everything = types.TextDocumentClientCapabilities(
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(related_information=True),
        hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
    )
    async with editor(abilities=everything) as opened:
        yield opened


async def test_what_is_wrong_is_told_when_a_document_is_opened(client: Editor) -> None:
    found = await client.diagnostics(client.open(PROGRAM))
    assert [one.code for one in found] == ["HL102", "HL203"]
    assert found[1].range == range_of(PROGRAM, "Bto")
    assert found[1].severity == types.DiagnosticSeverity.Error
    assert found[1].source == "halo"
    assert "hint: did you mean `Bot`?" in found[1].message


async def test_what_is_wrong_follows_the_edits(client: Editor) -> None:
    document = client.open(PROGRAM)
    await client.diagnostics(document)
    client.change(document, 2, replace(range_of(PROGRAM, " = "), " == "), replace(range_of(PROGRAM, "Bto"), "Bot"))
    assert "HL203" not in await client.codes(document, 2)


async def test_a_document_that_is_closed_has_no_diagnostics_left(client: Editor) -> None:
    document = client.open(PROGRAM)
    client.text_document_did_close(types.DidCloseTextDocumentParams(document))
    assert await client.diagnostics(document, None) == ()


async def test_a_name_declared_twice_points_at_the_first(client: Editor) -> None:
    text = "agent A [openai/x-1]\nagent A [openai/x-1]\n"
    (found,) = [one for one in await client.diagnostics(client.open(text)) if one.code == "HL201"]
    assert found.related_information
    assert found.related_information[0].location.range == range_of(text, "A")


async def test_what_is_never_used_is_shown_faded(client: Editor) -> None:
    (found,) = await client.diagnostics(client.open("agent A [openai/x-1]\n"))
    assert (found.code, found.tags) == ("HL505", (types.DiagnosticTag.Unnecessary,))


async def test_a_fix_is_offered_where_the_cursor_is(client: Editor) -> None:
    document = client.open(PROGRAM)
    cursor = at(PROGRAM, " = ", shift=1)
    (fix,) = [one for one in await actions(client, document, types.Range(cursor, cursor)) if one.is_preferred]
    assert fix.title == "Replace `=` by `==`"
    assert fix.edit
    assert fix.edit.changes
    assert applied(PROGRAM, fix.edit.changes[document.uri]) == PROGRAM.replace(" = ", " == ")


async def test_no_fix_is_offered_where_nothing_is_wrong(client: Editor) -> None:
    assert await actions(client, client.open(PROGRAM), range_of(PROGRAM, "agent")) == []


async def test_all_that_can_be_fixed_is_fixed_at_once(client: Editor) -> None:
    document = client.open(PROGRAM)
    only = types.CodeActionKind.SourceFixAll
    (fix,) = await actions(client, document, range_of(PROGRAM, "agent"), only)
    assert fix.kind == "source.fixAll.halo"
    assert fix.edit
    assert fix.edit.changes
    assert applied(PROGRAM, fix.edit.changes[document.uri]) == WHOLE


async def actions(
    client: Editor, document: types.TextDocumentIdentifier, range_: types.Range, *only: types.CodeActionKind
) -> list[types.CodeAction]:
    """The code actions at a range."""
    context = types.CodeActionContext([], only or None)
    found = await client.text_document_code_action_async(types.CodeActionParams(document, range_, context))
    return [one for one in found or () if isinstance(one, types.CodeAction)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
async def test_formatting_edits_only_the_lines_that_change(client: Editor, line_end: str) -> None:
    text = WHOLE.replace("  text\n    |> Bot", "  text |>   Bot").replace("\n", line_end)
    params = types.DocumentFormattingParams(client.open(text), types.FormattingOptions(8, False))
    edits = await client.text_document_formatting_async(params)
    assert edits
    assert {edit.range.start.line for edit in edits} == {3}
    assert applied(text, edits) == format_source(Source(text)) == WHOLE.replace("\n", line_end)


async def test_formatting_what_is_formatted_changes_nothing(client: Editor) -> None:
    params = types.DocumentFormattingParams(client.open(WHOLE), types.FormattingOptions(2, True))
    assert await client.text_document_formatting_async(params) == ()


async def test_formatting_keeps_a_byte_order_mark(client: Editor) -> None:
    text = "\ufeff" + WHOLE + "\n\n"
    params = types.DocumentFormattingParams(client.open(text), types.FormattingOptions(2, True))
    assert applied(text, await client.text_document_formatting_async(params) or ()) == "\ufeff" + WHOLE


async def test_the_outline_shows_pipelines_with_their_stages(client: Editor) -> None:
    found = await client.text_document_document_symbol_async(types.DocumentSymbolParams(client.open(WHOLE)))
    assert found
    symbols = [one for one in found if isinstance(one, types.DocumentSymbol)]
    assert [(one.name, one.selection_range) for one in symbols] == [
        ("Bot", range_of(WHOLE, "Bot")),
        ("Main", range_of(WHOLE, "Main")),
    ]
    assert len(symbols[1].children or ()) == 3


async def test_declarations_of_all_open_documents_are_found_by_some_of_their_letters(client: Editor) -> None:
    document = client.open("agent Zweig [openai/x-1]\nagent Zebra [openai/x-1]\n")
    found = await client.workspace_symbol_async(types.WorkspaceSymbolParams("zbr"))
    assert [(one.name, one.location.uri) for one in found or ()] == [("Zebra", document.uri)]
