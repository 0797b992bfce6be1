"""What calls use up of budgets, and what they may at most; estimates where nobody says it (spec 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final, TypeAlias

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.models.base import ModelReply, ModelRequest, Usage
from halo_runtime.raising import Unit
from halo_runtime.values import compact

ASSUMED_REPLY: Final = 4096
"""Tokens that a reply is taken to have at most where no `max_tokens` says it."""

_BYTES_A_TOKEN: Final = 4
_NOTHING: Final = Decimal(0)


@record
class Use:
    """What a call uses up. `usd` is None where nobody knows."""

    calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    usd: Decimal | None = _NOTHING

    def of(self, unit: Unit) -> Decimal | None:
        """The amount in a budget's unit."""
        amount: int | Decimal | None = getattr(self, unit)
        return Decimal(amount) if isinstance(amount, int) else amount

    def plus(self, other: Use) -> Use:
        """Both together."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Use(self.calls + other.calls, self.tool_calls + other.tool_calls, self.tokens + other.tokens, usd)

    def to_json(self) -> JsonObject:
        """For the journal; what is zero is left out."""
        amounts = {"calls": self.calls, "tool_calls": self.tool_calls, "tokens": self.tokens}
        document: JsonObject = {unit: amount for unit, amount in amounts.items() if amount}
        return document if self.usd == 0 else document | {"usd": None if self.usd is None else str(self.usd)}

    @classmethod
    def from_json(cls, document: JsonObject) -> Use:
        """The inverse of `to_json`; other names are passed over."""
        usd = document.get("usd", "0")
        counts = {unit: document.get(unit, 0) for unit in ("calls", "tool_calls", "tokens")}
        return cls(**counts, usd=None if usd is None else Decimal(usd))


@record
class Need:
    """What a call will use: what is sent for certain, and with the reply at most. `bounded`: no reply can be longer."""

    least: Use
    most: Use
    bounded: bool


PriceOf: TypeAlias = Callable[[Usage], Decimal | None]
"""What a usage costs, None where nobody knows."""


@record
class Spent:
    """What a request has used, by what the service said, and by an estimate where it did not (`estimated`).

    `usage` has no None for input and output. `usd` is None where no price is known.
    """

    usage: Usage
    usd: Decimal | None
    estimated: bool

    @property
    def tokens(self) -> int:
        return (self.usage.input or 0) + (self.usage.output or 0)

    @property
    def use(self) -> Use:
        """What it counts for in budgets."""
        return Use(calls=1, tokens=self.tokens, usd=self.usd)


def request_need(request: ModelRequest, price: PriceOf) -> Need:
    """What a request will use, by an estimate of the tokens in it."""
    sent = _tokens_sent(request)
    made = ASSUMED_REPLY if request.max_tokens is None else request.max_tokens
    least = Use(calls=1, tokens=sent, usd=price(Usage(sent, 0)))
    most = Use(calls=1, tokens=sent + made, usd=price(Usage(sent, made)))
    return Need(least, most, bounded=request.max_tokens is not None)


def spent_on(request: ModelRequest, reply: ModelReply, price: PriceOf) -> Spent:
    """What a request has used that was answered. What the service did not say, or cannot be, is not nothing."""
    own = reply.cost if reply.cost is not None and reply.cost.is_finite() and reply.cost >= 0 else None
    made = 0 if _credible(reply.usage.output) is not None else _tokens_made(reply)
    return _spent(request, reply.usage, made, own, price)


def spent_in_vain(request: ModelRequest, usage: Usage, price: PriceOf) -> Spent:
    """What a request has used that failed: a service may have worked on it, and charge for that."""
    return _spent(request, usage, 0, None, price)


def spent_broken_off(request: ModelRequest, use: Use) -> Spent:
    """What a request has used that was broken off, by what it counted for then: its record knows, no clock does."""
    sent = min(_tokens_sent(request), use.tokens)
    return Spent(Usage(sent, use.tokens - sent), use.usd, estimated=True)


def _spent(request: ModelRequest, usage: Usage, made: int, own: Decimal | None, price: PriceOf) -> Spent:
    given, answered = _credible(usage.input), _credible(usage.output)
    estimated = given is None or answered is None
    whole = Usage(
        _tokens_sent(request) if given is None else given,
        made if answered is None else answered,
        max(0, usage.cached or 0),
        usage.reasoning,
        max(0, usage.cache_written or 0),
    )
    return Spent(whole, price(whole) if own is None else own, estimated)


def _credible(tokens: int | None) -> int | None:
    """A number of tokens that can be one."""
    return tokens if tokens is not None and tokens >= 0 else None


TOOL_CALL: Final = Need(Use(tool_calls=1), Use(tool_calls=1), bounded=True)
"""What a call of a tool needs."""


def _tokens_sent(request: ModelRequest) -> int:
    calls = (call for message in request.messages for call in message.tool_calls)
    texts = [message.content for message in request.messages]
    texts += [f"{call.name}{call.arguments}" for call in calls]
    texts += [f"{tool.name}{tool.description}{compact(tool.parameters)}" for tool in request.tools]
    return _estimate(texts if request.json_schema is None else [*texts, compact(request.json_schema)])


def _tokens_made(reply: ModelReply) -> int:
    return _estimate([reply.text, *(call.arguments for call in reply.tool_calls)])


def tokens_of_text(text: str) -> int:
    """Tokens of one text, by the same estimate."""
    return _estimate((text,))


def _estimate(texts: Iterable[str]) -> int:
    """Tokens of texts, roughly; scripts of longer characters have more of them."""
    return tokens_of_bytes(sum(len(text.encode("utf-8", "replace")) for text in texts))


def tokens_of_bytes(length: int) -> int:
    """Tokens of a text of so many bytes in UTF-8, by the same estimate."""
    return -(-length // _BYTES_A_TOKEN)
