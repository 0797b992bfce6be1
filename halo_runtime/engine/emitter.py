"""Events to observers, in order, from a thread of their own: a slow or failing observer cannot touch a run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue

from halo_runtime.engine.events import Observer, RunEvent

FLUSH_SECONDS = 5.0
"""How long a finished run waits for observers to catch up, at most."""


class Emitter:
    """Hands events to observers. Without observers nothing is queued and no thread is started.

    `active` tells hot paths whether building an event is worth it.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self.active = bool(self._observers)
        self._queue: SimpleQueue[RunEvent | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        if self.active:
            self._thread = threading.Thread(target=self._deliver, name="halo-events", daemon=True)
            self._thread.start()

    def emit(self, event: RunEvent) -> None:
        if self.active:
            self._queue.put(event)

    def close(self) -> None:
        """Wait, within bounds, until every event is delivered. Blocking: call it off the event loop."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(FLUSH_SECONDS)

    def _deliver(self) -> None:
        while (event := self._queue.get()) is not None:
            for observer in tuple(self._observers):
                try:
                    observer(event)
                # An observer is a stranger's code: whatever it raises, SystemExit too, run and others go on without it.
                except BaseException:
                    self._observers.remove(observer)
