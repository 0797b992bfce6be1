"""Secrets: keys by the shapes of services, private keys, credentials in URLs, and what is set as a password.

A long random word alone is no secret: hashes, ids and names of files look the same. It is one where a name before it
says so.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from halo_runtime.policies.detection.base import Match
from halo_runtime.policies.detection.shapes import SHAPES

MIN_PASSWORD: Final = 6
MIN_KEY: Final = 12
MIN_ENTROPY: Final = 3.0
"""Bits a character: random letters and digits have more than 4, words of a language fewer than 3.5."""

_PEM: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s:,.\\()@<>_-]{0,16000}?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z|(?=-----BEGIN))"
)
_URL: Final = re.compile(r"://[^\s:/@?#\"'<>]{0,80}:(?P<value>[^\s/@\"'<>]{1,200})@")
_HEADER: Final = re.compile(r"\w{5,6}\s{1,3}(?P<value>[A-Za-z0-9._~+/-]{16,4000}={0,2})")
_SCHEMES: Final = ("bearer", "basic", "token")
_SETS: Final = re.compile(
    r"[A-Za-z0-9_-]{0,24}+[\"'\]]{0,2}\s{0,3}(?P<sets>:=|=>|==?|:|\b(?:is|lautet|est|es):?)\s{0,3}"
    r"(?P<quote>\\?[\"'`]?)(?P<value>(?:\\[^\s]|[^\s\"'`,;<>\\]){6,4000})",
    re.IGNORECASE,
)
_FLAG: Final = re.compile(
    r"[A-Za-z0-9_-]{0,24}+(?P<sets>\s{1,3})(?P<quote>\\?[\"'`]?)(?P<value>[^\s\"'`,;<>\\-][^\s\"'`,;<>\\]{5,4000})"
)
"""What stands behind an option of a command: `--password …`."""
_OPTION: Final = re.compile(r"(?<!\S)--[\w-]{0,24}\Z")
_USER: Final = re.compile(r"(?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"']{1,80}:(?P<value>[^\s\"':]{4,200})")
"""`curl -u name:password`."""
_PASSWORDS: Final = (
    "password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "mot de passe", "contraseña", "senha",
    "pwd", "пароль", "密码", "密碼",
)  # fmt: skip
_SHORT: Final = "pass"
"""Part of the name of a variable only: `DB_PASS=…`."""

_KEYS: Final = ("secret", "token", "credential", "key")
_KEY_BEFORE: Final = re.compile(r"(?:api|access|private|secret|auth|account|encryption|signing|master|client)[ _-]?\Z")
_NO_VALUE: Final = re.compile(
    r"[\[{$%(*.]|.*[(\[{]|(?:x{3,}|\*+|\.{3,}|none|null|true|false|undefined|required|optional|string|redacted|example"
    r"|change.?me|your[-_ ]|my[-_ ]|process\.env|os\.environ|env[.:]|env\[|config\.|settings\.|self\.|this\.|https?://)",
    re.IGNORECASE,
)
"""What is set in the place of a secret: variables, calls, placeholders."""


def secrets(text: str) -> Iterator[Match]:
    """All secrets in a text."""
    for marks, shape in SHAPES:
        if any(mark in text for mark in marks):
            yield from (_match(found) for found in shape.finditer(text))
    if "PRIVATE KEY" in text:
        yield from (_match(found) for found in _PEM.finditer(text))
    if "://" in text:
        yield from (_match(found, "value") for found in _URL.finditer(text) if not _is_placeholder(found["value"]))
    if "-u" in text:
        yield from (_match(found, "value") for found in _USER.finditer(text) if _is_password(found["value"]))
    small = _lowered(text)
    yield from _headers(text, small)
    yield from _assigned(text, small)


def _lowered(text: str) -> str:
    """The text in lower case, of the same length: a few letters would become two."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(one.lower() if one.isascii() else one for one in text)


def _places(text: str, words: Sequence[str]) -> Iterator[int]:
    """Where words stand in a text, of a few words that seldom do."""
    for word in words:
        at = text.find(word)
        while at >= 0:
            yield at
            at = text.find(word, at + len(word))


def _match(found: re.Match[str], group: str | int = 0) -> Match:
    return Match(found.start(group), found.end(group), found[group])


def _headers(text: str, small: str) -> Iterator[Match]:
    """`Authorization: Bearer …` and what looks like it."""
    for at in _places(small, _SCHEMES):
        found = _HEADER.match(text, at)
        if found is not None and _is_random(found["value"], MIN_KEY):
            yield _match(found, "value")


def _assigned(text: str, small: str) -> Iterator[Match]:
    """What is set as a password or a key: `API_KEY=…`, `"password": "…"`, `the password is …`."""
    for word in (*_PASSWORDS, _SHORT, *_KEYS):
        until = 0
        for at in _places(small, (word,)):
            if at < until:
                continue  # a part of the value before
            if not _may_name(word, small, at):
                continue
            found = _SETS.match(text, at + len(word))
            if found is None and _OPTION.search(small, max(0, at - 27), at):
                found = _FLAG.match(text, at + len(word))
            if found is None or (word == _SHORT and found["sets"][:1].isalpha()):
                continue
            until = found.end()
            value = found["value"].rstrip(".)]}?:")
            said = found["sets"][:1].isalpha()
            if _is_placeholder(value) or (said and not found["quote"] and not _has_digit(value)):
                continue
            if _is_password(value) if word == _SHORT or word in _PASSWORDS else _is_random(value, MIN_KEY):
                yield Match(found.start("value"), found.start("value") + len(value), value)


def _may_name(word: str, small: str, at: int) -> bool:
    """Whether a word, by what stands before it, names what is set after it; asked first, as values are long."""
    if word == "key":
        return _KEY_BEFORE.search(small, max(0, at - 12), at) is not None
    return word != _SHORT or small[at - 1 : at] in ("_", "-")


def _is_placeholder(value: str) -> bool:
    return _NO_VALUE.match(value) is not None


def _is_password(value: str) -> bool:
    """Long enough, and of two kinds of characters at least: not a word."""
    kinds = (
        any(map(str.islower, value)), any(map(str.isupper, value[1:])), _has_digit(value),
        any(not character.isalnum() and character not in "-_." for character in value),
    )  # fmt: skip
    return len(value) >= MIN_PASSWORD and sum(kinds) >= 2


def _is_random(value: str, length: int) -> bool:
    """Long enough, with a digit, and of more different characters than a word has."""
    return len(value) >= length and _has_digit(value) and not value.isdigit() and entropy(value[:200]) >= MIN_ENTROPY


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


def entropy(text: str) -> float:
    """Shannon's entropy of a text's characters, in bits a character."""
    counts = Counter(text).values()
    return math.log2(len(text)) - sum(count * math.log2(count) for count in counts) / len(text) if text else 0.0
