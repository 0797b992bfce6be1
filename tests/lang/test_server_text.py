"""The server's text and places are the client's, whatever is typed and however columns are counted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

import halo_lang
from halo_lang.formatter import format_source
from halo_lang.source import Source
from tests.lang.editor_client import Editor, applied, at, editor, range_of, replace

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENCODINGS = ("utf-8", "utf-16", "utf-32")
BEFORE = {
    "plain": "text",
    "emoji": "\U0001f600",
    "a family of emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "combining": "e\u0301",
    "wide": "漢字",
    "tab": "\t",
    "three bytes": "\u20ac",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=ENCODINGS)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Editor, str]]:
    """A server that counts as asked, and how."""
    async with editor(request.param) as opened:
        yield opened, request.param


def program(before: str, line_end: str = "\n") -> str:
    """A program whose mistake stands behind `before` on its line."""
    text = f'agent Bot [openai/x-1]\n\npipeline Main() -> Result:\n  "{before}" |> Bto.answer()\n'
    return text.replace("\n", line_end)


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
async def test_a_place_is_told_in_the_units_agreed_on(client: tuple[Editor, str], before: str, line_end: str) -> None:
    opened, encoding = client
    text = program(before, line_end)
    (found,) = [one for one in await opened.diagnostics(opened.open(text)) if one.code == "HL203"]
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    assert found.range == range_of(lines, "Bto", encoding)


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_an_edit_is_made_in_the_units_agreed_on(client: tuple[Editor, str], before: str, line_end: str) -> None:
    opened, encoding = client
    text = program(before, line_end)
    document = opened.open(text)
    opened.change(document, 2, replace(range_of(text.replace("\r\n", "\n"), "Bto", encoding), "Bot"))
    assert await opened.codes(document, 2) == []


async def test_a_byte_order_mark_takes_its_place_and_means_nothing(client: tuple[Editor, str]) -> None:
    opened, encoding = client
    text = "\ufeffagent Bot [oqenai/x-1]\n"
    (found,) = [one for one in await opened.diagnostics(opened.open(text)) if one.code == "HL306"]
    assert found.range.start == at(text, "oqenai", encoding)


async def test_an_edit_in_the_middle_of_a_character_is_made_in_front_of_it() -> None:
    async with editor("utf-16") as opened:
        document = opened.open(program("\U0001f600"))
        middle = types.Position(3, 4)
        opened.change(document, 2, replace(types.Range(middle, middle), "x"))
        assert await has_text(opened, document, program("x\U0001f600"))


EDITS = {
    "behind the end of a line": ((0, 900), (0, 2**31 - 1), "a\nb", "aX\nb"),
    "behind the end of the text": ((9, 0), (2**31 - 1, 5), "a\nb", "a\nbX"),
    "with its ends swapped": ((1, 1), (0, 0), "a\nb", "X"),
    "at the end of a line with CRLF": ((0, 5), (0, 5), "a\r\nb", "aX\r\nb"),
    "of an empty text": ((0, 0), (0, 0), "", "X"),
}


@pytest.mark.parametrize(("start", "end", "before", "expected"), EDITS.values(), ids=EDITS)
async def test_a_range_outside_the_text_is_moved_into_it(
    client: tuple[Editor, str], start: tuple[int, int], end: tuple[int, int], before: str, expected: str
) -> None:
    opened, encoding = client
    document = opened.open(before)
    opened.change(document, 2, replace(types.Range(types.Position(*start), types.Position(*end)), "X"))
    assert await has_text(opened, document, expected, encoding)


async def test_a_whole_text_replaces_the_old_one(client: tuple[Editor, str]) -> None:
    opened, encoding = client
    document = opened.open("a")
    opened.change(
        document, 2, types.TextDocumentContentChangeWholeDocument("b"), replace(types.Range(START, START), "c")
    )
    assert await has_text(opened, document, "cb", encoding)


@pytest.mark.parametrize("version", [0, 1, -5])
async def test_edits_count_in_the_order_of_their_messages_whatever_their_versions_say(
    client: tuple[Editor, str], version: int
) -> None:
    opened, _ = client
    document = opened.open(program("x"))
    await opened.diagnostics(document)
    opened.change(document, version, replace(range_of(program("x"), "Bto"), "Bot"))
    assert await opened.codes(document, version) == []


START = types.Position(0, 0)
PIECES = st.sampled_from(
    [
        "",
        "x",
        "\n",
        "\r\n",
        "\r",
        '"',
        "/*",
        "*/",
        "//",
        "{",
        "}",
        "|>",
        "agent A [a/b]\n",
        "\U0001f600",
        "e\u0301",
        "\t",
    ]
)
PLACES = st.tuples(st.floats(0, 1), st.floats(0, 1), PIECES)


@settings(max_examples=15)
@given(st.lists(st.lists(PLACES, min_size=1, max_size=3), min_size=1, max_size=6))
async def test_after_any_edits_the_server_has_the_text_of_the_client_and_says_what_a_fresh_check_says(
    client: tuple[Editor, str], messages: list[list[tuple[float, float, str]]]
) -> None:
    opened, encoding = client
    text = program("\U0001f600") + program("a", "\r\n")
    document = opened.open(text)
    for version, edits in enumerate(messages, 2):
        changes: list[types.TextDocumentContentChangeEvent] = []
        for here, there, new in edits:
            start, end = sorted((round(here * len(text)), round(there * len(text))))
            end = min(end, start + 30)
            changes.append(replace(types.Range(place(text, start, encoding), place(text, end, encoding)), new))
            # Between the two characters of a line break is no position; the client means the end of the line.
            start, end = (offset - (text[offset - 1 : offset + 1] == "\r\n") for offset in (start, end))
            text = text[:start] + new + text[end:]
        opened.change(document, version, *changes)
    told = await opened.diagnostics(document, len(messages) + 1)
    expected = halo_lang.check(halo_lang.parse(Source(text))).diagnostics
    assert [(one.code, one.range.start) for one in told] == [
        (one.code, place(text, one.span.start, encoding)) for one in expected
    ]
    assert await has_text(opened, document, text, encoding)


def place(text: str, offset: int, encoding: str) -> types.Position:
    """The position of an offset, counted by Python's own codecs and its idea of lines."""
    offset -= text[offset - 1 : offset + 1] == "\r\n"
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return at(before + "\0", "\0", encoding)


async def has_text(opened: Editor, document: types.TextDocumentIdentifier, text: str, encoding: str = "utf-16") -> bool:
    """Whether the server has that text: what it would change to format it is what formats it."""
    params = types.DocumentFormattingParams(document, types.FormattingOptions(2, True))
    edits = await opened.text_document_formatting_async(params)
    return applied(text, edits or (), encoding) == format_source(Source(text))
