"""The text of a reply on its way to observers while it streams (spec 2.5, 2.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halo_runtime.engine.events import ModelDelta
from halo_runtime.engine.needs import tokens_of_bytes
from halo_runtime.redaction import StreamRedactor

if TYPE_CHECKING:
    from halo_runtime.engine.run import Run


class Deltas:
    """Tells observers of the text of one request as it comes, without secrets.

    Nobody is told where nobody listens, nor where rules look at answers (`guarded`): nothing may be seen that they have
    not passed.
    """

    def __init__(self, run: Run, path: str, agent: str, *, guarded: bool) -> None:
        self._run = run
        self._path = path
        self._agent = agent
        self._silent = guarded or not run.emitter.active
        self._length = 0
        self._redactor = StreamRedactor(run.redactor)

    def feed(self, text: str) -> None:
        """Take the next piece; an OnDelta."""
        self._length += len(text.encode("utf-8", "replace"))
        if not self._silent:
            self._tell(self._redactor.feed(text))

    @property
    def heard(self) -> int | None:
        """The tokens of what has come so far, by an estimate; None for nothing at all."""
        return tokens_of_bytes(self._length) if self._length else None

    def end(self) -> None:
        """The reply is whole. Without this what waits is dropped, as it is where a try fails."""
        self._tell(self._redactor.end())

    def _tell(self, text: str) -> None:
        if text:
            run = self._run
            run.emitter.emit(ModelDelta(run.run_id, self._path, self._agent, text))
