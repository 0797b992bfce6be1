"""How a reply ended that is not whole: the error that it is, or the warning beside what of it can be used. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from halo_runtime.errors import Fault, ModelError
from halo_runtime.models.base import Stop
from halo_runtime.models.refusals import SHORTEN

Refuse: TypeAlias = Callable[..., ModelError]
"""Makes the error for an answer that cannot be used: `(problem, *, retryable=False, code=None)`."""

WARNINGS: Final[dict[Stop, str]] = {
    "length": "the reply was cut off at its token limit",
    "content_filter": "the service's content filter cut the reply",
}
"""What is said of a reply that was cut, but whose calls are whole."""

_ENDINGS: Final[dict[Stop, tuple[Fault, str, str | None]]] = {
    "length": ("output_limit", "broke its answer off at the limit of its tokens; raise max_tokens", None),
    "refusal": ("refusal", "declined to answer", "put the task in other words, or take another model"),
    "content_filter": (
        "content_filter",
        "stopped its answer by its content filter",
        "change what the call reads or asks for, or take another model",
    ),
    "context_overflow": ("context_overflow", "broke its answer off where the model's context was full", SHORTEN),
}
"""Reason to stop → code, problem and hint."""


def check_ended(stop: Stop, refuse: Refuse, said: str = "") -> None:
    """Raise for a reply without calls that stopped before its end; `said`: the service's own words about it.

    Half an answer is none: what follows would take it for whole. Another try would end like this one.
    """
    if stop not in _ENDINGS:
        return
    code, problem, hint = _ENDINGS[stop]
    error = refuse(f"{problem}: {said}" if said else problem, code=code)
    error.detail, error.hint = said or None, hint
    raise error
