"""Placeholders for what is redacted, and the values behind them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.policies.base import Finding
from halo_runtime.policies.vault import Vault


def finding(text: str, value: str, kind: str = "EMAIL") -> Finding:
    start = text.index(value)
    return Finding(kind, start, start + len(value), value)


def test_equal_values_share_a_placeholder_and_each_kind_counts_for_itself() -> None:
    vault, text = Vault(), "a@x.org b@x.org 4111"
    found = [finding(text, "a@x.org"), finding(text, "b@x.org"), finding(text, "4111", "CREDIT_CARD")]
    assert vault.redacted(text, found) == "[EMAIL_1] [EMAIL_2] [CREDIT_CARD_1]"
    assert vault.redacted("to b@x.org", [finding("to b@x.org", "b@x.org")]) == "to [EMAIL_2]"


def test_of_findings_that_overlap_the_longest_is_taken() -> None:
    text = "write to ann@example.com now"
    found = [finding(text, "ann@example.com"), finding(text, "example.com", "DOMAIN")]
    assert Vault().redacted(text, found) == "write to [EMAIL_1] now"


def test_only_what_was_known_before_is_restored() -> None:
    vault = Vault()
    vault.redacted("a", [Finding("EMAIL", 0, 1, "a")])
    known = vault.size
    vault.redacted("b", [Finding("EMAIL", 0, 1, "b")])
    assert vault.restored("[EMAIL_1] [EMAIL_2] [EMAIL_3]", known, ["EMAIL"]) == "a [EMAIL_2] [EMAIL_3]"


@given(st.lists(st.sampled_from(["ann@x.org", "bob@x.org", "cy@x.org"]), max_size=8), st.text("ab \n[]_1", max_size=9))
def test_restoring_undoes_redacting(values: list[str], between: str) -> None:
    text, found = "", []
    for value in values:
        found.append(Finding("EMAIL", len(text), len(text) + len(value), value))
        text += value + between
    vault = Vault()
    redacted = vault.redacted(text, found)
    assert "@" not in redacted
    assert vault.restored(redacted, vault.size, ["EMAIL"]) == text
