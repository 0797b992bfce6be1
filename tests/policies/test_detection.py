"""Personal data and secrets in texts: every kind, in every disguise, and what only looks like it."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ConfigError
from halo_runtime.policies import rule_factory
from halo_runtime.policies.detection import KINDS, expanded, find, ner
from halo_runtime.policies.vault import Vault, apart

ALL = expanded(["PII", "Secrets"])
SAMPLES = {
    "Email": "ann.lee@example.com",
    "Phone": "+49 89 123456",
    "CreditCard": "4111 1111 1111 1111",
    "IBAN": "DE89 3704 0044 0532 0130 00",
    "SSN": "536-90-4399",
    "IP": "203.0.113.77",
    "Secrets": "ghp_x7Kq2mVn9RtLw4ZpYc8HsBd1JfGa6EuT0oNi",
}


def redacted(text: str, *kinds: str) -> str:
    found = find(text, expanded(kinds) if kinds else ALL)
    return Vault().redacted(text, found)


def letters(disguise: dict[int, int]) -> Callable[[str], str]:
    return lambda text: text.translate(disguise)


DISGUISES: dict[str, Callable[[str], str]] = {
    "none": lambda text: text,
    **{
        f"U+{ord(mark):04X} inside": lambda text, mark=mark: mark.join(text)
        for mark in "\u200b\u200c\u200d\u2060\ufeff\u180e\u00ad\ufe0f\U000e0101\u202e\u2066\u115f\u3164\u2800"
    },
    "tags": lambda text: "".join(chr(0xE0000 + ord(letter)) for letter in text),
    "fullwidth": letters({code: code + 0xFEE0 for code in range(0x21, 0x7F)}),
    "bold digits": letters({0x30 + n: 0x1D7CE + n for n in range(10)}),
    "Arabic digits": letters({0x30 + n: 0x660 + n for n in range(10)}),
    "accents": lambda text: "".join(one + "\u0301\u0335" if one.isalpha() else one for one in text),
    "base64": lambda text: base64.b64encode(f"it is {text}!".encode()).decode(),
    "base64 of URL": lambda text: base64.b64encode(urllib.parse.quote(f"it is {text}").encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "URL": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "URL in part": lambda text: f"q=%20{urllib.parse.quote(text)}%20&x=1",
    "HTML": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "JSON escapes": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "JSON": lambda text: json.dumps({"a": [{"b": f"line\n{text}\n"}]}),
    "JSON key": lambda text: json.dumps({text: 1}),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"a": f"\t{text}"})),
    "comment": lambda text: f"<!-- {html.escape(text)} -->",
    "fenced": lambda text: f"```\n{text}\n```",
    "CSV": lambda text: f'1;"{text}";2',
    "letters apart": " ".join,
}


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
@pytest.mark.parametrize("kind", SAMPLES)
def test_every_kind_is_found_in_every_disguise(kind: str, disguise: Callable[[str], str]) -> None:
    sample = SAMPLES[kind].replace(" ", "") if disguise is DISGUISES["letters apart"] else SAMPLES[kind]
    hidden = disguise(sample)
    text = f"see {hidden} today" if not hidden.startswith(("{", '"')) else hidden
    told = redacted(text, kind)
    assert f"[{KINDS[kind].name}_1]" in told
    assert hidden not in told


@pytest.mark.parametrize("kind", SAMPLES)
def test_equal_values_get_equal_placeholders_however_they_are_written(kind: str) -> None:
    value = SAMPLES[kind]
    text = f"{value} and {value.replace(' ', chr(0x200B) + ' ')}"
    assert redacted(text, kind) == f"[{KINDS[kind].name}_1] and [{KINDS[kind].name}_1]"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("Email", "john at example dot com"),
        ("Email", "John (at) Example (dot) com"),
        ("Email", "john@example (dot) com"),
        ("Email", "john[at]mail.example[.]com"),
        ("Email", "john . doe @ example . com"),
        ("Email", "john@\nexample.com"),
        ("Email", "JOHN AT EXAMPLE DOT COM"),
        ("Email", "ann+tag@sub.example.co.uk"),
        ("Email", "o'brien@example.ie"),
        ("Email", "用户@例子.公司"),
        ("CreditCard", "4111-1111-1111-1111"),
        ("CreditCard", "4111111111111111"),
        ("CreditCard", "4111\n1111\n1111\n1111"),
        ("CreditCard", "4111.1111.1111.1111"),
        ("CreditCard", "3782 822463 10005"),
        ("CreditCard", "5555 5555 5555 4444 12/27 123"),
        ("CreditCard", "6011000990139424"),
        ("CreditCard", "card4111111111111111"),
        ("IBAN", "GB82WEST12345698765432"),
        ("IBAN", "de89-3704-0044-0532-0130-00"),
        ("IBAN", "FR14 2004 1010 0505 0001 3M02 606 and"),
        ("IBAN", "NL91\nABNA\n0417\n1643\n00"),
        ("IBAN", "IBANDE89370400440532013000"),
        ("IBAN", "DE89370400440532013000EUR"),
        ("SSN", "536 90 4399"),
        ("SSN", "536\n90\n4399"),
        ("SSN", "SSN: 536904399"),
        ("SSN", "SSN536-90-4399"),
        ("IP", "2001:db8:85a3::8a2e:370:7334"),
        ("IP", "::ffff:203.0.113.9"),
        ("IP", "IP203.0.113.9"),
        ("IP", "203[.]0[.]113[.]7"),
        ("IP", "203 dot 0 dot 113 dot 7"),
        ("IP", "http://203.0.113.9:8080/x"),
        ("Phone", "+1 (415) 555-2671"),
        ("Phone", "+49 (0)89 123456"),
        ("Phone", "0044 20 7946 0958"),
        ("Phone", "(415) 555-2671"),
        ("Phone", "tel+14155552671"),
        ("Phone", "+14155552671x12 or 415-555-2671ext9"),
        ("Phone", "415.555.2671"),
        ("Phone", "06 12 34 56 78"),
        ("Phone", "Tel. 089 / 123 45 67"),
        ("Phone", "call me at 030 901820"),
        ("Phone", "+49 89\n123456"),
        ("Phone", "four one five, two six seven, one two three four"),
        ("Phone", "☎ 0151 23456789"),
    ],
)
def test_spellings_of_people(kind: str, text: str) -> None:
    assert f"[{KINDS[kind].name}_1]" in redacted(text, kind)


# Keys are put together here, so that no tool that looks for keys in sources finds one.
KEYS = {
    "JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE",
    "Google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "GitHub": "github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "GitLab": "glpat-" + "abcdefghij0123456789",
    "Slack": "xoxb-" + "123456789012-abcdefGHIJKL",
    "OpenAI": "sk-" + "proj-abcdefghijklmnopqrstuvwxyz012345",
    "Anthropic": "sk-ant-" + "api03-abcdefghijklmnopqrstuvwxyz",
    "OpenRouter": "sk-or-v1-" + "0123456789abcdef0123456789abcdef",
    "Stripe": "sk_live_" + "abcdefghijklmnop12345678",
    "Hugging Face": "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEF",
    "npm": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "SendGrid": "SG." + "abcdefghijklmnopqrstuv." + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
    "Telegram": "123456789:" + "AAabcdefghijklmnopqrstuvwxyz0123456",
    "Linear": "lin_api_" + "abcdefghijklmnopqrstuvwxyz0123456789ABCD",
    "Figma": "figd_" + "abcdefghijklmnopqrstuvwxyz0123456789ABCD",
    "Replicate": "r8_" + "abcdefghijklmnopqrstuvwxyz01234567890",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabc=\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_keys_are_told_by_their_shapes(key: str) -> None:
    assert redacted(f"use {key} now", "Secrets") == "use [SECRET_1] now"
    assert redacted(json.dumps({"k": key}), "Secrets") == '{"k": "[SECRET_1]"}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("postgres://app:s3cr3t-pw@db.example/x", "postgres://app:[SECRET_1]@db.example/x"),
        ("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [SECRET_1]"),
        ("API_KEY=9f8a7b6c5d4e3f2a1b0c", "API_KEY=[SECRET_1]"),
        ('{"client_secret": "9f8a7b6c5d4e3f2a1b0c"}', '{"client_secret": "[SECRET_1]"}'),
        ('{\\"password\\": \\"hunter2hunter\\"}', '{\\"password\\": \\"[SECRET_1]\\"}'),
        ("password: hunter2!", "password: [SECRET_1]"),
        ("my password is Tr0ub4dor&3.", "my password is [SECRET_1]."),
        ("mysql --user app --password hunter22 x", "mysql --user app --password [SECRET_1] x"),
        ("curl -u admin:hunter22 https://x.example", "curl -u admin:[SECRET_1] https://x.example"),
        ("Das Passwort lautet: Geheim#77", "Das Passwort lautet: [SECRET_1]"),
    ],
)
def test_what_is_set_as_a_secret_is_one(text: str, told: str) -> None:
    assert redacted(text, "Secrets") == told


@pytest.mark.parametrize(
    "text",
    [
        "order 4111 1111 1111 1112, ticket 1234567890123456",
        "0.4111111111111111 and 1700000000000000 ns",
        "127.0.0.1, 0.0.0.0, ::1 and 255.255.255.0",
        "v1.2.3.4, version 10.0.19041.1, Chrome/120.0.0.0, 1.3.6.1.4.1.311",
        "550e8400-e29b-41d4-a716-446655440000",
        "commit 9f5bbbd1c2a0f5a0b3c4d5e6f7a8b9c0d1e2f3a4 (9f5bbbd)",
        "sha256:4111111111111111aaaa4111111111111111bbbb4111111111111111cccc0000",
        "2026-11-30 17:33:26, 30.11.2026, 11/30/2026 05:33",
        "ISBN 978-3-16-148410-0, pages 100-200, 1-2-3-4-5-6-7-8",
        "GB82 WEST 1234 5698 7654 33",
        "000-12-3456, 666-12-3456, 900-12-3456, 123-00-4567, 123-45-0000",
        "std::vector<int>, a::b, 12:30:45, aa:bb:cc:dd:ee:ff",
        "git@github.com:halo/halo.git, logo@2x.png, @app.route, x@y, pkg@1.2.3, a @ b",
        "look at example.com, buy it at amazon dot com, meet us at noon",
        "password: required, token = tokenizer.next(), max_tokens: 100000, key: value",
        "PASSWORD=${PASSWORD}, api_key=os.environ['KEY'], secret: {{Env.KEY}}, token: <your-token>",
        "the secret is out, the password is wrong, a token is a word",
        "run it with --password required, --token-file /run/token, --max-tokens 4096, -u root:root",
        "call 5 people, text 12 of them, phone 3",
        "می‌خواهم, क्‍ष, 👨‍👩‍👧‍👦 and 2 + 2 = 4",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "[EMAIL_1] wrote to [PHONE_2] with [SECRET_1]",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"card": 4111111111111111}', '{"card": "[CREDIT_CARD_1]"}'),
        ("[4111111111111111,1]", '["[CREDIT_CARD_1]",1]'),
        ("cards: 4111111111111111, 1", "cards: [CREDIT_CARD_1], 1"),
        ('{"a":"x\\nann@example.com"}', '{"a":"x\\n[EMAIL_1]"}'),
    ],
)
def test_json_stays_json(text: str, told: str) -> None:
    assert redacted(text) == told


@pytest.mark.parametrize("kind", ["Name", "Address"])
def test_without_models_names_stop_the_run_before_it_starts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ner, "MODEL", "no_such_model")
    with pytest.raises(ConfigError, match=r"pip install 'halo-workbench\[ner\]'"):
        rule_factory("Redact")({"kinds": [kind]})


TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [*SAMPLES.values(), *KEYS.values(), " ", "\n", "\\", "\\n", "@", " at ", " dot com", "[", '"', ":", "1", "a",
         "%40", "&#64;", "\u200b", "\ud800", "\x00", "password: ", "+", "DE12", "-----BEGIN PRIVATE KEY-----"]
    ),
    max_size=8,
).map("".join)  # fmt: skip


@given(TEXTS)
def test_findings_are_parts_of_any_text_and_what_is_left_apart_of_them_is_untouched(text: str) -> None:
    found = find(text, ALL)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    places = apart(found, text)
    assert all(one.end <= other.start for one, other in pairwise(places))
    covered = {at for one in places for at in range(one.start, one.end)}
    assert covered == {at for one in found for at in range(one.start, one.end)}


BIG = {
    "ten thousand addresses": "".join(f"a{n}@example.com, " for n in range(10_000)),
    "at signs": "@" * 200_000,
    "addresses cut off": "a@b." * 50_000,
    "words at dots": "a at b dot " * 20_000,
    "digits": "4" * 200_000,
    "digits apart": "4 " * 100_000,
    "thousands of cards": "4111 1111 1111 1111, " * 3_000,
    "thousands of numbers": "".join(f"+49 89 {n:06d}; " for n in range(3_000)),
    "IBANs cut off": "DE12 " * 40_000,
    "passwords": "password=" * 22_000,
    "words that may be a password's name": "password=(" * 20_000,
    "options of commands": "--password " * 20_000,
    "users of commands": "-u a:" * 40_000,
    "words that may be a key's name": "key=" * 50_000,
    "beginnings of keys": "sk-" * 60_000,
    "beginnings of tokens": "-eyJaaaaaaaa" * 15_000,
    "PEM cut off": "-----BEGIN PRIVATE KEY-----\n" * 7_000,
    "colons": ":" * 200_000,
    "nesting": '{"a":' * 10_000,
    "NUL and surrogates": "\x00\ud800" * 100_000,
}


@pytest.mark.parametrize("text", BIG.values(), ids=BIG)
def test_large_texts_take_bounded_time(text: str) -> None:
    """Anything that is not linear would take minutes here."""
    redacted(text)
