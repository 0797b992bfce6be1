"""The outline of a program."""

from __future__ import annotations

from hypothesis import given, settings

from halo_lang import assist, check, parse
from tests.lang.assisting import EXAMPLES, damaged


def _outline(text: str) -> tuple[assist.Symbol, ...]:
    return assist.outline(check(parse(text)))


def test_declarations_come_in_order_with_what_they_are() -> None:
    found = [(one.kind, one.name, one.detail) for one in _outline(EXAMPLES["tour"])]
    assert found == [
        ("policy", "Concise", "MinLength & MaxLength"),
        ("store", "Notes", "KV"),
        ("tool", "Counter", "KV"),
        ("schema", "Card", "2 fields"),
        ("schema", "Leaflet", "3 fields"),
        ("agent", "Writer", "local/smollm2"),
        ("agent", "Critic", "local/smollm2"),
        ("pipeline", "Describe", "(product: String, audience: String) -> Card"),
        ("pipeline", "Tour", "(products: Array, audience: String) -> Leaflet"),
    ]


def test_a_schema_holds_its_fields() -> None:
    (schema,) = _outline("schema S { a: String, b: Array<Array<Number>> }")
    assert [(child.name, child.detail) for child in schema.children] == [("a", "String"), ("b", "Array<Array<Number>>")]


def test_a_pipeline_holds_its_stages_with_their_results() -> None:
    *_, tour = _outline(EXAMPLES["tour"])
    assert [f"{stage.name} · {stage.detail}" for stage in tour.children] == [
        "gate · ",
        "Counter.set · ",
        "each product · Describe as cards",
        "Writer.write_title · as title",
        "Counter.incr · as tries",
        "loop Writer · as again",
        "Notes.set · ",
        "yield · as answer",
        "gate · ",
        "Writer.get · ",
        "branch · System.Fail, System.Print",
        "listen Printer.Ready · as printer",
        "System.Notify · ",
        "fan-out · System.Value as title, System.Value as cards, System.Value as tries",
    ]


def test_places_are_those_of_the_whole_text_and_lie_in_each_other() -> None:
    text = EXAMPLES["tour"]
    for one in _outline(text):
        assert text[slice(*one.name_span)] == one.name
        for child in one.children:
            assert one.span.start <= child.span.start <= child.name_span.start
            assert child.name_span.end <= child.span.end <= one.span.end


def test_what_does_not_parse_leaves_the_rest() -> None:
    assert [one.name for one in _outline("agent A [m-1]\nschema { x }\nagent B [m-1]")] == ["A", "B"]


@settings(max_examples=40)
@given(damaged())
def test_any_text_has_an_outline(text: str) -> None:
    assert all(0 <= one.span.start <= one.span.end <= len(text) for one in _outline(text))
