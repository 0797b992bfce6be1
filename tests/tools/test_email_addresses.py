"""Mail addresses: one way to read each, and nobody gets mail who is not meant (reference 2.6)."""

from __future__ import annotations

from email.utils import getaddresses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ConfigError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.email.addresses import AddressProblem, Recipients, header_text, parse_address, parse_addresses

TRICKS = {
    "two in one": "a@ok.example, evil@bad.example",
    "two in one, otherwise": "a@ok.example;evil@bad.example",
    "two with a space": "a@ok.example evil@bad.example",
    "a line break": "a@ok.example\r\nBcc: evil@bad.example",
    "a lone return": "a@ok.example\revil@bad.example",
    "NUL": "a@ok.example\0evil@bad.example",
    "a Unicode line break": "a@ok.example\u2028evil@bad.example",
    "half a character": "a\ud800@ok.example",
    "a comment": "evil@bad.example(a@ok.example)",
    "a comment inside": "evil(c)@bad.example",
    "a quoted local part": '"evil@bad.example"@ok.example',
    "a quoted local part with a space": '"a b"@ok.example',
    "a group": "friends: evil@bad.example;",
    "a route": "<@bad.example:a@ok.example>",
    "a percent route": "evil%bad.example@ok.example",
    "a bang route": "bad.example!evil@ok.example",
    "two signs": "evil@bad.example@ok.example",
    "two addresses in brackets": "<evil@bad.example><a@ok.example>",
    "an address for a name": "a@ok.example <evil@bad.example>",
    "a name that ends early": 'a" <evil@bad.example>, "b <a@ok.example>',
    "a quoted name that holds one": '"x\\" <evil@bad.example>, \\"" <a@ok.example>',
    "an encoded word": "=?utf-8?q?evil=40bad.example=2C?= <a@ok.example>",
    "an encoded address": "=?utf-8?q?a?=@ok.example",
    "something behind": "<a@ok.example> evil@bad.example",
    "a size option": "a@ok.example> SIZE=1",
    "an address of numbers": "a@[127.0.0.1]",
    "numbers for a domain": "a@127.0.0.1",
    "no domain": "a@",
    "no name": "@ok.example",
    "nothing": "",
    "a dot at the end": "a@ok.example.",
    "two dots": "a..b@ok.example",
    "a dot first": ".a@ok.example",
    "a label that is too long": f"a@{'x' * 64}.example",
    "a name that is too long": f"{'x' * 65}@ok.example",
    "too long altogether": f"{'x' * 60}@{'.'.join(['y' * 60] * 4)}",
    "letters that are none of mail": "а@ok.example",
    "an underscore": "a@ok_.example",
}


@pytest.mark.parametrize("text", TRICKS.values(), ids=TRICKS)
def test_what_could_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(AddressProblem, match=r"^to "):
        parse_address(text, "to")


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("ada@example.org", "", "ada@example.org"),
        ("  Ada.L+x_y-z@Example.ORG ", "", "Ada.L+x_y-z@example.org"),
        ("Ada Lovelace <ada@example.org>", "Ada Lovelace", "ada@example.org"),
        ('"Lovelace, Ada" <ada@example.org>', "Lovelace, Ada", "ada@example.org"),
        ("Zoë <zoe@bücher.example>", "Zoë", "zoe@xn--bcher-kva.example"),
        ("<ada@example.org>", "", "ada@example.org"),
        ("a@ＯＫ.example", "", "a@ok.example"),
    ],
)
def test_what_everybody_reads_alike_is_taken(text: str, name: str, address: str) -> None:
    found = parse_address(text, "to")
    assert (found.name, found.address) == (name, address)


def test_several_are_a_list() -> None:
    assert [one.address for one in parse_addresses(["a@x.example", "B <b@x.example>"], "cc")] == [
        "a@x.example",
        "b@x.example",
    ]
    assert parse_addresses(None, "cc") == ()
    with pytest.raises(AddressProblem, match=r"cc \(2\) is no text"):
        parse_addresses(["a@x.example", 5], "cc")


ALLOWED = Recipients.of(["Boss@Ok.example", "@team.example", "@bücher.example"])


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("boss@ok.example", True),
        ("BOSS@OK.EXAMPLE", True),
        ("other@ok.example", False),
        ("anybody@team.example", True),
        ("anybody@sub.team.example", False),
        ("anybody@evilteam.example", False),
        ("anybody@team.example.evil.example", False),
        ("a@bücher.example", True),
        ("a@xn--bcher-kva.example", True),
        ("a@tеam.example", False),  # a Cyrillic letter
        ("boss@оk.example", False),
        ("Boss <boss@ok.example>", True),
    ],
)
def test_who_may_get_mail(address: str, allowed: bool) -> None:
    assert ALLOWED.allow(parse_address(address, "to")) is allowed


def test_a_star_allows_everybody_and_an_empty_list_nobody() -> None:
    anybody = parse_address("x@y.example", "to")
    assert Recipients.of(["*"]).allow(anybody)
    assert not Recipients.of([]).allow(anybody)


@given(st.text(max_size=60))
def test_whatever_is_taken_is_one_address_for_every_reader(text: str) -> None:
    try:
        found = parse_address(text, "to")
    except AddressProblem:
        return
    assert found.address.isascii()
    assert found.address.isprintable()
    assert getaddresses([f"<{found.address}>"]) == [("", found.address)]


@given(st.from_regex(r"[a-z<>@.,\"' ();:\\\[\]=?%!-]{0,40}", fullmatch=True))
def test_punctuation_hides_no_second_address(text: str) -> None:
    try:
        found = parse_address(text, "to")
    except AddressProblem:
        return
    assert [address for _, address in getaddresses([text]) if address] == [found.address]


@pytest.mark.parametrize("text", ["a\nb", "a\r\nBcc: x", "a\0", "a\x1bb", "=?utf-8?B?DQpCY2M6IHg=?=", "a\x85b"])
def test_texts_that_could_end_a_header_are_refused(text: str) -> None:
    with pytest.raises(AddressProblem, match=r"^subject holds"):
        header_text(text, "subject")


def test_a_line_break_at_the_end_of_a_text_means_nothing() -> None:
    assert header_text("Hello there?=\n", "subject") == "Hello there?="


BOTH = {"smtp": "smtp.example.org", "user": "u@x.example", "password": "zq-1"}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "needs a server: smtp: to send .or SMTP_HOST., imap: to read"),
        ({"smtp": "ftp://x"}, "smtp: is no server"),
        ({"smtp": "user@host"}, "smtp: is no server"),
        ({"smtp": "imaps://host"}, "smtp: is no server"),
        ({"smtp": "host:99999", "from": "a@b.example"}, "port of smtp: is a whole number from 1"),
        ({"smtp": "host", "smtpPort": "mail", "from": "a@b.example"}, "port of smtp: is a whole number"),
        ({"smtp": "host", "user": "u"}, "password: is missing"),
        ({"smtp": "host", "password": "zq-1"}, "user: is missing"),
        ({"smtp": "host", "user": "u", "password": "zq-1"}, "from: is missing"),
        ({**BOTH, "password": "zq-1\nx"}, "holds a line break"),
        ({**BOTH, "from": "Me <a@b.example>, x@y.example"}, "from: is no single plain address"),
        ({"imap": "host"}, "imap: needs user: and password:"),
        ({**BOTH, "allowRecipients": ["example.org"]}, 'for everybody at a domain write "@example.org"'),
        ({**BOTH, "allowRecipients": ["a@b.example, c@d.example"]}, "no single plain address"),
        ({**BOTH, "allowRecipients": ["@"]}, "a domain that there cannot be"),
    ],
)
def test_settings_that_cannot_work_are_told_first(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        tool_factory("Email")(ToolConfig("Post", "Email", settings, Path()))
    assert "zq-1" not in caught.value.message
