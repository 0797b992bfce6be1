"""Fixes: offered where they are certain, and then they mend what they are offered for."""

from __future__ import annotations

from collections import Counter

import pytest

from halo_lang import Analysis, Diagnostic, check, parse
from tests.lang.checking import BOT, body, only
from tests.lang.mutations import EXAMPLES, slips

_STRIDE = 23
"""Every so many slips are looked at."""


def mended(text: str, found: Diagnostic) -> str:
    """The text once the fix of a diagnostic is made."""
    assert found.fix is not None
    return text[: found.fix.span.start] + found.fix.text + text[found.fix.span.end :]


def _told(analysis: Analysis) -> Counter[tuple[str, str]]:
    return Counter((one.code, one.message) for one in analysis.diagnostics)


def unmended(text: str) -> list[str]:
    """The diagnostics of a text whose fix leaves them there, or brings a new error."""
    before = check(parse(text))
    told = _told(before)
    wrong: list[str] = []
    for found in before.diagnostics:
        if found.fix is not None:
            after = check(parse(mended(text, found), before.program), before)
            key = found.code, found.message
            stays = _told(after)[key] >= told[key]
            new = [one.message for one in after.errors if (one.code, one.message) not in told]
            wrong += [f"{found.message} → {new or 'stays'}"] if stays or new else []
    return wrong


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_fix_removes_its_diagnostic_and_brings_no_error(name: str) -> None:
    some = list(slips(EXAMPLES[name]))[::_STRIDE]
    assert [wrong for _, text in some for wrong in unmended(text)] == []
