"""The language server as an editor sees it: features, positions, edits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException

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


async def test_a_fix_is_offered_for_a_finding_that_the_client_names_wherever_the_cursor_is(client: Editor) -> None:
    document = client.open(PROGRAM)
    (found,) = [one for one in await client.diagnostics(document) if one.code == "HL102"]
    start = types.Position(found.range.start.line, 0)
    offered = await actions(client, document, types.Range(start, start), named=(found,))
    assert [one.title for one in offered if one.is_preferred] == ["Replace `=` by `==`"]


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
    client: Editor,
    document: types.TextDocumentIdentifier,
    range_: types.Range,
    *only: types.CodeActionKind,
    named: Sequence[types.Diagnostic] = (),
) -> list[types.CodeAction]:
    """The code actions at a range, and for the findings that are named."""
    context = types.CodeActionContext(named, only or None)
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


TALK = """\
/// Answers people.
agent Bot [openai/gpt-4o-mini]

pipeline Main(text: String) -> Result:
  text
    |> Bot.answer() as reply
    |> Bot.polish("Shorten {{context.data.reply}}")
    |<> loop(Bot, "context.data.reply == 'ok'", max: 3)
"""


def asked(client: Editor, text: str, part: str, shift: int = 0) -> tuple[types.TextDocumentIdentifier, types.Position]:
    """A new document, and a position in it."""
    return client.open(text), at(text, part, shift=shift)


async def test_a_hover_tells_what_a_name_is(client: Editor) -> None:
    document, position = asked(client, TALK, "Bot.answer")
    found = await client.text_document_hover_async(types.HoverParams(document, position))
    assert found
    assert found.range == types.Range(position, at(TALK, ".answer"))
    assert isinstance(found.contents, types.MarkupContent)
    assert found.contents.kind == types.MarkupKind.Markdown
    assert "agent Bot [openai/gpt-4o-mini]" in found.contents.value


async def test_a_definition_is_where_the_name_is_declared(client: Editor) -> None:
    document, position = asked(client, TALK, "Bot.answer", shift=1)
    found = await client.text_document_definition_async(types.DefinitionParams(document, position))
    assert found == [types.Location(document.uri, range_of(TALK, "Bot"))]


async def test_references_are_found_in_strings_too(client: Editor) -> None:
    document, position = asked(client, TALK, "reply")
    params = types.ReferenceParams(types.ReferenceContext(False), document, position)
    found = await client.text_document_references_async(params)
    assert [one.range.start.line for one in found or ()] == [6, 7]


async def test_the_occurrences_of_a_name_are_marked_as_declared_or_read(client: Editor) -> None:
    document, position = asked(client, TALK, "Bot.polish")
    params = types.DocumentHighlightParams(document, position)
    found = await client.text_document_document_highlight_async(params)
    write, read = types.DocumentHighlightKind.Write, types.DocumentHighlightKind.Read
    assert [one.kind for one in found or ()] == [write, read, read, read]


async def test_a_rename_reaches_templates_and_conditions(client: Editor) -> None:
    document, position = asked(client, TALK, "reply", shift=2)
    asked_for = await client.text_document_prepare_rename_async(types.PrepareRenameParams(document, position))
    assert asked_for == range_of(TALK, "reply")
    edit = await client.text_document_rename_async(types.RenameParams(document, position, "answer2"))
    assert edit
    assert edit.changes
    assert applied(TALK, edit.changes[document.uri]) == TALK.replace("reply", "answer2")


async def test_what_is_no_name_cannot_be_renamed(client: Editor) -> None:
    document, position = asked(client, TALK, "pipeline")
    assert await client.text_document_prepare_rename_async(types.PrepareRenameParams(document, position)) is None


async def test_a_rename_that_would_clash_is_refused_with_the_reason(client: Editor) -> None:
    document, position = asked(client, TALK, "Bot")
    with pytest.raises(JsonRpcException, match="Main") as refusal:
        await client.text_document_rename_async(types.RenameParams(document, position, "Main"))
    assert refusal.value.code == types.LSPErrorCodes.RequestFailed


COMPLETIONS = {
    "what an agent may equip": ("tool Repo : GitHub(Env.T)\nagent A [a/b]\n  equips \0\n", "Repo"),
    "results": ("agent A [a/b]\npipeline M() -> R:\n  'x' |> A.go() as draft |> A.go(context.data.\0)\n", "draft"),
    "results in a string": (
        "agent A [a/b]\npipeline M() -> R:\n  'x' |> A.go() as draft |> A.go(\"{{\0}}\")\n",
        "draft",
    ),
    "models": ("agent A [openai/gpt-4o-m\0]\n", "openai/gpt-4o-mini"),
    "directives": ("@ret\0\nagent A [a/b]\n", "retry"),
}


@pytest.mark.parametrize(("marked", "expected"), COMPLETIONS.values(), ids=COMPLETIONS)
async def test_completion_offers(client: Editor, marked: str, expected: str) -> None:
    document, position = client.open(marked.replace("\0", "")), at(marked, "\0")
    found = await client.text_document_completion_async(types.CompletionParams(document, position))
    assert isinstance(found, types.CompletionList)
    (item,) = [one for one in found.items if one.label.lstrip("@") == expected]
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.kind


TRIGGERED = {
    "a space behind equips": ("tool Repo : GitHub(Env.T)\nagent A [a/b]\n  equips \0\n", " ", True),
    "a space behind a call": ("agent A [a/b]\npipeline M() -> R:\n  'x' |> A.go() \0\n", " ", False),
    "a second brace": ('agent A [a/b]\npipeline M(x: String) -> R:\n  x |> A.go("{{\0")\n', "{", True),
    "the brace of a block": ("agent A [a/b]\npipeline M(x: String) -> R:\n  x |* {\0\n", "{", False),
}


@pytest.mark.parametrize(("marked", "character", "offered"), TRIGGERED.values(), ids=TRIGGERED)
async def test_what_is_typed_opens_a_list_only_where_a_name_is_due(
    client: Editor, marked: str, character: str, offered: bool
) -> None:
    document, position = client.open(marked.replace("\0", "")), at(marked, "\0")
    context = types.CompletionContext(types.CompletionTriggerKind.TriggerCharacter, character)
    found = await client.text_document_completion_async(types.CompletionParams(document, position, context))
    assert isinstance(found, types.CompletionList)
    assert bool(found.items) == offered


async def test_of_very_many_items_the_likeliest_are_told_until_more_is_typed(client: Editor) -> None:
    document, position = asked(client, "agent A []\n", "]")
    found = await client.text_document_completion_async(types.CompletionParams(document, position))
    assert isinstance(found, types.CompletionList)
    assert found.is_incomplete
    assert found.items[0].label == "openai/"


async def test_the_signature_of_a_call_shows_its_parameters(client: Editor) -> None:
    text = "@retry(3, )\nagent A [a/b]\n"
    document, position = asked(client, text, ")")
    found = await client.text_document_signature_help_async(types.SignatureHelpParams(document, position))
    assert found
    (signature,) = found.signatures
    assert [str(one.label) in signature.label for one in signature.parameters or ()] == [True, True]
    assert found.active_parameter == 1


async def test_colours_are_told_with_the_legend(client: Editor) -> None:
    text = '@retry(3)\nagent A [a/b]\n\npipeline M() -> R:\n  "\U0001f600 {{x}}" |> A.go()\n'
    params = types.SemanticTokensParams(client.open(text))
    assert [one for one in await colours(client, params, text) if one[1] in ("decorator", "macro", "enumMember")] == [
        ("@retry", "decorator"),
        ("a/b", "enumMember"),
        ("{{x}}", "macro"),
    ]


async def test_colours_after_an_edit_are_told_as_a_difference(client: Editor) -> None:
    document = client.open(TALK)
    before = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
    assert before
    assert before.result_id
    client.change(document, 2, replace(types.Range(types.Position(4, 0), types.Position(4, 0)), "\n\n"))
    params = types.SemanticTokensDeltaParams(document, before.result_id)
    delta = await client.text_document_semantic_tokens_full_delta_async(params)
    after = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
    assert isinstance(delta, types.SemanticTokensDelta)
    assert after
    (edit,) = delta.edits
    data = list(before.data)
    data[edit.start : edit.start + edit.delete_count] = edit.data or ()
    assert (data, edit.delete_count) == (list(after.data), 1)


async def test_a_difference_from_colours_that_were_never_told_is_all_of_them(client: Editor) -> None:
    params = types.SemanticTokensDeltaParams(client.open(TALK), "never")
    assert isinstance(await client.text_document_semantic_tokens_full_delta_async(params), types.SemanticTokens)


async def test_the_colours_of_some_lines_are_theirs_in_the_whole(client: Editor) -> None:
    document = client.open(TALK)
    lines = types.Range(types.Position(3, 0), types.Position(5, 0))
    some = await client.text_document_semantic_tokens_range_async(types.SemanticTokensRangeParams(document, lines))
    everything = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
    assert some
    assert everything
    assert placed(some.data) == [one for one in placed(everything.data) if 3 <= one[0] <= 5]


def placed(data: Sequence[int]) -> list[tuple[int, int, int]]:
    """Line, column and type of each token."""
    found: list[tuple[int, int, int]] = []
    line = column = 0
    for number in range(0, len(data), 5):
        column = data[number + 1] + (0 if data[number] else column)
        line += data[number]
        found.append((line, column, data[number + 3]))
    return found


async def colours(client: Editor, params: types.SemanticTokensParams, text: str) -> list[tuple[str, str]]:
    """The text and the type of each token."""
    tokens = await client.text_document_semantic_tokens_full_async(params)
    assert tokens
    lengths = tokens.data[2::5]
    lines = [line.encode("utf-16-le") for line in text.split("\n")]
    return [
        (lines[line][2 * column : 2 * (column + length)].decode("utf-16-le"), client.legend[kind])
        for (line, column, kind), length in zip(placed(tokens.data), lengths, strict=True)
    ]
