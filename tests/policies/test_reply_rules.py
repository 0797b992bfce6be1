"""Rules about what a reply says: its schema, its sources, its language (spec 6)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halo_lang
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.policies import bind_policies
from halo_runtime.errors import ConfigError
from halo_runtime.policies import rule_factory
from halo_runtime.policies.base import Decision, Examined, PolicyCall
from tests.runtime.support import run

CALL = PolicyCall("Bot", "answer", "openai/gpt-4o-mini", written=("Cite as in [1].",))

# --- RequireSchema ----------------------------------------------------------------------------------------------

SCHEMAS = """
schema Item { name: String, price: Number }
schema Bill { items: Array<Item>, paid: Boolean }
policy Shape : RequireSchema(Bill)
"""
BILL = {"items": [{"name": "tea", "price": 2}], "paid": True}


def fits(reply: str) -> Decision:
    rules, problems = bind_policies(Plan(halo_lang.parse(SCHEMAS)), ["Shape"], {})
    assert problems == []
    return rules["Shape"][0].rule.evaluate(Examined("output", reply, CALL))


@pytest.mark.parametrize(
    "reply",
    [json.dumps(BILL), f"```json\n{json.dumps(BILL)}\n```", f"Here: {json.dumps(BILL)}", json.dumps({**BILL, "no": 1})],
)
def test_a_reply_that_fits_the_schema_passes(reply: str) -> None:
    assert fits(reply).action == "allow"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("{}", "items: expected Array<Item>, found nothing; paid: expected Boolean, found nothing"),
        ('{"items": [], "paid": "yes"}', "paid: expected Boolean, found String"),
        (
            '{"items": [{"name": "tea", "price": "two"}], "paid": true}',
            "items.0.price: expected Number, found String",
        ),
        ("It is paid.", "the whole: expected Bill, found String that is no JSON object"),
        ("[]", "the whole: expected Bill, found List"),
    ],
)
def test_the_reason_names_the_path_that_does_not_fit(reply: str, reason: str) -> None:
    decision = fits(reply)
    assert decision.action == "block"
    assert decision.reason == f"the reply does not match Bill: {reason}"


def test_a_reply_is_corrected_until_it_fits() -> None:
    program = (
        SCHEMAS
        + """
@correct(1)
agent Bot [openai/gpt-4o-mini]
  requires Shape
pipeline Main(text: String) -> Result:
  text |> Bot.answer()
"""
    )
    result = run(program, {"text": "x"}, {"Bot.answer": ["It is paid.", BILL]})
    assert result.output == BILL


# --- RequireCitation --------------------------------------------------------------------------------------------


def cites(reply: str, *sources: str) -> Decision:
    return rule_factory("RequireCitation")({}).evaluate(Examined("output", reply, CALL, sources=sources))


NOTES = ("[1] Tea is hot.\n[doc-2] Ice is cold.", '{"matches": [{"id": "a/3.md#4", "text": "x"}, {"id": 17}]}')


@pytest.mark.parametrize(
    "reply",
    [
        "Tea is hot [1].",
        "Ice[doc-2] and tea[^1].",
        "Both [1, doc-2] and [a/3.md#4; 17].",
        "`array[0]` of [1]\n```\nx[9]\n```\n- [x] done, see [docs](https://example.com)",
        '{"answer": "hot [1]"}',
        '{"answer": "hot", "citations": ["1", 17]}',
        '{"answer": "hot", "sources": [{"id": "doc-2", "page": 4}]}',
        "Write to [EMAIL_1], says [1].",
    ],
)
def test_a_reply_that_cites_what_was_given_passes(reply: str) -> None:
    assert cites(reply, *NOTES).action == "allow"


@pytest.mark.parametrize(
    ("reply", "sources", "reason"),
    [
        ("Tea is hot.", NOTES, "cites no source"),
        ("", NOTES, "cites no source"),
        ("Tea is hot `[1]`.", NOTES, "cites no source"),
        ("See [1](https://example.com).", NOTES, "cites no source"),
        ("Write to [EMAIL_1].", (*NOTES, "[EMAIL_1]"), "cites no source"),
        ("Tea is hot [3].", NOTES, "1 of 1 cited sources"),
        ("Tea [1] and ice [9][doc-9].", NOTES, "2 of 3 cited sources"),
        ('{"answer": "hot", "sources": ["1", "9"]}', NOTES, "1 of 2 cited sources"),
        ('{"answer": "hot", "sources": [null]}', NOTES, "1 of 1 cited sources"),
        ("Tea is hot [1].", (), "was given no source"),
        ("Tea is hot [1].", ("Cite as in [1].",), "was given no source"),
    ],
)
def test_a_reply_that_cites_nothing_or_what_is_not_there_is_refused(
    reply: str, sources: Sequence[str], reason: str
) -> None:
    decision = cites(reply, *sources)
    assert decision.action == "block"
    assert reason in (decision.reason or "")


def test_sources_are_those_of_the_call() -> None:
    program = """
policy Grounded : RequireCitation
agent Bot [openai/gpt-4o-mini]
  requires Grounded
pipeline Main(text: String) -> Result:
  text |> Bot.answer()
"""
    given = {"text": "[n7] Tea is hot."}
    assert run(program, given, {"Bot.answer": "It is hot [n7]."}).output == "It is hot [n7]."
    assert "none of those" in str(run(program, given, {"Bot.answer": "It is hot [n8]."}).error)


@given(st.text(), st.text())
def test_any_text_may_cite_any_other(reply: str, source: str) -> None:
    assert cites(reply, source).action in ("allow", "block")


# --- Language ---------------------------------------------------------------------------------------------------


def speaks(code: str, reply: str) -> str:
    return rule_factory("Language")({"code": code}).evaluate(Examined("output", reply, CALL)).action


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("en", "Please restart the server and open the page again."),
        ("de", "Bitte starten Sie den Server neu und öffnen Sie die Seite."),
        ("it", "Nessun problema, ci penso io."),
        (
            "EN",
            "Run `npm install` first:\n```\nwenn dann sonst nicht oder und\n```\nThen open https://beispiel.example/seite.",
        ),
        ("en", '{"antwort": "Please restart the server and open the page again."}'),
        ("zh", "请先重新启动服务器,然后再打开页面,看看问题是否仍然存在。"),
    ],
)
def test_a_reply_in_the_language_passes(code: str, reply: str) -> None:
    assert speaks(code, reply) == "allow"


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("en", "Bitte starten Sie den Server neu und öffnen Sie die Seite."),
        ("de", "Please restart the server and open the page again."),
        ("en", "请先重新启动服务器,然后再打开页面,看看问题是否仍然存在。"),
        ("de", '{"antwort": "Please restart the server and open the page again."}'),
    ],
)
def test_a_reply_in_another_language_is_refused(code: str, reply: str) -> None:
    assert speaks(code, reply) == "block"


@pytest.mark.parametrize(
    "reply", ["", "Ja.", "AB-12", "Guten Morgen, Anna", "42" * 40, "```\nein langer Text in Code\n```"]
)
def test_too_little_text_passes(reply: str) -> None:
    assert speaks("en", reply) == "allow"


@pytest.mark.parametrize("code", ["xx", "english", "", None])
def test_an_unknown_language_stops_the_run_before_it_starts(code: str | None) -> None:
    with pytest.raises(ConfigError, match="is no code of a language"):
        rule_factory("Language")({"code": code})


def test_without_the_extra_the_run_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "lingua", None)
    with pytest.raises(ConfigError, match=r"pip install 'halo-workbench\[language\]'"):
        rule_factory("Language")({"code": "en"})
