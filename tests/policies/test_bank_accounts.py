"""International bank account numbers are what python-stdnum takes for some, but for national rules."""

from __future__ import annotations

import re
import string

import pytest
from stdnum import iban

from halo_runtime.policies.detection.numbers import ibans


def shape_of(country: str) -> str:
    """What the library knows of a country's accounts: `4!a14!c`; nothing for no country that has any."""
    return dict(iban._ibandb.info(country)[0][1]).get("bban", "")


COUNTRIES = [first + second for first in string.ascii_uppercase for second in string.ascii_uppercase]
KNOWN = [country for country in COUNTRIES if shape_of(country)]


def checked(country: str, account: str) -> str:
    """An account's number with the check digits that it must have."""
    return country + iban.calc_check_digits(f"{country}00{account}") + account


def found(number: str) -> bool:
    return [match.value for match in ibans(f"pay to {number} please")] == [number]


def accounts(country: str) -> list[str]:
    """One as the country has them, and others with a letter for a digit, a digit for a letter, or one less or more."""
    kinds = "".join(kind * int(count) for count, kind in re.findall(r"(\d+)!([nac])", shape_of(country)))
    right = "".join("K" if kind == "a" or (kind == "c" and at % 2) else "5" for at, kind in enumerate(kinds))
    swapped = [right[:at] + ("K" if right[at] == "5" else "5") + right[at + 1 :] for at in range(len(right))]
    return [right, right.replace("K", "5"), *swapped, right[:-1], right + "5"]


@pytest.mark.parametrize("country", KNOWN)
def test_a_number_is_one_where_the_library_says_so(country: str) -> None:
    for account in accounts(country):
        number = checked(country, account)
        assert found(number) is iban.is_valid(number, check_country=False), number
    assert found(checked(country, accounts(country)[0]))


def test_no_other_country_has_any() -> None:
    assert len(KNOWN) > 80
    for country in set(COUNTRIES) - set(KNOWN):
        assert not found(checked(country, "5" * 16))
