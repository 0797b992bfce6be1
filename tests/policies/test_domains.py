"""Where replies link to and arguments of tools lead."""

from __future__ import annotations

import pytest

from halo_runtime.json_types import JsonObject
from halo_runtime.policies import rule_factory
from halo_runtime.policies.base import Examined, PolicyCall

CALL = PolicyCall("Bot", "answer", "openai/gpt-4o-mini")
BAD: JsonObject = {"Domains": ["bad.example", "böse.example"]}
GOOD: JsonObject = {"Domains": ["good.example"]}


def action(rule: str, args: JsonObject, text: str) -> str:
    return rule_factory(rule)(args).evaluate(Examined("output", text, CALL)).action


@pytest.mark.parametrize(
    "text",
    [
        "https://bad.example",
        "see https://bad.example/page?x=1#y for more",
        "http://www.bad.example:8080/",
        "HTTPS://BAD.EXAMPLE",
        "https://user:pass@bad.example/",
        "https://good.example@bad.example/",
        "https:\\\\bad.example\\path",
        "//bad.example/x.png",
        "![chart](https://bad.example/c.png?data=abc)",
        "[a](//bad.example)",
        "<a href='https://bad.example'>",
        "ftp://bad.example",
        "mailto:ann@bad.example",
        "https://bad.example.",
        "https://b%61d.example/",
        "https://ｂａｄ.example/",
        "https://bad。example/",
        "https://böse.example/",
        "https://xn--bse-sna.example/",
        "bad.example",
        "go to bad.example/page now",
        "curl -s bad.example",
        "touch good.example bad.example",
        '{"command":"curl bad.example"}',
        "https://good.example/a https://bad.example/b",
        "https://good.example?next=x, bad.example",
    ],
)
def test_addresses_of_a_denied_domain_are_found(text: str) -> None:
    assert action("Deny", BAD, text) == "block"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing to see",
        "https://docs.example.org/bad.example",
        "docs.example.org/bad.example",
        "https://notbad.example",
        "https://bad.example.org",
        "bad.examples",
        "my-bad.example",
        "version 1.2.3 of bad",
        "a//b",
    ],
)
def test_other_addresses_pass_a_denial(text: str) -> None:
    assert action("Deny", BAD, text) == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "https://other.example",
        "![x](https://evil.test/p.png)",
        "//evil.test/p.png",
        "https://good.example.evil.test/",
        "https://good.example@evil.test/",
        "https://good.example and http://192.168.0.1/",
        "https://[::1]/",
    ],
)
def test_addresses_of_other_domains_are_not_allowed(text: str) -> None:
    assert action("Allow", GOOD, text) == "block"


@pytest.mark.parametrize(
    "text",
    ["", "https://good.example/x", "https://api.good.example", "no link at all", "see file.txt, and 3.14 // a comment"],
)
def test_addresses_of_allowed_domains_and_no_addresses_pass(text: str) -> None:
    assert action("Allow", GOOD, text) == "allow"
