"""Two themes, one dark and one light, and the colours of code in any theme.

Every pair of text and ground keeps a contrast of at least 4.5 to 1; a test holds it there.
"""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

_DARK_CODE: Final = {
    "code-comment": "#8a93a5",
    "code-keyword": "#c7a0f0",
    "code-type": "#7cc7d8",
    "code-constant": "#f0a27f",
    "code-operator": "#b4bccb",
    "code-string": "#a9cf8e",
    "code-placeholder": "#f2c572",
    "code-stage": "#f5b041",
    "code-model": "#7fd1b9",
    "code-declared": "#f0d28c",
    "code-function": "#8ab4f8",
    "code-callee": "#d5dae5",
    "code-label": "#a3b8d9",
    "code-invalid": "#ff7b7b",
}
_LIGHT_CODE: Final = {
    "code-comment": "#5c6573",
    "code-keyword": "#7b3fb0",
    "code-type": "#0b6f85",
    "code-constant": "#a8431b",
    "code-operator": "#4d5566",
    "code-string": "#3c6e1f",
    "code-placeholder": "#8a5a00",
    "code-stage": "#a34f00",
    "code-model": "#0d6e5a",
    "code-declared": "#7a5600",
    "code-function": "#1f5bb5",
    "code-callee": "#2a2f3a",
    "code-label": "#3f5f92",
    "code-invalid": "#b3261e",
}

DARK: Final = Theme(
    name="halo-dark",
    primary="#f5b041",
    secondary="#8ab4f8",
    accent="#7fd1b9",
    foreground="#d5dae5",
    background="#14161b",
    surface="#191c22",
    panel="#262b35",
    success="#7ecf86",
    warning="#f2c14e",
    error="#ff7b7b",
    dark=True,
    variables=_DARK_CODE,
)
LIGHT: Final = Theme(
    name="halo-light",
    primary="#8f4a00",
    secondary="#1f5bb5",
    accent="#0d6e5a",
    foreground="#2a2f3a",
    background="#f1efe9",
    surface="#fbfaf7",
    panel="#dedbd2",
    success="#2b6e2f",
    warning="#855800",
    error="#b3261e",
    dark=False,
    variables=_LIGHT_CODE,
)


def code_colours(*, dark: bool) -> dict[str, str]:
    """The colours of code for a theme that has none of its own."""
    return dict(_DARK_CODE if dark else _LIGHT_CODE)
