"""What a run has used up of its budgets, and whether a call may still begin (spec 6, 12.3).

A call is admitted before it begins and settled when it has ended, so calls that run side by side cannot use the same
rest twice. Both happen inside the call's effect: what the journal holds is counted once, when the run begins, and is
never asked about again. Shadows are no part of it.

A budget may ask before it refuses. There is one question for all calls that wait at it. Its place in the journal is the
budget's and no call's, as which call comes to it first is chance; its answers are read when the run begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import TracebackType

from halo_runtime.engine.accounts import Account
from halo_runtime.engine.booking import Booking, Turn
from halo_runtime.engine.effects import Paused
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import BoundRule, report
from halo_runtime.engine.journal import LIMIT, EffectRecord, Journal
from halo_runtime.engine.limit_question import ask_to_raise
from halo_runtime.engine.needs import Need, Use
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, PolicyCall
from halo_runtime.policies.budgets import Budget

OWN = "run"
"""What the run's own budget is called among those of its policies."""


@dataclass(slots=True)
class Ledger:
    """The budgets of one run: those of its policies, each shared by the agents that require it, and the run's `own`.

    `place` is the path of the run's pipeline. `required` gives the policies of an agent, by names, none for one that
    the program does not have. For `async with` around the run: at its end nobody is asked any more.
    """

    place: str
    policies: Mapping[str, tuple[BoundRule, ...]]
    required: Callable[[str], Sequence[str]]
    own: Budget | None = None
    _by_policy: dict[str, tuple[Account, ...]] = field(default_factory=dict[str, "tuple[Account, ...]"])
    _by_agent: dict[str, tuple[Account, ...]] = field(default_factory=dict[str, "tuple[Account, ...]"])
    _aborted: dict[str, list[Use]] = field(default_factory=dict[str, "list[Use]"])
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        for name, rules in self.policies.items():
            budgets = ((number, bound, bound.rule) for number, bound in enumerate(rules))
            self._by_policy[name] = tuple(
                Account(f"{name}.{number}", name, bound.text, rule)
                for number, bound, rule in budgets
                if isinstance(rule, Budget)
            )
        if self.own is not None:
            self._by_policy[""] = (Account(OWN, OWN, f"MaxSpend({self.own.limit:f})", self.own),)

    def open(self, journal: Journal, reused: Iterable[JsonObject]) -> None:
        """Count what is spent already: by the run so far, and by what it takes from the run that it continues."""
        for charge in (*charges(journal), *journal.aborted, *reused):
            use = Use.from_json(charge)
            for account in self._accounts(charge["agent"]):
                account.spend(use)
        for charge in journal.aborted:
            self._aborted.setdefault(charge["path"], []).append(Use.from_json(charge))
        for account in self._all():
            while not account.stopped and (found := journal.find(self._question(account))) is not None:
                account.answered(found.result)

    # --- one call -----------------------------------------------------------------------------------------------

    def book(
        self,
        frame: Frame,
        call: PolicyCall,
        need: Callable[[], Need],
        begins: Callable[[JsonObject], None],
        turn: Turn | None = None,
    ) -> Booking:
        """A place in the budgets for a call of an agent, to be entered before it begins.

        `begins` is told what the call counts for at least once it is admitted. `turn` is given for a tool call that a
        model asked for together with others.
        """
        return Booking(self, frame, call, need, begins, turn)

    def told(self, frame: Frame, path: str, call: PolicyCall, kept: EffectRecord | None) -> None:
        """Report what the budgets decided about the call at `path`, from its record, and count it in its strand."""
        if kept is None or kept.charge is None:
            return
        refused = kept.charge.get("refused", ())
        if kept.outcome != "cancelled":  # it will be made again, and counts when it is
            for use in (*self.broken_off(path), *(() if refused else (Use.from_json(kept.charge),))):
                frame.strand.use(call.agent, use)
            frame.strand.raised(kept.charge.get("raised", {}))
        for line in refused:
            report(frame, path, line["policy"], line["rule"], "input", Decision("block", line["reason"]), call)
        if not refused and frame.run.emitter.active:
            for account in self._accounts(call.agent):
                report(frame, path, account.policy, account.rule, "input", ALLOW, call)

    def broken_off(self, path: str) -> Sequence[Use]:
        """What the call at `path` counts for of the times that it was broken off, before the run went on."""
        return self._aborted.get(path, ())

    async def admit(
        self, frame: Frame, call: PolicyCall, need: Need
    ) -> tuple[list[tuple[Account, Decimal]], list[JsonObject]]:
        """Each budget that a call is held to with the share it has reserved there; or else what refused it.

        Where only what calls in progress may come to stands in the way, it waits for their end; so it does before
        somebody is asked to raise a limit. Raises Paused where nobody answers now.
        """
        accounts = self._accounts(call.agent)
        while True:
            await self._answers(frame, accounts)
            reasons = [(account, account.refusal(need, call.model)) for account in accounts]
            refused = [(account, reason) for account, reason in reasons if reason is not None]
            if not all(account.may_be_raised(need) for account, _ in refused):
                return [], [
                    {"policy": account.policy, "rule": account.rule, "reason": reason} for account, reason in refused
                ]
            if refused and not any(account.reserved for account, _ in refused):
                account = refused[0][0]
                account.question = asyncio.create_task(self._raise(account, need, frame, call))
            elif not refused and all(account.has_room(need) for account in accounts):
                return [(account, account.reserve(need)) for account in accounts], []
            else:
                await self._settled.wait()

    def settle(self, shares: Iterable[tuple[Account, Decimal]], use: Use) -> None:
        """A call has ended; those that wait for room look again."""
        for account, share in shares:
            account.settle(share, use)
        self._settled.set()
        self._settled = asyncio.Event()

    # --- raising a limit ----------------------------------------------------------------------------------------

    async def _answers(self, frame: Frame, accounts: Sequence[Account]) -> None:
        """Wait while somebody is asked about one of the budgets; the questions of a call come one after another."""
        for account in accounts:
            while (question := account.question) is not None:
                with frame.standing_still():
                    paused = await asyncio.shield(question)  # others wait for it too
                if paused is not None:
                    raise Paused(paused.interrupts)

    async def _raise(self, account: Account, need: Need, frame: Frame, call: PolicyCall) -> Paused | None:
        """Ask for more. A question that nobody answers now stays, so that no other call begins."""
        try:
            answer = await ask_to_raise(frame, self._question(account), account, need, call)
        except Paused as paused:
            return paused
        account.answered(answer)
        account.question = None
        return None

    def _question(self, account: Account) -> str:
        """The path of the next question about a budget."""
        return f"{self.place}/{LIMIT}/{account.key}/{len(account.raises) + account.stopped + 1}"

    async def __aenter__(self) -> Ledger:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        questions = [account.question for account in self._all() if account.question is not None]
        for question in questions:
            question.cancel()
        await asyncio.gather(*questions, return_exceptions=True)

    # --- figures ------------------------------------------------------------------------------------------------

    def is_held(self, agent: str) -> bool:
        """Whether any budget holds for an agent."""
        return bool(self._accounts(agent))

    def raised(self, agent: str) -> JsonObject:
        """How often the budgets of an agent have been raised, for the record of a call; empty where none was."""
        often = {account.key: len(account.raises) for account in self._accounts(agent) if account.raises}
        return {"raised": often} if often else {}

    def spent(self, agent: str) -> dict[str, Decimal | None]:
        """What is used up of the budgets that an agent is held to, by their rules; calls in progress count as calls."""
        return {account.rule: account.spent for account in self._accounts(agent)}

    def figures(self, uses: Mapping[str, Use], raises: Mapping[str, int]) -> JsonObject:
        """`meta.budget`: what is left of each budget by policy and rule, when agents have used this much.

        Of two budgets of one name that one which has less left.
        """
        found: JsonObject = {}
        for account in self._all():
            held = [use for agent, use in uses.items() if account in self._accounts(agent)]
            figures = account.figures(held, raises.get(account.key, 0))
            rules = found.setdefault(account.policy, {})
            name = account.rule.partition("(")[0].strip()
            other = rules.get(name)
            if other is None or (other["left"] is not None and (figures["left"] or 0) < other["left"]):
                rules[name] = figures
        return found

    def _all(self) -> list[Account]:
        return [account for accounts in self._by_policy.values() for account in accounts]

    def _accounts(self, agent: str) -> tuple[Account, ...]:
        if agent not in self._by_agent:
            names = dict.fromkeys(("", *self.required(agent)))
            self._by_agent[agent] = tuple(a for name in names for a in self._by_policy.get(name, ()))
        return self._by_agent[agent]


def charges(records: Iterable[EffectRecord]) -> list[JsonObject]:
    """What the calls among records count for; those that were refused were not made."""
    return [one.charge for one in records if one.charge is not None and not one.was_refused]
