"""How a limit that asks is raised (spec 6): `{"add": 0.5}` allows so much more, `"stop"` allows no more."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal, TypeAlias

from halo_runtime.json_types import Json, is_object

Unit: TypeAlias = Literal["calls", "tool_calls", "tokens", "usd"]

STOP: Final = "stop"
_MOST: Final = 10**15
_FINEST: Final = Decimal("0.000001")
WORDS: Final[dict[str, str]] = {"calls": "calls", "tool_calls": "tool calls", "tokens": "tokens"}
"""The units that are counted, in the plural."""


def added(unit: Unit, answer: Json) -> Decimal | None:
    """How much an answer allows on top: an amount above 0, a whole one where a unit is counted; None for any other."""
    if not is_object(answer) or list(answer) != ["add"]:
        return None
    amount = answer["add"]
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount <= _MOST:
        return None
    if unit != "usd" and amount != int(amount):
        return None
    return Decimal(str(amount))


def how(unit: Unit) -> str:
    """What may be answered, in words."""
    return f'{{"add": {0.5 if unit == "usd" else 10}}} with an amount of your own, or "stop"'


def takes(unit: Unit, answer: Json) -> bool:
    """Whether an answer says what is to become of a limit."""
    return answer == STOP or added(unit, answer) is not None


def dollars(amount: Decimal) -> str:
    """`$0.98`, `$0.00075`: all digits, two decimals at least."""
    whole, _, decimals = f"{amount.normalize():f}".partition(".")
    return f"${whole}.{decimals:0<2}"


def shown(amount: Decimal, unit: Unit, *, estimate: bool = False) -> str:
    """An amount in words: `$0.05`, `3 calls`, `1 tool call`; an `estimate` in US dollars has six decimals at most."""
    if unit == "usd":
        return dollars(amount.quantize(_FINEST, ROUND_CEILING) if estimate and amount < _MOST else amount)
    return f"{amount:f} {WORDS[unit] if amount != 1 else WORDS[unit].removesuffix('s')}"


def number(amount: Decimal, unit: Unit) -> int | float:
    """An amount as JSON has it."""
    return float(amount) if unit == "usd" else int(amount)
