"""What a run has used up of its budgets, and whether a call may still begin (spec 6, 12.3).

A call is admitted before it begins and settled when it has ended, so calls that run side by side cannot use the same
rest twice. Both happen inside the call's effect: what the journal holds is counted once, when the run begins, and is
never asked about again. Shadows are no part of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import TracebackType
from typing import Final

from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import BoundRule, refuse, report
from halo_runtime.engine.journal import EffectRecord, Journal
from halo_runtime.engine.needs import Need, Use
from halo_runtime.errors import ServiceError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, PolicyCall
from halo_runtime.policies.budgets import Budget, Unit

_NOTHING: Final = Decimal(0)
_COUNTS: Final[tuple[Unit, ...]] = ("calls", "tool_calls")
"""Units in which a call weighs one and no estimate, so that the next one need not wait for its end."""


# --- accounts -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Account:
    """One budget of a run. `spent` is None when something was used of which nobody knows how much."""

    policy: str
    rule: str
    budget: Budget
    spent: Decimal | None = _NOTHING
    reserved: Decimal = _NOTHING

    def refusal(self, need: Need, model: str) -> str | None:
        """Why a call may not begin, whatever those in progress come to; None where it may, now or later."""
        unit, limit = self.budget.unit, self.budget.limit
        amount = (need.most if need.bounded else need.least).of(unit)
        if amount is None:
            return (
                f"no price of {model} is known; use a model with a known price, set this one's in halo.toml "
                f'([prices."{model}"] with input = … and output = …, US dollars for a million tokens), '
                "or limit the run by MaxTokens"
            )
        if self.spent is None:
            return "what calls before this one have cost is not known; limit the run by MaxTokens instead"
        if self.spent + amount <= limit:
            return None
        used = f"{_shown(self.spent, unit)} of {_WORDS[unit].format(_shown(limit, unit))} used up"
        needs = "may need" if need.bounded else "needs at least"
        if unit in _COUNTS:
            return used if amount == 1 else f"{used}, and {amount} more are asked for at once"
        return f"{used}, and the next call {needs} {_shown(amount, unit)}"

    def has_room(self, need: Need) -> bool:
        """Whether a call that is not refused may begin now, beside those in progress."""
        most = need.most.of(self.budget.unit)
        if most is None or self.spent is None:
            return False
        return not self.reserved or self.spent + self.reserved + most <= self.budget.limit

    def reserve(self, need: Need) -> Decimal:
        """Take a call's share out of what others may use; how much that is."""
        most = need.most.of(self.budget.unit)
        assert most is not None, "asked after `refusal`"
        if self.budget.unit in _COUNTS:
            self.spend(need.most)
            return _NOTHING
        self.reserved += most
        return most

    def settle(self, share: Decimal, use: Use) -> None:
        """A call has ended that had reserved `share`."""
        if self.budget.unit not in _COUNTS:
            self.reserved -= share
            self.spend(use)

    def spend(self, use: Use) -> None:
        """Something was used up."""
        amount = use.of(self.budget.unit)
        self.spent = None if amount is None or self.spent is None else self.spent + amount


_WORDS: Final[Mapping[Unit, str]] = {
    "calls": "{} calls",
    "tool_calls": "{} tool calls",
    "tokens": "{} tokens",
    "usd": "{}",
}


def _shown(amount: Decimal, unit: Unit) -> str:
    return f"${amount.normalize():f}" if unit == "usd" else f"{amount:f}"


# --- the ledger ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Ledger:
    """The budgets of one run: those of its policies, each shared by the agents that require it, and the run's own.

    `required` gives the policies of an agent, by names, none for one that the program does not have. `max_spend` is
    in USD.
    """

    policies: Mapping[str, tuple[BoundRule, ...]]
    required: Callable[[str], Sequence[str]]
    max_spend: Decimal | None = None
    _by_policy: dict[str, tuple[_Account, ...]] = field(default_factory=dict[str, "tuple[_Account, ...]"])
    _by_agent: dict[str, tuple[_Account, ...]] = field(default_factory=dict[str, "tuple[_Account, ...]"])
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        for name, rules in self.policies.items():
            budgets = ((bound, bound.rule) for bound in rules)
            self._by_policy[name] = tuple(
                _Account(name, bound.text, rule) for bound, rule in budgets if isinstance(rule, Budget)
            )
        if self.max_spend is not None:
            own = _Account("run", f"MaxSpend({self.max_spend:f})", Budget("usd", self.max_spend))
            self._by_policy[""] = (own,)

    def open(self, journal: Journal, reused: Iterable[JsonObject]) -> None:
        """Count what is spent already: by the run so far, and by what it takes from the run that it continues."""
        for charge in (*charges(journal), *journal.aborted, *reused):
            use = Use.from_json(charge)
            for account in self._accounts(charge["agent"]):
                account.spend(use)

    def book(
        self,
        call: PolicyCall,
        need: Callable[[], Need],
        begins: Callable[[JsonObject], None],
        turn: Turn | None = None,
    ) -> Booking:
        """A place in the budgets for a call of an agent, to be entered before it begins.

        `begins` is told what the call counts for at least once it is admitted. `turn` is given for a tool call that a
        model asked for together with others.
        """
        return Booking(self, call, need, begins, turn)

    def told(self, frame: Frame, path: str, call: PolicyCall, kept: EffectRecord | None) -> None:
        """Report what the budgets decided about the call at `path`, from its record."""
        if kept is None or kept.charge is None:
            return
        refused = kept.charge.get("refused", ())
        for line in refused:
            report(frame, path, line["policy"], line["rule"], "input", Decision("block", line["reason"]), call)
        if not refused and frame.run.emitter.active:
            for account in self._accounts(call.agent):
                report(frame, path, account.policy, account.rule, "input", ALLOW, call)

    async def admit(self, call: PolicyCall, need: Need) -> tuple[list[tuple[_Account, Decimal]], list[JsonObject]]:
        """Each budget that a call is held to with the share it has reserved there; or else what refused it.

        Where only what calls in progress may come to stands in the way, it waits for their end.
        """
        accounts = self._accounts(call.agent)
        while True:
            reasons = [(account, account.refusal(need, call.model)) for account in accounts]
            refused: list[JsonObject] = [
                {"policy": account.policy, "rule": account.rule, "reason": reason}
                for account, reason in reasons
                if reason is not None
            ]
            if refused:
                return [], refused
            if all(account.has_room(need) for account in accounts):
                return [(account, account.reserve(need)) for account in accounts], []
            await self._settled.wait()

    def spent(self, agent: str) -> dict[str, Decimal | None]:
        """What is used up of the budgets that an agent is held to, by their rules; calls in progress count as calls."""
        return {account.rule: account.spent for account in self._accounts(agent)}

    def is_held(self, agent: str) -> bool:
        """Whether any budget holds for an agent."""
        return bool(self._accounts(agent))

    def settle(self, shares: Iterable[tuple[_Account, Decimal]], use: Use) -> None:
        """A call has ended; those that wait for room look again."""
        for account, share in shares:
            account.settle(share, use)
        self._settled.set()
        self._settled = asyncio.Event()

    def _accounts(self, agent: str) -> tuple[_Account, ...]:
        if agent not in self._by_agent:
            names = dict.fromkeys(("", *self.required(agent)))
            self._by_agent[agent] = tuple(a for name in names for a in self._by_policy.get(name, ()))
        return self._by_agent[agent]


def charges(records: Iterable[EffectRecord]) -> list[JsonObject]:
    """What the calls among records count for; those that were refused were not made."""
    return [one.charge for one in records if one.charge is not None and not one.was_refused]


class Turn:
    """The tool calls that a model asks for at once: all of them are admitted, or none, whichever comes first.

    `count` are those that are expected to be made; one that comes on top is admitted by itself. For `async with` around
    them: what was not made of them is free again at its end.
    """

    def __init__(self, ledger: Ledger, call: PolicyCall, count: int) -> None:
        self._ledger = ledger
        self._call = call
        self._left = count
        self._asking = asyncio.Lock()
        self._refused: list[JsonObject] | None = None
        self._admitted: list[_Account] = []

    async def admit(self) -> list[JsonObject]:
        """What refuses the turn; nothing where one of its calls may begin."""
        async with self._asking:
            if self._refused is None or self._left == 0:
                self._left = max(self._left, 1)
                whole = Use(tool_calls=self._left)
                shares, self._refused = await self._ledger.admit(self._call, Need(whole, whole, bounded=True))
                self._admitted = [account for account, _ in shares]
        if not self._refused:
            self._left -= 1
        return self._refused

    async def __aenter__(self) -> Turn:
        return self

    async def __aexit__(self, *_: object) -> None:
        for account in self._admitted:
            account.spend(Use(tool_calls=-self._left))


class Booking:
    """One call's place in the budgets, from before it begins until it has ended; for `async with`.

    `charge` is for the call's record. A call that is not settled by its end was broken off, which counts for what was
    sent, or was refused by its service, which counts as a call. Entering raises PolicyViolation.
    """

    def __init__(
        self,
        ledger: Ledger,
        call: PolicyCall,
        need: Callable[[], Need],
        begins: Callable[[JsonObject], None],
        turn: Turn | None,
    ) -> None:
        self.charge: JsonObject | None = None
        self._turn = turn
        self._ledger = ledger
        self._call = call
        self._make_need = need
        self._begins = begins
        self._need: Need | None = None
        self._shares: list[tuple[_Account, Decimal]] = []

    @property
    def need(self) -> Need:
        """What the call needs, worked out when somebody asks."""
        if self._need is None:
            self._need = self._make_need()
        return self._need

    async def __aenter__(self) -> Booking:
        if self._ledger.is_held(self._call.agent):
            if self._turn is None:
                self._shares, refused = await self._ledger.admit(self._call, self.need)
            else:
                refused = await self._turn.admit()
            if refused:
                self.charge = {"agent": self._call.agent, "refused": refused}
                reasons = [f"policy {one['policy']}, rule {one['rule']}: {one['reason']}" for one in refused]
                raise refuse(reasons, self._call)
            self._begins(self._charge(self.need.least))
        return self

    def settle(self, use: Use) -> None:
        """The call has used this."""
        self.charge = self._charge(use)
        if self._shares:
            self._ledger.settle(self._shares, use)

    def _charge(self, use: Use) -> JsonObject:
        return {"agent": self._call.agent, **use.to_json()}

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.charge is None:
            sent = self.need.least
            self.settle(replace(sent, tokens=0, usd=_NOTHING) if isinstance(error, ServiceError) else sent)
