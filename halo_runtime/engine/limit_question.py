"""What is asked where a budget is used up that may be raised (spec 6): an interrupt of kind `limit`."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Final

from halo_runtime.engine.effects import NO_ORIGINS
from halo_runtime.engine.needs import Need
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies.base import PolicyCall
from halo_runtime.raising import STOP, number, shown

if TYPE_CHECKING:
    from halo_runtime.engine.accounts import Account
    from halo_runtime.engine.frame import Frame

_CENT: Final = Decimal("0.01")
_FINEST: Final = Decimal("0.000001")


async def ask_to_raise(frame: Frame, path: str, account: Account, need: Need, call: PolicyCall) -> Json:
    """What somebody says about a limit that a call comes to. Raises Paused while nobody has answered."""
    apart = frame.fork(frame.strand, current=frame.current, origins=frame.current_origins)
    apart.limit = None  # the calls that wait have their own time stand still
    return await frame.run.ask(apart, path, _question(account, need, call), None, None, NO_ORIGINS)


def _question(account: Account, need: Need, call: PolicyCall) -> JsonObject:
    unit, most, spent = account.budget.unit, need.most.of(account.budget.unit), account.spent
    assert most is not None, "its price is known"
    assert spent is not None, "so is what was spent"
    missing = spent + most - account.limit
    step = _CENT if account.budget.limit >= _CENT else _FINEST
    again = max(account.budget.limit, missing.quantize(step, ROUND_CEILING) if unit == "usd" else missing)
    whose = "This run" if account.key == account.policy else f"Policy {account.policy}"
    cost = "may cost" if unit == "usd" else "may need" if unit == "tokens" else "needs"
    much = "much" if unit == "usd" else "many"
    return {
        "kind": "limit",
        "message": f"{whose}: {account.used()} are used; {call.agent}.{call.method} {cost} "
        f"{shown(most, unit, estimate=True)} more; add how {much}?",
        "channel": None,
        "attachments": [],
        "choices": [{"add": number(again, unit)}, STOP],
        "event": None,
        "budget": {
            "policy": account.policy,
            "rule": account.rule,
            "unit": unit,
            "limit": number(account.limit, unit),
            "spent": number(spent, unit),
            "next": number(most, unit),
        },
    }
