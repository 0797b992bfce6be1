"""What a refusal of a model service means by its status and codes: what to do, and whether another try may help.

Pure. Texts may name `{url}` and `{key}`, which stand for the variables that they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from halo_runtime.models.complaints import QUOTA_OF_THE_DAY
from halo_runtime.models.retry import is_retryable

SHORTEN: Final = "the model's context is full: give the call less to read, or take a model with more room"
_OUT_OF_CREDIT: Final = "; the account behind {key} has no credit left"
_NO_CREDIT: Final = (
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "enforced_spend_limit_reached",
    "contract_spend_limit_reached",
    "linked_organization_spend_limit_reached",
)
_HOPELESS: Final = {
    **dict.fromkeys(_NO_CREDIT, _OUT_OF_CREDIT),
    QUOTA_OF_THE_DAY: "; the quota of the account behind {key} is used up for today, or allows none of this model",
}
"""Codes of a 429 that no waiting helps against, and what is so."""

_REASONS: Final = {"API_KEY_INVALID": "; check {key}"}
"""What to do, by a service's own code, where the status says too little."""

_ADVICE: Final = {
    **dict.fromkeys((301, 302, 303, 307, 308), "; it redirects and is not followed: set {url} to the final address"),
    401: "; check {key}",
    402: _OUT_OF_CREDIT,
    403: "; the account behind {key} may not use this model",
    404: "; check the model's name and {url}",
}
"""What to do, by status."""


def usual_advice(status: int, codes: Set[str]) -> str:
    """What to do about a refusal, where the service has no advice of its own; empty where there is none."""
    hopeless = _of_code(_HOPELESS, codes) if status == 429 else ""
    return hopeless or _of_code(_REASONS, codes) or _ADVICE.get(status, "")


def may_pass(status: int, codes: Set[str], headers: Mapping[str, str]) -> bool:
    """Whether another try may help. The service's own word, `x-should-retry`, wins; `headers` in lower case."""
    verdict = {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower())
    hopeless = status == 429 and bool(_of_code(_HOPELESS, codes))
    return is_retryable(status) and not hopeless if verdict is None else verdict


def _of_code(texts: Mapping[str, str], codes: Set[str]) -> str:
    return next((text for code, text in texts.items() if code in codes), "")
