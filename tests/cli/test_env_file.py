"""`--env-file`: variables as the shell and other tools write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from halo_runtime.cli.env_file import environment, parse
from halo_runtime.cli.usage import UsageError


@pytest.mark.parametrize(
    ("line", "variables"),
    [
        ("A=1", {"A": "1"}),
        ("export A=1", {"A": "1"}),
        ("  A = some words  # a remark", {"A": "some words"}),
        ("A=x#y", {"A": "x#y"}),
        ("A=", {"A": ""}),
        ('A=it\'s "so"', {"A": 'it\'s "so"'}),
        ('A="two\\nlines # and \\"more\\""', {"A": 'two\nlines # and "more"'}),
        ("A='raw \\n # text'  # a remark", {"A": "raw \\n # text"}),
        ("A=postgres://u:p@host/db?x=1&y=2", {"A": "postgres://u:p@host/db?x=1&y=2"}),
        ("# A=1", {}),
        ("   ", {}),
        ("\ufeffA=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=1\nA=2", {"A": "2"}),
    ],
)
def test_a_line_gives_a_variable(line: str, variables: dict[str, str]) -> None:
    assert parse(line, ".env") == variables


@pytest.mark.parametrize("line", ["secret-value", "A B=1", '="x"', 'A="secret', "A='secret", 'A="x" secret'])
def test_a_line_that_is_none_is_named_without_its_text(line: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(f"GOOD=1\n{line}\n", "my.env")
    assert refused.value.message == "my.env:2: no variable"
    assert "secret" not in str(refused.value.hint)


def test_what_is_set_already_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=file\nB=file\n")
    assert environment(str(path), {"A": "outer"}) == {"A": "outer", "B": "file"}
    assert environment(None, {"A": "outer"}) == {"A": "outer"}
