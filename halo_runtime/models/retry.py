"""Whether a failed request may be tried again, and after how long (reference table of all HTTP services)."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Final

_RETRYABLE: Final = frozenset({408, 409, 425, 429})


def is_retryable(status: int) -> bool:
    """Whether a request that ended with this HTTP status may be tried again."""
    return status in _RETRYABLE or status >= 500


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that the service asks to wait: `retry-after-ms`, else `retry-after` as seconds or as an HTTP date, else
    `ratelimit-reset` where nothing remains.

    None where it asks for nothing or for nonsense; a date that has passed means 0. `now` in seconds since 1970.
    """
    milliseconds = _positive(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _positive(value)
    if seconds is None:
        seconds = _until(value, time.time() if now is None else now)
    used_up = seconds is None and headers.get("ratelimit-remaining") == "0"
    return _positive(headers.get("ratelimit-reset")) if used_up else seconds


def _positive(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(date: str | None, now: float) -> float | None:
    from email.utils import parsedate_to_datetime  # needed seldom, and a scripted run imports this module

    try:
        return max(0.0, parsedate_to_datetime(date or "").timestamp() - now)
    except (ValueError, OverflowError):
        return None
