"""How the tour looks where others colour it: in HTML from `pygmentize`, and in Rich."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name
from rich.color import Color
from rich.console import Console
from rich.segment import Segment
from rich.syntax import Syntax

from halo_lang.highlight import HaloLexer
from tests.lang.test_highlight import TEXT

TOUR = Path(__file__).resolve().parents[2] / "examples/tour.halo"
SPAN = re.compile(r'<span class="(\w+)">([^<]*)</span>')

PLACES = [
    ("c1", "// Called once for each product; what it gives must fit the schema."),
    ("kd", "policy"),
    ("kd", "pipeline"),
    ("nc", "Concise"),
    ("nf", "Tour"),
    ("kt", "Array"),
    ("no", "local/smollm2"),
    ("nd", "@retry"),
    ("nd", "@timeout"),
    ("il", "500ms"),
    ("mf", "0.3"),
    ("k", "equips"),
    ("k", "each"),
    ("kp", "context"),
    ("nb", "System"),
    ("nn", "Writer"),
    ("nf", "write_slogan"),
    ("nv", "slogan"),
    ("na", "concurrency"),
    ("py", "data"),
    ("s2", '"tour.db"'),
    ("si", "{{audience}}"),
    ("si", "{{Writer.get}}"),
    *(("ow", operator) for operator in ("|>", "|?", "|*", "|!", "|<>", "~>")),
    *(("o", operator) for operator in ("->", "=>", "==", "!=", ">", "&&", "&")),
]
"""A class of Pygments' style sheets, and a token that has it."""


@cache
def pygmentize(*options: str) -> str:
    """What the command prints for the tour; it finds the lexer by its entry point."""
    command = [sys.executable, "-m", "pygments", "-f", "html", *options, str(TOUR)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout


@pytest.mark.parametrize(("kind", "token"), PLACES)
def test_html_gives_each_part_its_class(kind: str, token: str) -> None:
    spans = [(kind, html.unescape(text)) for kind, text in SPAN.findall(pygmentize("-l", "halo"))]
    assert (kind, token) in spans


def test_html_keeps_the_text_and_shows_no_errors() -> None:
    page = pygmentize("-l", "halo")
    assert html.unescape(re.sub(r"<[^>]*>", "", page)).rstrip("\n") == TOUR.read_text("utf-8").rstrip("\n")
    assert 'class="err"' not in page


def test_the_file_name_is_enough() -> None:
    assert pygmentize() == pygmentize("-l", "halo")


@cache
def segments() -> list[Segment]:
    """The tour as Rich writes it to a terminal, without its number of columns in the way."""
    syntax = Syntax(TOUR.read_text("utf-8"), "halo", theme="default")
    return list(Console(width=200, color_system="truecolor", force_terminal=True).render(syntax))


def coloured(part: str) -> set[Color | None]:
    """The colours of the segments with that text."""
    return {segment.style and segment.style.color for segment in segments() if segment.text == part}


def test_rich_keeps_the_text() -> None:
    lines = "".join(segment.text for segment in segments()).split("\n")
    assert "\n".join(line.rstrip() for line in lines).rstrip("\n") == TOUR.read_text("utf-8").rstrip("\n")


def test_rich_tells_what_halo_has_of_its_own_from_all_around_it() -> None:
    (placeholder,), (model,), (directive,), (operator,) = map(
        coloured, ("{{audience}}", "local/smollm2", "@retry", "|>")
    )
    assert None not in (placeholder, model, directive, operator)
    assert len({placeholder, *coloured('"For '), *coloured('"tour.db"')}) == 2
    assert model not in coloured("temp") | coloured("Writer")
    assert operator not in coloured("&&") | coloured("=>")


OFF = {"stripnl": st.just(False), "ensurenl": st.just("false"), "stripall": st.just(0), "tabsize": st.just("0")}


@settings(deadline=None)
@given(TEXT, st.fixed_dictionaries({}, optional=OFF))
def test_no_option_that_is_off_costs_a_character(text: str, options: dict[str, object]) -> None:
    assert "".join(value for _, value in HaloLexer(**options).get_tokens(text)) == text


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({"ensurenl": True}, "agent A", "agent A\n"),
        ({"stripnl": True}, "\nagent A\n\n", "agent A\n"),
        ({"stripall": "true"}, "  agent A  ", "agent A\n"),
        ({"stripnl": False, "ensurenl": True, "tabsize": 4}, "\n\tA", "\n    A\n"),
    ],
)
def test_an_option_that_is_on_does_what_it_does_to_every_lexer(
    options: dict[str, object], text: str, expected: str
) -> None:
    lexer = get_lexer_by_name("halo", **options)
    assert "".join(value for _, value in lexer.get_tokens(text)) == expected
