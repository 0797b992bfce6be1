"""A call's place in the budgets, from before it begins until it has ended (spec 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING

from halo_runtime.engine.accounts import NOTHING, Account
from halo_runtime.engine.guards import refuse
from halo_runtime.engine.needs import Need, Use
from halo_runtime.errors import ServiceError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import PolicyCall

if TYPE_CHECKING:
    from halo_runtime.engine.budgets import Ledger
    from halo_runtime.engine.frame import Frame


class Turn:
    """The tool calls that a model asks for at once: all of them are admitted, or none, whichever comes first.

    `count` are those that are expected to be made; one that comes on top is admitted by itself. For `async with` around
    them: what was not made of them is free again at its end.
    """

    def __init__(self, frame: Frame, call: PolicyCall, count: int) -> None:
        self._frame = frame
        self._call = call
        self._left = count
        self._asking = asyncio.Lock()
        self._refused: list[JsonObject] | None = None
        self._admitted: list[Account] = []

    async def admit(self) -> list[JsonObject]:
        """What refuses the turn; nothing where one of its calls may begin. Raises Paused."""
        async with self._asking:
            if self._refused is None or self._left == 0:
                self._left = max(self._left, 1)
                whole = Use(tool_calls=self._left)
                need = Need(whole, whole, bounded=True)
                shares, self._refused = await self._frame.run.ledger.admit(self._frame, self._call, need)
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
    """One call's place in the budgets; for `async with`.

    `charge` is for the call's record. A call that is not settled by its end was broken off, which counts for what was
    sent, or was refused by its service, which counts as a call. Entering raises PolicyViolation, and Paused where a
    budget asks and nobody answers now.
    """

    def __init__(
        self,
        ledger: Ledger,
        frame: Frame,
        call: PolicyCall,
        need: Callable[[], Need],
        begins: Callable[[JsonObject], None],
        turn: Turn | None,
    ) -> None:
        self.charge: JsonObject | None = None
        self._turn = turn
        self._ledger = ledger
        self._frame = frame
        self._call = call
        self._make_need = need
        self._begins = begins
        self._need: Need | None = None
        self._shares: list[tuple[Account, Decimal]] = []
        self._raised: JsonObject = {}

    @property
    def need(self) -> Need:
        """What the call needs, worked out when somebody asks."""
        if self._need is None:
            self._need = self._make_need()
        return self._need

    async def __aenter__(self) -> Booking:
        if self._ledger.is_held(self._call.agent):
            if self._turn is None:
                self._shares, refused = await self._ledger.admit(self._frame, self._call, self.need)
            else:
                refused = await self._turn.admit()
            self._raised = self._ledger.raised(self._call.agent)
            if refused:
                self.charge = {"agent": self._call.agent, "refused": refused, **self._raised}
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
        return {"agent": self._call.agent, **use.to_json(), **self._raised}

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.charge is None:
            sent = self.need.least
            self.settle(replace(sent, tokens=0, usd=NOTHING) if isinstance(error, ServiceError) else sent)
