"""The Halo runtime: runs checked programs. This is the whole public interface.

    runtime = Runtime(replies=ScriptedModel("replies.json"))
    result = await runtime.run(halo_lang.parse(source), "Review", {"number": 7})
    assert verify_trace(result.context.trace)

Names are loaded when they are first used, so that a command loads only what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halo_lang.lazy import lazy_names

if TYPE_CHECKING:
    from halo_runtime.cassettes.cassette import Cassette as Cassette
    from halo_runtime.engine.controller import Controller as Controller
    from halo_runtime.engine.events import RunEvent as RunEvent
    from halo_runtime.engine.journal import Journal as Journal
    from halo_runtime.engine.trace import TraceVerdict as TraceVerdict
    from halo_runtime.engine.trace import verify_trace as verify_trace
    from halo_runtime.errors import ConfigError as ConfigError
    from halo_runtime.errors import HaloError as HaloError
    from halo_runtime.errors import ModelError as ModelError
    from halo_runtime.errors import ProgramError as ProgramError
    from halo_runtime.errors import ReplayMiss as ReplayMiss
    from halo_runtime.errors import RunBusy as RunBusy
    from halo_runtime.errors import RunError as RunError
    from halo_runtime.errors import RunRefused as RunRefused
    from halo_runtime.errors import SignalError as SignalError
    from halo_runtime.errors import StoreError as StoreError
    from halo_runtime.errors import ToolError as ToolError
    from halo_runtime.models.pricing import Price as Price
    from halo_runtime.models.scripted import ScriptedModel as ScriptedModel
    from halo_runtime.preflight import Preflight as Preflight
    from halo_runtime.results import Answer as Answer
    from halo_runtime.results import Context as Context
    from halo_runtime.results import Interrupt as Interrupt
    from halo_runtime.results import RunResult as RunResult
    from halo_runtime.runtime import PAUSE as PAUSE
    from halo_runtime.runtime import Runtime as Runtime
    from halo_runtime.store.files import FileRunStore as FileRunStore

_HOMES = {
    "PAUSE": "runtime",
    "Answer": "results",
    "Cassette": "cassettes.cassette",
    "ConfigError": "errors",
    "Context": "results",
    "Controller": "engine.controller",
    "FileRunStore": "store.files",
    "HaloError": "errors",
    "Interrupt": "results",
    "Journal": "engine.journal",
    "ModelError": "errors",
    "Preflight": "preflight",
    "Price": "models.pricing",
    "ProgramError": "errors",
    "ReplayMiss": "errors",
    "RunBusy": "errors",
    "RunError": "errors",
    "RunEvent": "engine.events",
    "RunRefused": "errors",
    "RunResult": "results",
    "Runtime": "runtime",
    "ScriptedModel": "models.scripted",
    "SignalError": "errors",
    "StoreError": "errors",
    "ToolError": "errors",
    "TraceVerdict": "engine.trace",
    "verify_trace": "engine.trace",
}

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll] - each is imported above
__getattr__ = lazy_names(__name__, _HOMES)
