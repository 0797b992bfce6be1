"""Where replies link to and arguments of tools lead."""

from __future__ import annotations

import pytest

from halo_runtime.errors import ConfigError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies import rule_factory
from halo_runtime.policies.base import Examined, PolicyCall, ToolUse
from halo_runtime.values import compact

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
        "[a](https://good.example/x)[b](https://bad.example)",
        "![](https://good.example/x)![](//bad.example/p.png)",
        "https://good.example/x|https://bad.example/y",
        "https://good.example/login?next=https://bad.example",
        "https://good.example/login?next=https%3A%2F%2Fbad.example",
        "https://good.example\\@bad.example",
        "http:/bad.example",
        "http:bad.example",
        "https://ba\td.example",
        '<a href="https://bad\n.example">',
        '{"url":"bad.example/x"}',
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
        "[a](https://good.example/x)[b](https://evil.test)",
        "![](https://good.example/x)![](//evil.test/p.png)",
        "https://good.example/login?next=https://evil.test",
        "https://good.example\\@evil.test",
        "http:/evil.test",
        "http:evil.test/x",
        "see www.evil.test",
    ],
)
def test_addresses_of_other_domains_are_not_allowed(text: str) -> None:
    assert action("Allow", GOOD, text) == "block"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://good.example/x",
        "https://api.good.example",
        "no link at all",
        "see file.txt, and 3.14 // a comment",
        "https://good.example\nThanks. It is www.good.example.",
        "use http: or https: as you like",
    ],
)
def test_addresses_of_allowed_domains_and_no_addresses_pass(text: str) -> None:
    assert action("Allow", GOOD, text) == "allow"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"url": "evil.test/path"}, "block"),
        ({"options": [{"Host": "evil.test"}]}, "block"),
        ({"url": "https://good.example/x"}, "allow"),
        ({"url": "good.example"}, "allow"),
        ({"url": "/path/of/the/base"}, "allow"),
        ({"path": "notes.md", "text": "evil.test is a site"}, "allow"),
    ],
)
def test_an_argument_that_is_an_address_by_its_name_needs_no_scheme(args: JsonObject, expected: str) -> None:
    use = ToolUse("Web", "goto", args)
    examined = Examined("tool", compact(args), CALL, use=use)
    assert rule_factory("Allow")(GOOD).evaluate(examined).action == expected


@pytest.mark.parametrize(
    "domain",
    ["https://bad.example", "*.bad.example", "bad.example/x", "bad.example:8080", "a@bad.example", ".", "", " "],
)
@pytest.mark.parametrize("rule", ["Allow", "Deny"])
def test_what_is_no_domain_stops_the_run_before_it_starts(rule: str, domain: str) -> None:
    """Such a rule would match nothing, and so deny nothing."""
    with pytest.raises(ConfigError, match="is no domain"):
        rule_factory(rule)({"Domains": [domain]})


@pytest.mark.parametrize(
    "domain", ["bad.example", "BAD.example", "bad.example.", "localhost", "böse.example", "10.0.0.1"]
)
def test_a_host_name_is_a_domain(domain: str) -> None:
    assert action("Deny", {"Domains": [domain]}, f"http://{domain}/x") == "block"


def test_a_denial_of_nothing_stops_the_run_before_it_starts() -> None:
    with pytest.raises(ConfigError, match="denies nothing"):
        rule_factory("Deny")({"Domains": []})
