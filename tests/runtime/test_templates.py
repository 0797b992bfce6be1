"""Templates: what a placeholder is, and what filling puts in its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.placeholders import placeholders
from halo_runtime.json_types import MISSING, Json
from halo_runtime.templates import compile_template
from halo_runtime.values import lookup

VALUES: Json = {
    "n": 7,
    "one": 1.0,
    "none": None,
    "flag": True,
    "user": {"age": 3, "name": "Ann"},
    "rows": [{"y": 5}, ["é", 2]],
    "keys": {"0": "zero"},
    "store": "kept",
    "Ünï_2": "uni",
    "Env": {"X": "secret"},
}


def filled(text: str, values: Json = VALUES) -> str:
    return compile_template(text).fill(lambda path: lookup(values, path))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{n}}", "7"),
        ("{{one}}", "1"),
        ("{{none}}", "null"),
        ("{{flag}}", "true"),
        ("a {{user.name}} b {{ user.name }} c", "a Ann b Ann c"),
        ("{{user}}", '{"age":3,"name":"Ann"}'),
        ("{{ rows . 0 . y }}", "5"),
        ("{{rows.1}}", '["é",2]'),
        ("{{keys.0}}", "zero"),
        ("{{store}}", "kept"),
        ("{{Ünï_2}}", "uni"),
        ("{{{n}}}", "{7}"),
        ('{"a": {{n}}}', '{"a": 7}'),
        ("{{n}}{{n}}", "77"),
        ("", ""),
    ],
)
def test_a_placeholder_gives_way_to_its_value(text: str, result: str) -> None:
    assert filled(text) == result


@pytest.mark.parametrize("text", ["{{nobody}}", "{{ user.nope }}", "{{none.x}}", "{{rows.9}}", "{{n.x}}"])
def test_what_leads_nowhere_stays_as_it_is_written(text: str) -> None:
    assert filled(f"<{text}>") == f"<{text}>"


@pytest.mark.parametrize("text", ["{{Env.X}}", "{{ Env }}", "{{Env . X}}"])
def test_env_is_never_read(text: str) -> None:
    template = compile_template(text)
    assert filled(text) == text
    assert template.paths == ()
    assert not template.is_constant


@pytest.mark.parametrize(
    "text",
    [
        "{n}",
        "{{n}",
        "{{}}",
        "{{ }}",
        "{{n",
        "n}}",
        "{{a-b}}",
        "{{a b}}",
        "{{0}}",
        "{{.n}}",
        "{{n.}}",
        "{{n..x}}",
        "{{n\n}}",
    ],
)
def test_other_text_between_braces_is_text(text: str) -> None:
    assert compile_template(text).is_constant
    assert filled(text) == text


def test_what_is_filled_in_is_not_filled_again() -> None:
    assert filled("{{a}} {{b}}", {"a": "{{b}}", "b": "{{", "x": "}}"}) == "{{b}} {{"
    assert filled("{{a}}b}}", {"a": "{{", "b": "no"}) == "{{b}}"


def test_paths_are_in_order_with_digits_as_text() -> None:
    assert compile_template("{{ b.0.x }} {{a}} {{b}}").paths == (("b", "0", "x"), ("a",), ("b",))


@given(
    st.lists(st.sampled_from(["{{", "}}", "{", "}", "n", ".", " ", "0", "Env", "user", "\n", "é", "x-"])).map("".join)
)
def test_any_text_is_its_own_where_nothing_resolves(text: str) -> None:
    assert compile_template(text).fill(lambda _: MISSING) == text


@given(st.lists(st.tuples(st.text(st.sampled_from("ab {}.")), st.text())))
def test_values_stand_exactly_where_the_placeholders_stood(pieces: list[tuple[str, str]]) -> None:
    text = "".join(f"{before.replace('{', '')}{{{{v{number}}}}}" for number, (before, _) in enumerate(pieces))
    values = {f"v{number}": value for number, (_, value) in enumerate(pieces)}
    assert filled(text, values) == "".join(before.replace("{", "") + value for before, value in pieces)


@pytest.mark.parametrize("piece", ["{{", "{{ ", "{{a.", "{{a", "{", "{{a . "])
def test_a_megabyte_of_open_braces_is_read_at_once(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert compile_template(text).is_constant


def test_placeholders_know_where_they_stand() -> None:
    text = "x {{ a.0 }} {{Env.K}}"
    found = list(placeholders(text))
    assert [text[p.start : p.end] for p in found] == ["{{ a.0 }}", "{{Env.K}}"]
    assert [p.is_env for p in found] == [False, True]
