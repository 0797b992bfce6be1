"""Mails as strangers send them: read as text whatever their charset, parts and mistakes are (pure)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ToolError
from halo_runtime.tools.email.files import plain_name
from halo_runtime.tools.email.mails import attachments, parse_mail, people, text_of, whole
from tests.tools.mailing import mail


def read(data: bytes) -> dict[str, Any]:
    return whole(parse_mail(data))


def raw(*lines: str | bytes) -> bytes:
    return b"\r\n".join(line.encode() if isinstance(line, str) else line for line in lines)


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("=?iso-8859-1?Q?Gr=FC=DFe?= =?utf-8?B?ISE=?=", "Grüße!!"),
        ("=?utf-8?B?R3LDvA==?=\r\n =?utf-8?B?w59l?=", "Grüße"),
        ("=?no-such-charset?Q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("=?utf-8?B?!!!?= x", "x"),
        ("=?utf-8?q?a=0D=0ABcc:_x?=", "a Bcc: x"),
        ("=?utf-8?q?a=00b?=", "a b"),
        (b"Gr\xc3\xbc\xc3\x9fe", "Grüße"),
        (b"Gr\xfc\xdfe", "Grüße"),
        ("x" * 5000, "x" * 1000 + "…"),
    ],
)
def test_subjects_of_every_kind(subject: str | bytes, text: str) -> None:
    given = subject.encode() if isinstance(subject, str) else subject
    assert read(raw(b"Subject: " + given, "", "t"))["subject"] == text


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain; charset=utf-8", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=iso-8859-1", b"Gr\xfc\xdfe", "Grüße"),
        ("text/plain; charset=utf-16", "Grüße".encode("utf-16"), "Grüße"),
        ("text/plain; charset=klingon", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=rot13", b"Uryyb", "Uryyb"),
        ("text/plain; charset=base64", b"Hello", "Hello"),
        ("text/plain; charset=zlib", b"Hello", "Hello"),
        ("text/plain", b"Gr\xfc\xdfe", "Grüße"),
        ("text/plain; charset=us-ascii", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=utf-8", b"a\xffb", "a\ufffdb"),
        ("text/plain; charset=utf-7", b"+2AA-x", "?x"),
        ("text/plain; charset=", b"Hello", "Hello"),
        ("text/plain; charset*=x'y'z", b"Hello", "Hello"),
        ("nonsense", b"Hello", "Hello"),
        ("text/plain; charset=utf-8", b"a\0b\r\nc", "ab\nc"),
    ],
)
def test_texts_in_every_charset(kind: str, body: bytes, text: str) -> None:
    data = raw(f"Content-Type: {kind}", "Content-Transfer-Encoding: 8bit", "", body)
    assert read(data)["text"] == text


@pytest.mark.parametrize(
    ("packing", "body", "text"),
    [
        ("base64", "SGVsbG8=", "Hello"),
        ("base64", "SGVsbG8", "Hello"),
        ("base64", "!!", ""),
        ("quoted-printable", "H=65llo=\r\n=ZZ", "Hello=ZZ"),
        ("x-unknown", "Hello", "Hello"),
        ("x-uuencode", "nonsense", "nonsense"),
    ],
)
def test_texts_in_every_packing(packing: str, body: str, text: str) -> None:
    assert read(raw("Content-Type: text/plain", f"Content-Transfer-Encoding: {packing}", "", body))["text"] == text


def test_plain_text_comes_before_html() -> None:
    assert read(mail("Plain.", html="<p>Rich.</p>"))["text"] == "Plain."


def test_html_becomes_text_and_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("something was connected to")

    monkeypatch.setattr("socket.socket.connect", refused)
    monkeypatch.setattr("socket.getaddrinfo", refused)
    page = (
        "<head><style>p{}</style><script>x()</script></head><h1>Bill</h1><p>Pay <a href='https://x.example/'>here</a>."
        "<img src='https://track.example/1.gif'><iframe src='//evil.example'></iframe>"
    )
    assert read(mail(None, html=page))["text"] == "# Bill\n\nPay [here](https://x.example/)."


def test_attachments_are_listed_under_names_of_their_own() -> None:
    data = mail(files={"a.pdf": b"1", "b.pdf": b"22"}).replace(b"b.pdf", b"a.pdf")
    found = read(data)
    assert found["text"] == "Hello."
    assert found["attachments"] == [
        {"name": "a.pdf", "type": "application/pdf", "size": 1},
        {"name": "3-a.pdf", "type": "application/pdf", "size": 2},
    ]


def test_a_mail_in_a_mail_is_an_attachment() -> None:
    inner = raw("Subject: inner", "", "secret text")
    data = raw(
        "Content-Type: multipart/mixed; boundary=x", "", "--x", "", "outer", "--x", "Content-Type: message/rfc822", "",
        inner, "--x--",
    )  # fmt: skip
    found = read(data)
    assert (found["text"], found["attachments"][0]["name"]) == ("outer", "part-2.eml")
    assert b"secret text" in attachments(parse_mail(data))[0].content


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("report.pdf", "report.pdf"),
        ("../../.ssh/authorized_keys", "authorized_keys"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/passwd", "passwd"),
        (".bashrc", "bashrc"),
        ("..", "part"),
        ("", "part"),
        ("a\0b\r\nc.txt", "abc.txt"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("e\u0301.txt", "é.txt"),
        ('a"<b>|c?.txt', "a__b__c_.txt"),
        ("x" * 400 + ".pdf", "x" * 196 + ".pdf"),
        ("ü" * 400, "ü" * 100),
    ],
)
def test_names_of_attachments_can_only_name(name: str, plain: str) -> None:
    assert plain_name(name, "part") == plain


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Ada <ada@x.example>, bob@x.example", ["Ada <ada@x.example>", "bob@x.example"]),
        ("=?utf-8?q?Zo=C3=AB?= <zoe@x.example>", ["Zoë <zoe@x.example>"]),
        ('"a, b" <c@x.example>', ["a, b <c@x.example>"]),
        ("nobody", ["nobody"]),
        ("", []),
    ],
)
def test_people_are_shown_as_they_are_written(header: str, found: list[str]) -> None:
    assert people(parse_mail(raw(f"To: {header}", "", "")), "To") == found


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 99 Foo 2026", "Mon, 30 Nov 99999999 10:00:00 +0000", "=?x?="])
def test_dates_that_are_none(date: str) -> None:
    assert read(raw(f"Date: {date}", "", ""))["date"] is None


def nested(depth: int) -> bytes:
    """Parts in parts in parts."""
    head = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n" for n in range(depth))
    return f"{head}\r\ndeep\r\n".encode() + b"".join(b"--b%d--\r\n" % n for n in reversed(range(depth)))


def test_parts_in_parts_in_parts() -> None:
    assert read(nested(50))["text"] == "deep"
    with pytest.raises(ToolError, match="so many parts in parts"):
        read(nested(1000))


def test_a_mail_that_would_take_for_ever_is_refused_at_once() -> None:
    data = nested(90).replace(b"deep\r\n", b"\n" * 2_000_000)
    begun = time.perf_counter()
    with pytest.raises(ToolError, match="so many lines, or parts in parts"):
        read(data)
    assert time.perf_counter() - begun < 2


def test_a_mail_of_very_many_parts() -> None:
    with pytest.raises(ToolError, match="more than 1,000 parts"):
        read(b"Content-Type: multipart/mixed; boundary=x\r\n\r\n" + b"--x\r\n\r\nt\r\n" * 1001)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n",
        b"no headers at all",
        b": no name\r\n\r\nx",
        b"Content-Type: multipart/mixed\r\n\r\nno boundary",
        b"Content-Type: multipart/mixed; boundary=x\r\n\r\nno parts",
        b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\ncut of",
        b"Content-Type: text/plain; charset=\"utf-8\r\n\r\nx",
        b"From: \xff\xfe <\xff@\xff>\r\nSubject: \xff\r\n\r\n\xff",
        b"Content-Type: message/rfc822\r\n\r\n",
        b"Content-Disposition: attachment; filename*=utf-8''%ff%fe\r\n\r\nx",
        b"Content-Type: text/html\r\n\r\n<p><b>never closed",
    ],
)  # fmt: skip
def test_broken_mails_are_read_as_far_as_they_go(data: bytes) -> None:
    found = read(data)
    assert isinstance(found["text"], str)


@given(st.binary(max_size=400))
def test_no_bytes_bring_it_down(data: bytes) -> None:
    found = read(data)
    for text in (found["text"], found["subject"], found["from"]):
        assert text.encode("utf-8") is not None


@given(
    st.text(alphabet='=?_utf-8QqBb \r\n\t<>@",;:()ü\ud800', max_size=80), st.sampled_from(["From", "Subject", "Date"])
)
def test_no_header_brings_it_down(value: str, name: str) -> None:
    read(f"{name}: ".encode() + value.encode("utf-8", "surrogatepass") + b"\r\n\r\nx")


def test_a_long_text_is_cut_visibly() -> None:
    assert read(mail("x" * 1_000_100))["text"].endswith("more characters cut]")
    assert text_of(parse_mail(mail("short"))) == "short"


@pytest.mark.parametrize("piece", ["=?", "=?a?q?", "=?a?b?", "(", ";", '"', "<", "a@b,"])
@pytest.mark.parametrize(
    "name", ["Subject: ", "To: ", "Content-Type: text/plain; x=", "Content-Disposition: x; filename="]
)
def test_no_header_takes_long(name: str, piece: str) -> None:
    begun = time.process_time()
    read(name.encode() + (piece * 300_000).encode() + b"\r\n\r\nx")
    assert time.process_time() - begun < 2  # without a bound some of them take minutes
