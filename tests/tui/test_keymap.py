"""The table of actions, from which bindings, help and palette are made."""

from __future__ import annotations

from collections import Counter

import pytest
from textual.color import Color
from textual.theme import Theme

from halo_tui import keymap
from halo_tui.screens.workbench import Workbench
from halo_tui.themes import DARK, LIGHT

ALIASES = {"ctrl+m", "ctrl+i", "ctrl+j", "ctrl+h", "ctrl+left_square_bracket", "ctrl+at"}
PLAIN = ("f", "ctrl+", "alt+")


def test_every_id_and_key_is_there_once() -> None:
    assert max(Counter(action.id for action in keymap.ACTIONS).values()) == 1
    keys = Counter(key for action in keymap.ACTIONS if action.where == "workbench" for key in action.keys)
    assert max(keys.values()) == 1


def test_every_action_of_the_workbench_has_a_method_and_is_in_the_palette_or_is_it() -> None:
    for action in keymap.ACTIONS:
        if action.where == "workbench":
            assert hasattr(Workbench, "action_" + action.command.partition("(")[0])
            assert action in keymap.palette() or action.id == "app.palette"


@pytest.mark.parametrize("action", [a for a in keymap.ACTIONS if a.where == "workbench" and a.keys], ids=lambda a: a.id)
def test_every_action_has_a_key_that_plain_terminals_send(action: keymap.Action) -> None:
    assert not ALIASES & set(action.keys)
    assert any(key.startswith(PLAIN) and "shift" not in key for key in action.keys)


def test_keys_are_written_as_people_do() -> None:
    shown = {action.id: action.shown_key for action in keymap.ACTIONS}
    assert (shown["file.save"], shown["run.stop"], shown["output.copy"]) == ("Ctrl+S", "Shift+F5", "")


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_text_and_code_can_be_read_on_every_ground(theme: Theme) -> None:
    marks = [theme.success, theme.warning, theme.error, theme.primary, theme.secondary, theme.foreground]
    for text in (*theme.variables.values(), *marks):
        for ground in (theme.surface, theme.background):
            assert contrast(str(text), str(ground)) >= 4.5, (text, ground)


def contrast(text: str, ground: str) -> float:
    dark, light = sorted(luminance(Color.parse(colour)) for colour in (text, ground))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: Color) -> float:
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
