"""The form of a question, driven by keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from halo_tui.screens.question import Ask

OpenBench = Callable[..., AbstractAsyncContextManager]  # type: ignore[type-arg] - of a Bench, see conftest

ASKING = """pipeline Main() -> Result:
  "mail"
    |! yield("Send it?") as decision
    |? (context.data.decision == "yes")
"""


async def test_what_is_typed_while_a_choice_has_the_focus_is_the_answer(bench: OpenBench) -> None:
    async with bench(ASKING, {}) as b:
        await b.press("f5")
        await b.until_open(Ask)
        assert b.app.screen.focused.id == "choice-0"
        await b.press(*"not", "space", *"yet", "enter")
        await b.until_shown("halted")
        assert b.screen.session.view.output == "not yet"


async def test_enter_alone_gives_the_first_choice(bench: OpenBench) -> None:
    async with bench(ASKING, {}) as b:
        await b.press("f5")
        await b.until_open(Ask)
        await b.press("enter")
        await b.until_shown("✓ completed")
        assert b.screen.session.view.output == "yes"
