"""A statement and its values stay apart, whatever stands in either (reference 2.7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ToolError
from halo_runtime.templates import WrittenText
from halo_runtime.tools.sql.statements import MAX_CHARS, Dialect, Statement, read_statement

BOTH = pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])


def shown(statement: Statement) -> tuple[str, list[Any]]:
    return statement.text, [value.value for value in statement.values]


@pytest.mark.parametrize(
    ("sql", "params", "text", "values"),
    [
        ("select %s, %s", [1, "x"], "select $1, $2", [1, "x"]),
        ("select %(a)s, %(b)s, %(a)s", {"a": 1, "b": None, "more": 2}, "select $1, $2, $1", [1, None]),
        ("select 1", None, "select 1", []),
        ("select 1", [], "select 1", []),
        ("a like 'x%' and b = %s", [1], "a like 'x%' and b = $1", [1]),
        ("a like 'x%%' and b = %s", [1], "a like 'x%' and b = $1", [1]),
        ("a like 'x%%'", None, "a like 'x%%'", []),
        ("a like '%s'", None, "a like '%s'", []),
        ("select 7 % 2, 7 %% 2, %s", [1], "select 7 % 2, 7 % 2, $1", [1]),
        ("select 'it''s %s', \"%s\", %s -- %s\n/* %s */", [1], "select 'it''s %s', \"%s\", $1 -- %s\n/* %s */", [1]),
        ("select e'\\'%s', $$%s$$, $a$%s$$%s$a$, %s", [1], "select e'\\'%s', $$%s$$, $a$%s$$%s$a$, $1", [1]),
        ("/* a /* %s */ %s */ select %s", [1], "/* a /* %s */ %s */ select $1", [1]),
        ("select data ? 'key', xs[1:2], a::text, %s", [1], "select data ? 'key', xs[1:2], a::text, $1", [1]),
        ("select a$1, %s", [1], "select a$1, $1", [1]),
        ("select '{{x}}'", None, "select '{{x}}'", []),
    ],
)
def test_placeholders_of_postgresql(sql: str, params: Any, text: str, values: list[Any]) -> None:
    assert shown(read_statement(sql, params, "postgresql")) == (text, values)


@pytest.mark.parametrize(
    ("sql", "params", "text", "values"),
    [
        ("select %s, %s", [1, "x"], "select ?, ?", [1, "x"]),
        ("select %(a)s, %(b)s, %(a)s", {"a": 1, "b": None}, "select ?, ?, ?", [1, None, 1]),
        ("select '%s', [%s], `%s`, \"?\", %s -- ?", [1], "select '%s', [%s], `%s`, \"?\", ? -- ?", [1]),
        ("select 1 /* ? :a", None, "select 1 /* ? :a", []),
    ],
)
def test_placeholders_of_sqlite(sql: str, params: Any, text: str, values: list[Any]) -> None:
    assert shown(read_statement(sql, params, "sqlite")) == (text, values)


def test_a_place_for_json_is_known_by_its_cast() -> None:
    statement = read_statement("select %s::jsonb, %s :: json, %s, %s::jsonpath", [[1], [2], [3], [4]], "postgresql")
    assert [value.as_json for value in statement.values] == [True, True, False, False]


@BOTH
@pytest.mark.parametrize(
    ("sql", "params", "problem"),
    [
        ("", None, "empty"),
        (" \n", None, "empty"),
        ("select 1\0", None, "NUL"),
        ("select '\ud800'", None, "Unicode"),
        ("select " + "1" * MAX_CHARS, None, "over 100,000 characters; give long values in params"),
        ("select %s", None, "the placeholder %s and no params"),
        ("select %(a)s", None, r"the placeholder %\(a\)s and no params"),
        ("select %s", [], "params has 0 values, and there are more placeholders"),
        ("select %s", [1, 2], "params has 2 values for 1 placeholders"),
        ("select '%s'", [1], "1 values for 0 placeholders; placeholders are %s without quotes"),
        ("select %s", {"a": 1}, "params must be a list for the placeholder %s"),
        ("select %(a)s", [1], r"params must be an object by name for the placeholder %\(a\)s"),
        ("select %(a)s", {"b": 1, "c": 2}, r"no value for %\(a\)s; it has b, c"),
        ("select 7 %size", None, "`%si` is no placeholder; write a space behind the %"),
        ("select %s", "x", "params takes a list, or an object by name, not String"),
    ],
)
def test_what_cannot_be_bound_says_how_to_write_it(dialect: Dialect, sql: str, params: Any, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        read_statement(sql, params, dialect)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [("postgresql", "select $1"), ("sqlite", "select ?"), ("sqlite", "select ?1"), ("sqlite", "select :name")],
)
def test_placeholders_of_other_kinds_are_refused_by_name(dialect: Dialect, sql: str) -> None:
    with pytest.raises(ToolError, match=r"placeholders are %s, or %\(name\)s"):
        read_statement(sql, ["x"], dialect)


@BOTH
def test_a_value_filled_into_the_text_is_refused_and_a_whole_text_is_not(dialect: Dialect) -> None:
    filled = WrittenText(("select * from users where id = ", " limit 1"), ("1 or true",))
    with pytest.raises(
        ToolError, match=r"at `select \* from users where id =\{\{…\}\}` write %s, and give the value in"
    ):
        read_statement(filled, None, dialect)
    whole = WrittenText(("", ""), ("select 1",))
    assert read_statement(whole, None, dialect).text == "select 1"
    assert read_statement(WrittenText(("select 1",)), None, dialect).text == "select 1"


PIECES = st.lists(
    st.sampled_from(
        ["%s", "%(a)s", "%%", "%", "'", '"', "--", "\n", "/*", "*/", "$$", "$a$", "e'", "\\", "x", " ", "{{x}}", "é"]
    )
)


@BOTH
@given(pieces=PIECES, value=st.text())
def test_a_value_is_never_in_the_text(dialect: Dialect, pieces: list[str], value: str) -> None:
    marked = f"zq{value}zq"
    for params in ([marked] * pieces.count("%s"), {"a": marked}):
        try:
            statement = read_statement("".join(pieces), params, dialect)
        except ToolError:
            continue
        assert "zq" not in statement.text
        assert {value.value for value in statement.values} <= {marked}


@BOTH
@given(st.text())
def test_without_params_a_text_is_sent_as_it_is_or_refused(dialect: Dialect, sql: str) -> None:
    try:
        statement = read_statement(sql, None, dialect)
    except ToolError:
        return
    assert shown(statement) == (sql, [])
