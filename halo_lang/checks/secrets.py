"""Secrets that are written out where tools and stores are declared (HL508).

Few false alarms matter more than finding every secret: addresses, paths, names and ids of any kind are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.checks.walk import written_values
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.nodes import Declaration, Provider, String
from halo_lang.symbols import Scope

_FORMATS: Final = (
    ("a GitHub token", r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}"),
    ("a GitLab token", r"gl(?:pat|ptt|dt|rt)-[\w-]{16,}"),
    ("a Slack token", r"xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"),
    ("the address of a webhook", r"hooks\.slack\.com/services/T\w+/B\w+/\w+|discord\.com/api/webhooks/\d+/[\w-]+"),
    ("an API key", r"sk-[\w-]*[A-Za-z0-9]{16,}|(?:gsk|hf|r8|npm|lin_api|lin_oauth|ntn|tgp_v1)_[A-Za-z0-9_-]{20,}"),
    ("an API key", r"(?:xai|pplx|tvly|figd|figu|pypi)[-_][\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("a Stripe key", r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,}"),
    ("an AWS key", r"A(?:KIA|SIA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
    ("a Google key", r"AIza[\w-]{30,}|ya29\.[\w-]{20,}"),
    ("a bot's token", r"\d{8,10}:AA[\w-]{30,}"),
    ("a signed token", r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{6,}"),
    ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    ("a credential", r"(?i:bearer|basic) [A-Za-z0-9+/=._~-]{12,}"),
    ("a password in an address", r"[a-z][a-z0-9+.]*://[^/\s:@]*:[^/\s@<>{}$*]+@(?!localhost|127\.|\[::1)"),
)
"""What the keys of services look like, the likeliest first."""
_SHORTEST_KEY: Final = 16
_LONGEST: Final = 4096
"""Of a longer text only the beginning is looked at."""
_SHORTEST_PASSWORD: Final = 6
"""What is shorter stands for none: "test", "none", "x"."""
_RANDOM: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{20,}")
_KINDS: Final = (str.islower, str.isupper, str.isdigit)


def written_secrets(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL508 at a literal that looks like a secret, or stands where one belongs."""
    if not isinstance(declaration, Provider):
        return
    secret = {value.span for value in _where_secrets_belong(declaration)}
    for value in written_values(declaration):
        if isinstance(value, String) and not value.value.startswith("Env."):
            what = _looks_like(value.value)
            if what is not None:
                yield _written_out(f"this looks like {what}", value)
            elif value.span in secret and len(value.value) >= _SHORTEST_PASSWORD:
                yield _written_out("a secret is written out here", value)


def _where_secrets_belong(node: Provider) -> Iterator[nodes.ArgumentValue]:
    spec = catalog.provider(node.provider.text)
    if spec is None:
        return
    positional = [argument.value for argument in node.args if argument.name is None]
    named = {argument.name.text: argument.value for argument in node.args if argument.name is not None}
    bound = spec.config.bind(positional, named)
    yield from (value for name, value in bound.arguments.items() if spec.config.by_name[name].secret)


def _looks_like(text: str) -> str | None:
    if len(text) < _SHORTEST_KEY:
        return None
    text = text[:_LONGEST]
    found = _formats().search(text)
    if found is not None and found.lastindex is not None:
        return _FORMATS[found.lastindex - 1][0]
    # Addresses and paths have ids in them that nobody can tell from keys.
    if "/" not in text and any(_is_random(word) for word in _RANDOM.findall(text)):
        return "a key"
    return None


@cache
def _formats() -> re.Pattern[str]:
    # Compiled when a program first needs it: most have no text long enough.
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(f'({pattern})' for _, pattern in _FORMATS)})")


def _is_random(word: str) -> bool:
    """Whether letters of both cases and digits are mixed as no name mixes them; ids in hexadecimal are not."""
    kinds = [next((number for number, test in enumerate(_KINDS) if test(character)), 0) for character in word]
    changes = sum(one != other for one, other in pairwise(kinds))
    return len(set(kinds)) == len(_KINDS) and changes >= 0.4 * len(word)


def _written_out(message: str, value: String) -> Diagnostic:
    message = f"{message}; everybody who sees the program can read it"
    hint = "put it into an environment variable and write `Env.NAME` here"
    return Diagnostic("HL508", Severity.WARNING, message, value.span, hint)
