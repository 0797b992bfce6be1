"""The public entry: a Runtime runs checked programs and takes answers to their questions (spec 2)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias, final

from halo_lang import Program
from halo_runtime.engine.controller import Controller
from halo_runtime.engine.events import Observer, SystemEvent
from halo_runtime.engine.journal import Journal
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelProvider
from halo_runtime.results import Interrupt, RunResult
from halo_runtime.tools.base import ToolFactory


@final
class Pause:
    """What a handler returns to leave a question open."""


PAUSE: Final = Pause()
InterruptHandler: TypeAlias = Callable[[Interrupt], Awaitable[Json | Pause]]
SystemEventHandler: TypeAlias = Callable[[SystemEvent], None]


class Runtime:
    """Runs programs. One Runtime may run many, also at the same time.

    `env` is where `Env.NAME` and the services' keys are read; `model` overrides every agent's model; `replies`
    is a scripted provider that answers for every agent instead of its service.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str] = os.environ,
        model: str | None = None,
        replies: ModelProvider | None = None,
    ) -> None: ...

    def on_interrupt(self, handler: InterruptHandler) -> None: ...

    def on_listen(self, handler: InterruptHandler) -> None: ...

    def on_system_event(self, handler: SystemEventHandler) -> None: ...

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Send every event to `observer`; the returned function ends that."""
        ...

    def register_tool_provider(self, name: str, factory: ToolFactory) -> None: ...

    def register_model_provider(self, prefix: str, factory: Callable[[Mapping[str, str]], ModelProvider]) -> None: ...

    async def run(
        self,
        program: Program,
        pipeline: str | None = None,
        inputs: JsonObject | None = None,
        *,
        run_id: str | None = None,
        journal: Journal | None = None,
        controller: Controller | None = None,
        timeout: float | None = None,
    ) -> RunResult:
        """Run `pipeline` (may be left out when there is one).

        Raises ProgramError, InputError or ConfigError before anything has run; everything later is in the result.
        """
        ...

    async def signal(self, run_id: str, answer: Json, *, interrupt: str | None = None) -> RunResult:
        """Answer a question of a paused run of this Runtime and go on with it."""
        ...
