"""Arguments of a pipeline from the command line, by the parameter's type label (spec 08, 12.6)."""

from __future__ import annotations

import pytest

import halo_lang
from halo_runtime.cli.inputs import choose_pipeline, collect, usage_line
from halo_runtime.cli.usage import UsageError
from halo_runtime.errors import InputError
from halo_runtime.json_types import Json, JsonObject

PARAMETERS = (
    "text: String, whole: Integer, n: Number, flag: Boolean, items: Array, list: List, thing: Object, "
    "any: Any, json: JSON, shape: Shape, hook: Webhook"
)
PROGRAM = halo_lang.parse(
    halo_lang.Source(f"schema Shape {{ a: Number }}\n\npipeline Main({PARAMETERS}) -> Result: text\n", "p.halo")
)
FILES = {"note.txt": "first\n  sécond {{x}}\n", "n.txt": " 7\n"}


def read(*pairs: str, json_text: str | None = None) -> JsonObject:
    return collect(PROGRAM, PROGRAM.pipelines[0], pairs, json_text, FILES.__getitem__)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=7", "7"),
        ("text=", ""),
        ('text=a=b {"c"', 'a=b {"c"'),
        ("whole=7", 7),
        ("whole=2.0", 2.0),
        ("n=-0.5", -0.5),
        ("n=1e3", 1000.0),
        ("flag=false", False),
        ("items=[]", []),
        ('list=[1, "b"]', [1, "b"]),
        ('thing={"a": [1]}', {"a": [1]}),
        ("json=null", None),
        ('json="x"', "x"),
        ("any=plain words", "plain words"),
        ("any=7", 7),
        ("shape=not json", "not json"),
        ('shape={"a": 1}', {"a": 1}),
        ("hook=[1, 2]", [1, 2]),
        ("text=@note.txt", "first\n  sécond {{x}}\n"),
        ("whole=@n.txt", 7),
        ("text=@@home", "@home"),
        ("text=@@@x", "@@x"),
        ("unknown=7", 7),
    ],
)
def test_a_value_is_read_by_its_parameters_label(pair: str, value: Json) -> None:
    assert read(pair) == {pair.partition("=")[0]: value}


@pytest.mark.parametrize(
    "pair",
    [
        "whole=seven", "whole=1.5", 'whole="7"', "whole=NaN", "n=one", "n=", "n=true", "n=null", "flag=yes", "flag=1",
        "items=a, b", "items={}", "list={}", "thing=a: 1", "thing=[]", "json=text", "json=Infinity",
        "n=" + "9" * 5000, "items=" + "[" * 100_000,
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_by_name_and_place(pair: str) -> None:
    name = pair.partition("=")[0]
    with pytest.raises(InputError, match=f"^{name} takes an? ") as refused:
        read(pair)
    place = refused.value.place
    assert place is not None
    assert (place.file, place.line) == ("p.halo", 3)
    assert PROGRAM.source.line(3)[place.column - 1 :].startswith(f"{name}: ")
    assert len(refused.value.message) < 120


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        ("n=1e999", "is no JSON: the number 1e999 is out of range"),
        ("n=" + "9" * 5000, "is no JSON: a number has too many digits"),
        ("json=" + "[" * 300 + "]" * 300, "is no JSON: nested deeper than 200"),
        ("json=[1,]", "'[1,]' is no JSON"),
    ],
)
def test_json_that_is_too_much_is_refused_with_the_reason(pair: str, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        read(pair)
    assert refused.value.message.endswith(reason)


def test_single_arguments_win_over_the_json_object() -> None:
    assert read("text=wins", json_text='{"text": "loses", "n": 1}') == {"text": "wins", "n": 1}


def test_of_two_values_for_one_argument_the_last_wins() -> None:
    assert read("n=1", "n=2") == {"n": 2}


@pytest.mark.parametrize(("text", "kind"), [("[1]", "a List"), ('"x"', "a String"), ("{", "no JSON")])
def test_the_json_arguments_must_be_an_object(text: str, kind: str) -> None:
    with pytest.raises(UsageError, match=kind):
        read(json_text=text)


@pytest.mark.parametrize("pair", ["text", "=x", ""])
def test_a_pair_without_name_or_value_is_refused_with_the_right_form(pair: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(pair)
    assert refused.value.hint == "write -i name=value, or -i name=@file"


def test_bytes_that_are_no_utf8_are_refused() -> None:
    with pytest.raises(UsageError, match="no UTF-8"):
        read("text=\udcff")


def test_the_only_pipeline_may_be_left_out() -> None:
    assert choose_pipeline(PROGRAM, None).name.text == "Main"


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        (None, "p.halo has 2 pipelines: Alpha, Omega", "name one behind the file: p.halo Alpha"),
        ("Omga", "p.halo has no pipeline Omga", "did you mean Omega?"),
        ("omega", "p.halo has no pipeline omega", "did you mean Omega?"),
        ("Zq", "p.halo has no pipeline Zq", "there is Alpha, Omega"),
        ("x=1", "p.halo has no pipeline x=1", "an argument is given as -i x=1"),
    ],
)
def test_an_unclear_choice_of_pipeline_names_what_exists(name: str | None, message: str, hint: str) -> None:
    text = "pipeline Alpha(x: Any) -> Result: x\n\npipeline Omega(x: Any) -> Result: x\n"
    with pytest.raises(UsageError) as refused:
        choose_pipeline(halo_lang.parse(halo_lang.Source(text, "p.halo")), name)
    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_a_program_without_pipelines_says_so() -> None:
    with pytest.raises(UsageError, match="there is no pipeline to run"):
        choose_pipeline(halo_lang.parse(""), None)


def test_the_usage_line_names_every_parameter_with_its_label() -> None:
    program = halo_lang.parse(halo_lang.Source("pipeline P(a: String, b: Number) -> Result: a\n", "p.halo"))
    assert usage_line(program, program.pipelines[0]) == "halo run p.halo -i a=<String> -i b=<Number>"
