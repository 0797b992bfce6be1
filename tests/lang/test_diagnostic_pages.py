"""The page of diagnostics, as people read it: its wrong examples are wrong, its right ones right, and so are the
programs of all other pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from halo_lang import SourceDecodeError, check, decode, not_utf8, parse
from halo_lang.catalog.codes import CODES, explain
from halo_runtime.models.pricing import is_priced
from tests.lang.mutations import EXAMPLES

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference/diagnostics.md").read_text("utf-8")
SECTIONS = {part.partition(":")[0]: part for part in PAGE.split("\n## ")[1:]}
WHOLE = {code.name: code for code in CODES}
"""The page shows long lines cut, and bytes that are no text as `�`; the codes have the examples whole."""

_BLOCK = re.compile(r"^```halo([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def codes(text: str) -> list[str]:
    """The codes of what is found in a text."""
    try:
        source = decode(text.encode("utf-8", "surrogateescape"))
    except SourceDecodeError as error:
        return [not_utf8(error).code]
    return [found.code for found in check(parse(source), is_priced=is_priced).diagnostics]


def examples(code: str) -> tuple[str, str]:
    """The wrong and the right example of a section, as they stand on the page unless they are cut there."""
    wrong, right = (found[1].strip() for found in _BLOCK.findall(SECTIONS[code]))
    whole = WHOLE[code]
    return (whole.wrong if {"…", "�"} & set(wrong) else wrong), (whole.right if "…" in right else right)


def right_blocks() -> list[tuple[str, str]]:
    """Every program that a page presents as right, with the page's name."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if page.name != "diagnostics.md"]
    found = ((page.name, *block) for page in pages for block in _BLOCK.findall(page.read_text("utf-8")))
    # A part of a program has nothing that uses what it declares, and what a `package` brings is not there.
    marked = {"fails", "package"}
    return [(page, text) for page, options, text in found if not marked & {*options.split()} and "pipeline" in text]


def test_every_code_has_a_section_in_order() -> None:
    assert list(SECTIONS) == list(WHOLE)


@pytest.mark.parametrize("code", SECTIONS)
def test_the_wrong_example_gives_its_code_and_the_right_one_nothing(code: str) -> None:
    wrong, right = examples(code)
    assert codes(wrong) == [code]
    assert codes(right) == []


@pytest.mark.parametrize("code", SECTIONS)
def test_the_terminal_is_told_what_the_page_says(code: str) -> None:
    shown = explain(code)
    assert shown is not None
    for block in _BLOCK.findall(SECTIONS[code]):
        assert block[1].strip() in re.sub("^    ", "", shown, flags=re.MULTILINE)


@pytest.mark.parametrize(("page", "text"), right_blocks())
def test_no_program_of_another_page_raises_an_alarm(page: str, text: str) -> None:
    assert codes(text) == [], page


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_example_raises_an_alarm(name: str) -> None:
    assert codes(EXAMPLES[name]) == []
