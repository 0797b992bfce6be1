"""Every diagnostic code: what it means, with a wrong and a right example (spec 1.4).

`halo explain` and the page `docs/reference/diagnostics.md` are made from this list; the tests check every example.
"""

from __future__ import annotations

from halo_lang.catalog.error_codes import ERRORS
from halo_lang.catalog.specs import Code
from halo_lang.catalog.warning_codes import WARNINGS

CODES: tuple[Code, ...] = (*ERRORS, *WARNINGS)
"""All codes, in order."""

_BY_NAME = {code.name: code for code in CODES}
_WIDEST = 100


def explain(name: str) -> str | None:
    """What a code means, as text for a terminal; None for a code that does not exist."""
    code = _BY_NAME.get(name.upper())
    if code is None:
        return None
    wrong, right = (f"    {_shown(example)}".replace("\n", "\n    ") for example in (code.wrong, code.right))
    return f"{code.name} ({code.severity}): {code.title}\n\n{code.text}\n\nWrong:\n\n{wrong}\n\nRight:\n\n{right}\n"


def page() -> str:
    """The reference page of all codes, as Markdown."""
    intro = (
        "# Diagnostics\n\n"
        "What `halo check` and the workbench report. A program with an error does not run; warnings and notes do not "
        "stop it. `halo explain CODE` prints the same on a terminal.\n"
    )
    return "\n".join([intro, *(section(code) for code in CODES)])


def section(code: Code) -> str:
    """One code's part of the reference page."""
    wrong, right = _shown(code.wrong), _shown(code.right)
    return (
        f"## {code.name}: {code.title}\n\n*{code.severity.capitalize()}.* {code.text}\n\n"
        f"Wrong:\n\n```halo\n{wrong}\n```\n\nRight:\n\n```halo\n{right}\n```\n"
    )


def _shown(example: str) -> str:
    readable = example.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
    lines = readable.split("\n")
    return "\n".join(line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…" for line in lines)
