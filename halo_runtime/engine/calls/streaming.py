"""The text of a reply on its way to observers while it streams (spec 2.5, 2.8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

from halo_runtime.engine.events import ModelDelta
from halo_runtime.engine.needs import tokens_of_bytes
from halo_runtime.redaction import StreamRedactor

if TYPE_CHECKING:
    from halo_runtime.engine.run import Run


BUNDLE_SECONDS: Final = 0.025
"""How long text is collected before it is told: no eye sees it, and a thousand tokens a second are forty events."""


class Deltas:
    """Tells observers of the text of one request as it comes, without secrets, while its block lasts.

    Nobody is told where nobody listens, nor where rules look at answers (`guarded`): nothing may be seen that they have
    not passed. What comes first is told at once, what follows closely in bundles; where the block is left with an
    error, what waits is dropped.
    """

    def __init__(self, run: Run, path: str, agent: str, *, guarded: bool) -> None:
        self._run = run
        self._path = path
        self._agent = agent
        self._silent = guarded or not run.emitter.active
        self._length = 0
        self._redactor = StreamRedactor(run.redactor)
        self._waiting: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._silent = True
        if self._timer is not None:
            self._timer.cancel()
        if kind is None:
            self._tell(self._redactor.feed("".join(self._waiting)) + self._redactor.end())

    def feed(self, text: str) -> None:
        """Take the next piece; an OnDelta."""
        self._length += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if self._silent:
            return
        self._waiting.append(text)
        if self._timer is None:
            self._tell_bundle()

    @property
    def heard(self) -> int | None:
        """The tokens of what has come so far, by an estimate; None for nothing at all."""
        return tokens_of_bytes(self._length) if self._length else None

    def _tell_bundle(self) -> None:
        """Tell what waits, and let further text wait for a moment."""
        if not self._waiting:
            self._timer = None
            return
        bundle, self._waiting = "".join(self._waiting), []
        self._tell(self._redactor.feed(bundle))
        self._timer = asyncio.get_running_loop().call_later(BUNDLE_SECONDS, self._tell_bundle)

    def _tell(self, text: str) -> None:
        if text:
            run = self._run
            run.emitter.emit(ModelDelta(run.run_id, self._path, self._agent, text))
