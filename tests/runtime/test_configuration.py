"""halo.toml: what it may say, where it is found, and how mistakes in it are told."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.configuration import configuration, read_configuration
from halo_runtime.errors import ConfigError
from halo_runtime.models.pricing import Price

FILE = Path("/project/halo.toml")

WHOLE = """\
replies = "tests/replies.json"
store = "../runs"
theme = "dark"

[models]
fast = "openai/gpt-5-mini"
local-one = "ollama/qwen3:8b"

[prices."openai/my-model"]
input = 1
output = 2.50
cached = 0.1
cache_write = 1.25

[prices]
gpt-4o = {input = 0, output = 0}

[keys]
run = "f5"
"""


def test_everything_that_may_be_said_is_read() -> None:
    found = read_configuration(WHOLE, FILE)
    assert found.model("fast") == "openai/gpt-5-mini"
    assert found.model("openai/gpt-4o") == "openai/gpt-4o"
    assert found.prices == {
        "openai/my-model": Price(Decimal(1), Decimal("2.50"), Decimal("0.1"), Decimal("1.25")),
        "gpt-4o": Price(Decimal(0), Decimal(0)),
    }
    assert (found.replies, found.store) == ("/project/tests/replies.json", Path("/project/../runs"))
    assert (found.theme, found.keys) == ("dark", {"run": "f5"})


def test_an_empty_file_says_nothing() -> None:
    found = read_configuration("", FILE)
    assert (found.aliases, found.prices, found.replies, found.store) == ({}, {}, None, None)


PRICED = '[prices."openai/x"]\ninput = 1\noutput = 2\n\n'


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("replies = [\n", None, "this is no TOML"),
        ("a = 1\nb = = 2\n", 2, "this is no TOML"),
        ('# models\nmodles = {}\nstore = "x"', 2, "unknown key `modles`; did you mean `models`?"),
        ("zzzzzz = 1", 1, "unknown key `zzzzzz`; there are models, prices, keys, replies, store, theme"),
        ("\nreplies = 3", 2, "`replies` must be a text in quotes"),
        ('store = " "', 1, "`store` must be a text in quotes"),
        ('models = "gpt-5"', 1, "`models` must be a table; write [models]"),
        ('[models]\n\nfast = "gpt"', 3, '`fast` must name a model with its service, such as fast = "openai/'),
        ("[models]\nfast = 1", 2, "`fast` must name a model"),
        ('[models]\n"gpt-5" = "openai/gpt-5"', 2, "`gpt-5` cannot stand for a model"),
        ('[models]\n"a b" = "openai/gpt-5"', 2, "`a b` cannot stand for a model"),
        ("[prices]\ngpt-4o = 3", 2, 'the price of "gpt-4o" must be a table; write [prices."gpt-4o"] with input = 1.0'),
        ('[prices."my-model"]\ninput = 1', 1, '"my-model" names no model; write its service too'),
        (PRICED + '[prices."openai/y"]\ninput = 1', 5, 'the price of "openai/y" has no `output`'),
        (PRICED + '[prices."openai/y"]\noutput = 1\ninput = "1"', 7, "`input` must be a number of US dollars"),
        (PRICED + '[prices."openai/y"]\ninput = -1\noutput = 1', 6, "`input` must be a number of US dollars"),
        (PRICED + '[prices."openai/y"]\ninput = 1\noutput = nan', 7, "`output` must be a number of US dollars"),
        (PRICED + '[prices."openai/y"]\ninput = 1\noutput = true', 7, "`output` must be a number of US dollars"),
        ('[prices]\n"openai/x" = {input = 1, outptu = 2}', 2, "unknown key `outptu`; did you mean `output`?"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_to_write(text: str, line: int | None, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_configuration(text, FILE)
    place = f"{FILE}:{line}: " if line is not None else f"{FILE}: "
    assert caught.value.message.startswith(place)
    assert said in caught.value.message


@given(st.text() | st.lists(st.sampled_from([*WHOLE.splitlines(), "[models]", "[", "=", '"'])).map("\n".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        read_configuration(text, FILE)


def test_the_nearest_file_upwards_counts_and_the_environment_before_it(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "halo.toml").write_text('replies = "r.json"\nstore = "runs"')
    assert configuration(inner, {}).folder == tmp_path
    assert configuration(inner, {}).store == tmp_path / "runs"
    said = configuration(inner, {"HALO_REPLIES": "/else.json", "HALO_STORE": "/else"})
    assert (said.replies, said.store) == ("/else.json", Path("/else"))
    (tmp_path / "a" / "halo.toml").write_text("")
    assert configuration(inner, {}).folder == tmp_path / "a"


def test_without_a_file_the_folder_is_its_own_project(tmp_path: Path) -> None:
    found = configuration(tmp_path, {"HALO_REPLIES": ""})
    assert (found.folder, found.file, found.replies) == (tmp_path, None, None)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "halo.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"halo\.toml is no UTF-8 text"):
        configuration(tmp_path, {})
