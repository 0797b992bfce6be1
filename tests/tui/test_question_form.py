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


# --- what Halo itself asks ----------------------------------------------------------------------------------

HELD = """store Box: KV("box.db")

policy Guard : Approve(Box.set) & MaxCalls(2, onLimit: "ask")

agent Bot [openai/gpt-4o-mini]
  equips Box
  requires Guard

pipeline Main() -> Result:
  "hi"
    |> Bot.go(tools: [Box])
    |> Bot.more()
"""
WANTS = {"tool_calls": [{"tool": "Box_set", "args": {"key": "city", "value": "Berlin"}}]}
REPLIES = {"Bot.go": [WANTS, "stored"], "Bot.more": "done"}


async def test_an_approval_shows_the_arguments_and_enter_alone_is_no_answer(bench: OpenBench) -> None:
    async with bench(HELD, REPLIES) as b:
        await b.press("f5")
        await b.until_open(Ask)
        for shown in ("An agent asks for approval", '"value": "Berlin"', "Box.set needs approval", "approve", "refuse"):
            assert shown in b.text()
        await b.press("enter")
        assert isinstance(b.app.screen, Ask)
        await b.press(*"no")
        await b.until_shown("refuses the call")
        await b.press("enter")
        await b.until_shown("A limit is reached")


async def test_a_limit_takes_an_amount_and_nothing_that_is_none(bench: OpenBench) -> None:
    async with bench(HELD, REPLIES) as b:
        await b.press("f5")
        await b.until_open(Ask)
        await b.press(*"yes", "enter")
        await b.until_shown("A limit is reached")
        await b.until_open(Ask)
        for shown in ("2 of 2 calls are used", "add 2", "stop"):
            assert shown in b.text()
        await b.press(*"many", "enter")
        await b.until_shown("with an amount of your own")
        assert isinstance(b.app.screen, Ask)
        await b.press(*["backspace"] * 4, "1")
        await b.until_shown("allows 1 call more")
        await b.press("enter")
        await b.until_shown("✓ completed")
        assert b.screen.session.view.output == "done"
