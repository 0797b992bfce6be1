"""One budget of a run: what is used up, what calls in progress may still use, how far it was raised (spec 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from halo_runtime.engine.effects import Paused
from halo_runtime.engine.needs import Need, Use
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies.budgets import Budget
from halo_runtime.raising import WORDS, Unit, added, dollars, number, shown

NOTHING: Final = Decimal(0)
_COUNTS: Final[tuple[Unit, ...]] = ("calls", "tool_calls")
"""Units in which a call weighs one and no estimate, so that the next one need not wait for its end."""


@dataclass(slots=True, eq=False)
class Account:
    """One budget of a run. `spent` is None when something was used of which nobody knows how much.

    `key` tells it from others of the run. `raises` are the amounts that people have added, `stopped`: they add no more.
    `question` asks for the next one; while it is there no call begins.
    """

    key: str
    policy: str
    rule: str
    budget: Budget
    spent: Decimal | None = NOTHING
    reserved: Decimal = NOTHING
    raises: list[Decimal] = field(default_factory=list[Decimal])
    stopped: bool = False
    question: asyncio.Task[Paused | None] | None = None

    @property
    def limit(self) -> Decimal:
        """How much may be used by now."""
        return self.limit_after(len(self.raises))

    def limit_after(self, raises: int) -> Decimal:
        """How much might be used when it had been raised so often."""
        return self.budget.limit + sum(self.raises[:raises], NOTHING)

    # --- whether a call may begin -------------------------------------------------------------------------------

    def shortage(self, need: Need) -> Decimal | None:
        """By how much a call would go over the limit, whatever those in progress come to; not above 0 if it may begin.

        None where nobody can know. What costs nothing is never too much.
        """
        amount = self._asked_for(need)
        if amount == 0:
            return NOTHING
        return None if amount is None or self.spent is None else self.spent + amount - self.limit

    def refusal(self, need: Need, model: str) -> str | None:
        """Why a call may not begin, whatever those in progress come to; None where it may, now or later."""
        short = self.shortage(need)
        amount = self._asked_for(need)
        if amount is None:
            return (
                f"no price of {model} is known; use a model with a known price, set this one's in halo.toml "
                f'([prices."{model}"] with input = … and output = …, US dollars for a million tokens), '
                "or limit the run by MaxTokens"
            )
        if short is None:
            return "what calls before this one have cost is not known; limit the run by MaxTokens instead"
        if short <= 0:
            return None
        unit = self.budget.unit
        needs = "may need" if need.bounded else "needs at least"
        refused = f"{self.used()} used up"
        if unit not in _COUNTS:
            refused = f"{refused}, and the next call {needs} {shown(amount, unit, estimate=True)}"
        elif amount != 1:
            refused = f"{refused}, and {amount} more are asked for at once"
        return f"{refused}; it was not raised" if self.stopped else refused

    def may_be_raised(self, need: Need) -> bool:
        """Whether somebody is to be asked about a call that is refused."""
        return self.budget.on_limit == "ask" and not self.stopped and self.shortage(need) is not None

    def has_room(self, need: Need) -> bool:
        """Whether a call that is not refused may begin now, beside those in progress."""
        most = need.most.of(self.budget.unit)
        if most == 0:
            return True
        if most is None or self.spent is None:
            return False
        return not self.reserved or self.spent + self.reserved + most <= self.limit

    def _asked_for(self, need: Need) -> Decimal | None:
        return (need.most if need.bounded else need.least).of(self.budget.unit)

    # --- counting -----------------------------------------------------------------------------------------------

    def reserve(self, need: Need) -> Decimal:
        """Take a call's share out of what others may use; how much that is."""
        most = need.most.of(self.budget.unit)
        assert most is not None, "asked after `refusal`"
        if self.budget.unit in _COUNTS:
            self.spend(need.most)
            return NOTHING
        self.reserved += most
        return most

    def settle(self, share: Decimal, use: Use) -> None:
        """A call has ended that had reserved `share`."""
        if self.budget.unit not in _COUNTS:
            self.reserved -= share
            self.spend(use)

    def spend(self, use: Use) -> None:
        """Something was used up."""
        self.spent = _sum(self.spent, use.of(self.budget.unit))

    # --- raising ------------------------------------------------------------------------------------------------

    def answered(self, answer: Json) -> None:
        """Somebody has said what becomes of the limit. What is no answer to that allows nothing more."""
        amount = added(self.budget.unit, answer)
        if amount is None:
            self.stopped = True
        else:
            self.raises.append(amount)

    # --- in words and figures -----------------------------------------------------------------------------------

    def used(self) -> str:
        """`$0.98 of $1.00`, `3 of 3 calls`."""
        unit, spent = self.budget.unit, self.spent or NOTHING
        if unit == "usd":
            return f"{dollars(spent)} of {dollars(self.limit)}"
        return f"{spent:f} of {self.limit:f} {WORDS[unit]}"

    def figures(self, uses: Iterable[Use], raises: int) -> JsonObject:
        """What of it was used up by `uses`, when it had been raised so often; null where nobody knows."""
        unit, limit = self.budget.unit, self.limit_after(raises)
        spent: Decimal | None = NOTHING
        for use in uses:
            spent = _sum(spent, use.of(unit))
        left = None if spent is None else max(NOTHING, limit - spent)
        amounts = {"limit": limit, "spent": spent, "left": left}
        return {name: None if amount is None else number(amount, unit) for name, amount in amounts.items()}


def _sum(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other
