"""Who answers a run's questions on the command line: answers given ahead, the person, or another process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from halo_lang.excerpt import visible
from halo_runtime.cli.answers import AnswersAhead
from halo_runtime.cli.keyboard import Terminal
from halo_runtime.cli.output import say
from halo_runtime.engine.clock import iso
from halo_runtime.json_types import MISSING, Missing
from halo_runtime.results import Answer, Interrupt
from halo_runtime.runtime import PAUSE, Pause

LOOK_AGAIN_SECONDS = 0.2
"""How often it is looked whether another process has left an answer, while the person has not typed one."""

LeftFor = Callable[[Interrupt], Answer | None]
"""What another process has left for a question (see Runtime.left_for)."""


class Answering:
    """The run's interrupt handler: answers given ahead, then the terminal where there is one, else a pause.

    While the person has not answered, what `halo signal` leaves for the question is taken.
    """

    def __init__(self, ahead: AnswersAhead | None, terminal: Terminal | None, person: str, left_for: LeftFor) -> None:
        self._ahead = ahead
        self._terminal = terminal
        self._person = person
        self._left_for = left_for

    async def __call__(self, interrupt: Interrupt) -> Answer | Pause:
        """Answer one question."""
        given = MISSING if self._ahead is None else self._ahead.take(interrupt)
        if not isinstance(given, Missing):
            return Answer(given, self._person, _now(), "ahead")
        return PAUSE if self._terminal is None else await self._first(interrupt, self._terminal)

    async def _first(self, interrupt: Interrupt, terminal: Terminal) -> Answer | Pause:
        """What comes first: the person's answer, or another one."""
        typing = asyncio.create_task(self._typed(interrupt, terminal))
        sent = asyncio.create_task(self._sent(interrupt))
        try:
            await asyncio.wait((typing, sent), return_when=asyncio.FIRST_COMPLETED)
        finally:
            typing.cancel()
            sent.cancel()
            await asyncio.wait((typing, sent))  # the screen is left in order before anything else is shown
        if not typing.cancelled():
            return typing.result()
        answer = sent.result()
        say(f"{visible(interrupt.message)} is answered by {visible(answer.by or 'somebody else')}")
        return answer

    async def _typed(self, interrupt: Interrupt, terminal: Terminal) -> Answer | Pause:
        typed = await terminal.ask(interrupt)
        return typed if isinstance(typed, Pause) else Answer(typed, self._person, _now(), "terminal")

    async def _sent(self, interrupt: Interrupt) -> Answer:
        while (answer := self._left_for(interrupt)) is None:  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        return answer


def _now() -> str:
    return iso(datetime.now(UTC))
