"""String literals: their values, their unknown escapes, and where each character of a value is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.strings import Literal, decode

VALUES = {
    "escapes": (r'"say \"hi\" \\ \t \n"', 'say "hi" \\ \t \n'),
    "an unknown escape stays as written": (r'"a\qb"', r"a\qb"),
    "a backslash in front of an escape": (r'"\\n"', r"\n"),
    "raw": (r"'C:\new \"x\"'", r"C:\new \"x\""),
    "raw, like an escape": (r"'\n'", r"\n"),
    "empty": ('""', ""),
    "empty raw": ("''", ""),
    "empty triple": ('""""""', ""),
    "triple on one line": ('"""a "quoted" b"""', 'a "quoted" b'),
    "triple that does not begin with a break is kept": ('"""one\n      two\n   """', "one\n      two\n   "),
    "triple loses its first break and indentation": ('"""\n   a\n     b\n   c"""', "a\n  b\nc"),
    "triple loses a last line of white space with its break": ('"""\n   a\n   """', "a"),
    "the dropped last line does not set the indentation": ('"""\n   a\n """', "a"),
    "blank lines do not count": ('"""\n   a\n\n  \n   b"""', "a\n\n\nb"),
    "a blank line keeps what is longer than the indentation": ('"""\n  a\n     \n  b"""', "a\n   \nb"),
    "no common indentation": ('"""\na\n  b"""', "a\n  b"),
    "tabs and spaces share only what is equal": ('"""\n\t a\n\tb"""', " a\nb"),
    "dedent comes before escapes": ('"""\n  a\\n b\n  \\tc"""', "a\n b\n\tc"),
    "CRLF inside is one break": ('"""\r\n  a\r\n  b\r\n  """', "a\nb"),
    "CRLF in a kept triple": ('"""a\r\nb"""', "a\nb"),
    "a lone return is no break": ('"""a\rb"""', "a\rb"),
    "only blank lines share no indentation": ('"""\n   \n  """', "   "),
    "a quote that is escaped": ('"""\\"' + '"""', '"'),
}


@pytest.mark.parametrize(("literal", "value"), VALUES.values(), ids=VALUES)
def test_a_literal_stands_for_its_value(literal: str, value: str) -> None:
    assert decode(literal) == value
    assert Literal(literal).value == value


@pytest.mark.parametrize(
    ("literal", "places"),
    [(r'"a\qb\n"', (2,)), (r'"\\q"', ()), (r"'\q'", ()), ('"""\n   \\q\n   \\\n   x"""', (7, 13)), (r'"\ü"', (1,))],
)
def test_unknown_escapes_are_found_at_their_backslash(literal: str, places: tuple[int, ...]) -> None:
    assert Literal(literal).unknown_escapes == places
    assert all(literal[place] == "\\" for place in places)


@given(st.text("ab \n\t\r", max_size=40), st.sampled_from(['"""', "'"]))
def test_each_character_of_a_value_is_found_where_it_is_written(body: str, quote: str) -> None:
    literal = Literal(f"{quote}{body}{quote}" if quote != "'" else f"'{body.replace(chr(10), ' ')}'")
    for index, character in enumerate(literal.value):
        at = literal.offset(index)
        assert literal.text[at] == character or literal.text[at : at + 2] == "\r\n"


def test_an_escape_is_found_at_its_backslash_and_the_end_at_the_closing_quote() -> None:
    literal = Literal(r'"a\nb"')
    assert [literal.offset(index) for index in range(4)] == [1, 2, 4, 5]


@pytest.mark.parametrize(
    ("literal", "start", "end", "place"),
    [
        (r'"a\nb"', 0, 2, 4),
        (r"'a\nb'", 0, 2, 3),
        ('"""\n  ab\n  """', 0, 2, 8),
        ('"""\n  ab\n  cd\n"""', 0, 2, 8),
        ('"""a\r\nb"""', 0, 1, 4),
        ('"ab"', 2, 2, 3),
        ('"ab"', 0, 9, 3),
    ],
)
def test_a_part_of_a_value_ends_right_behind_its_last_character(literal: str, start: int, end: int, place: int) -> None:
    assert Literal(literal).end(start, end) == place


@given(st.text(max_size=60))
def test_decoding_any_body_gives_a_value(body: str) -> None:
    text = body.replace('"', "").replace("\\", "")
    assert isinstance(Literal(f'"""{text}"""').value, str)
    assert decode(f'"""x{text}"""') == "x" + text.replace("\r\n", "\n")
