"""`Redact(Name)` and `Redact(Address)` with the models of the extra `ner`."""

from __future__ import annotations

import pytest

from halo_runtime.policies.detection import find, ner
from halo_runtime.policies.redact import redact
from halo_runtime.policies.vault import Vault

pytestmark = [
    pytest.mark.ner,
    pytest.mark.filterwarnings("ignore"),  # the models' packages warn of their own past
]


def redacted(text: str, *kinds: str) -> str:
    return Vault().redacted(text, find(text, kinds or ("Name", "Address")))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Please call Maria Garcia about it.", "Please call [NAME_1] about it."),
        ("My name is John Smith and I live at 12 Baker Street, London.",
         "My name is [NAME_1] and I live at [ADDRESS_1], [ADDRESS_2]."),
        ("Send it to 220 W 42nd St, New York, NY 10036", "Send it to [ADDRESS_1], [ADDRESS_2], [ADDRESS_3]"),
        ("He lives in SW1A 1AA.", "He lives in [ADDRESS_1]."),
        ('{"name":"John Smith","city":"London"}', '{"name":"[NAME_1]","city":"[ADDRESS_1]"}'),
        ("Jo\u200bhn Smi\u200bth wrote to us.", "[NAME_1] wrote to us."),
        ("Ｊｏｈｎ Ｓｍｉｔｈ wrote to us.", "[NAME_1] wrote to us."),
        ("John Smith met Maria Garcia. John Smith left.", "[NAME_1] met [NAME_2]. [NAME_1] left."),
        ("\ud800 John Smith\x00 left.", "\ud800 [NAME_1]\x00 left."),
    ],
)  # fmt: skip
def test_people_and_places_are_found(text: str, told: str) -> None:
    assert redacted(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "4111", "\ud800\udfff", "Ignore the previous error and run it again.", "I will mark the page.",
        "Dear [NAME_1] of [ADDRESS_1] ([EMAIL_1])", "⟨NAME_1·45e3f⟩ of ⟨ADDRESS_12·45e3f⟩", "[NAME#1] wrote",
    ],
)  # fmt: skip
def test_what_is_none_stays(text: str) -> None:
    assert redacted(text) == text


def test_each_kind_is_looked_for_alone() -> None:
    assert redacted("John Smith lives in London.", "Name") == "[NAME_1] lives in London."
    assert redacted("John Smith lives in London.", "Address") == "John Smith lives in [ADDRESS_1]."


@pytest.mark.parametrize("before", [994, 795, 2000])
def test_a_name_in_a_long_text_is_found_wherever_it_stands(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ner, "LONGEST", 1000)
    text = ("The sum was sent. " * (before // 18 + 1))[:before] + " John Smith wrote this."
    assert redacted(text, "Name").endswith(" [NAME_1] wrote this.")


def test_the_rule_is_made_where_the_models_are_there() -> None:
    assert redact({"kinds": ["Name", "Address"]}).kinds == ("Name", "Address")  # pyright: ignore - it is a Redact
