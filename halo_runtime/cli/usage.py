"""What the command line itself refuses before anything starts."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from halo_runtime.errors import HaloError


class UsageError(HaloError):
    """Wrong usage: a file, a name or an option that cannot be what was meant. `hint` says what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def did_you_mean(wrong: str, known: Iterable[str]) -> str | None:
    """A hint that names what was probably meant, else what there is; None when there is nothing."""
    names = sorted(known)
    by_folded = {name.casefold(): name for name in names}
    close = get_close_matches(wrong.casefold(), by_folded, n=1)
    if close:
        return f"did you mean {by_folded[close[0]]}?"
    return f"there is {', '.join(names)}" if names else None
