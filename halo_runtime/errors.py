"""Everything that can go wrong, in one tree (spec 2.7):

HaloError
├── ProgramError              the program has errors and does not run
├── RunError                  a run failed by the program's own rules
│   ├── InputError            ConditionError       EachInputError     LoopLimitError
│   ├── StepLimitError        SchemaValidationError PolicyViolation   ProgramFailure
│   ├── InterruptExpired      RecursionLimitError  TimeoutExceeded    ReplayError
│   └── ReplayMiss
├── ConfigError               a key, a variable or a package is missing; nothing has run
├── ModelError                a model service refused or failed
├── ToolError                 a tool refused or failed
├── SignalError               an answer was refused; the run is unchanged
│   └── AmbiguousSignal       AlreadyAnswered      UnknownInterrupt   UnknownRun
├── RunRefused                a run cannot be continued that way; it is unchanged
│   └── RunBusy               StagesDiffer
└── StoreError                a journal or a store cannot be read or written

Control flow (a pause, a halt) is not an error: see engine/effects.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject

if TYPE_CHECKING:
    from halo_lang.diagnostics import Diagnostic
    from halo_lang.source import Source
    from halo_runtime.models.base import Usage


@record
class Place:
    """Where in the source a failing stage stands: `stage` its label, line and column from 1."""

    stage: str
    file: str
    line: int
    column: int


class HaloError(Exception):
    """Root of all errors. `place` is the innermost failing stage, `attempt` the try that failed (from 1).

    `path` is the structural path of that stage's execution. `hint` says what to do where the message does not.
    `usage` is what a model's request used although it failed, with None for what nobody knows; None: nothing.
    `retry_after`: seconds to wait before another try, where somebody has said so. `embedded` is what a tool had used
    of embedding models when it failed (see ToolBox.call).
    """

    usage: Usage | None = None
    embedded: Sequence[JsonObject] = ()
    place: Place | None = None
    path: str | None = None
    attempt: int = 1
    hint: str | None = None
    retry_after: float | None = None

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else type(self).__name__


class ProgramError(HaloError):
    """The program has errors; `diagnostics` lists them with absolute spans into `source`."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        super().__init__(f"{source.path} has {len(diagnostics)} error(s); `halo check` shows them")
        self.diagnostics = tuple(diagnostics)
        self.source = source


class ConfigError(HaloError):
    """Something outside the program is missing: the message names it and how to supply it."""


class RunError(HaloError):
    """A run failed by the rules of the language."""


class InputError(RunError):
    """A missing, unknown or ill-typed argument; nothing has run."""


class ConditionError(RunError):
    """A comparison of two values that have no order; the message names both types."""


class EachInputError(RunError):
    """`each` was given something that is no list."""


class LoopLimitError(RunError):
    """A loop's condition still held after `max` jumps."""


class StepLimitError(RunError):
    """An agent asked for tools more often than `max_steps` allows."""


class SchemaValidationError(RunError):
    """The output does not match the declared schema; the message lists every failing path."""


class PolicyViolation(RunError):
    """A policy blocked a call. Never retried. The message never repeats the offending text."""


class ProgramFailure(RunError):
    """`System.Fail` was reached."""


class InterruptExpired(RunError):
    """A question was not answered in time."""


class RecursionLimitError(RunError):
    """Pipelines called each other more than 64 deep."""


class TimeoutExceeded(RunError):
    """A `@timeout` or `--timeout` ran out."""


class ReplayError(RunError):
    """A journal does not belong to this program and input: at a recorded path something else is asked."""


class ReplayMiss(RunError):
    """A cassette has no answer to a request; the message says which, and how it differs from what was recorded.

    It ends the run whatever the program says about errors: an answer that is not there is not the program's.
    """


Fault: TypeAlias = Literal[
    "empty_response",
    "malformed_response",
    "truncated_tool_call",
    "output_limit",
    "context_overflow",
    "refusal",
    "content_filter",
]
"""What is wrong with an answer that cannot be used: there is nothing in it; the service itself could not read what the
model said; a call in it was cut off, and is not made; the limit of its tokens came before its end; the model had no
room for question and answer; the model declined; the service's filter stopped it. The first two may be accidents, and
another try may help."""


class ServiceError(HaloError):
    """Common part of ModelError and ToolError.

    `status` is the HTTP status where there was one, `retry_after` seconds the service asked to wait, `detail` the
    service's own message, `code` the kind of failure where that is not told by the status, `cursor` what a provider
    wants to remember of this failure (see ModelReply.cursor).
    """

    cursor: Json = None

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        status: int | None = None,
        retry_after: float | None = None,
        detail: str | None = None,
        code: Fault | None = None,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.status = status
        self.retry_after = retry_after
        self.detail = detail
        self.code: Fault | None = code


class ModelError(ServiceError):
    """A model call failed."""


class ToolError(ServiceError):
    """A tool call failed."""


class StoreError(HaloError):
    """A journal or a store cannot be read or written."""


class SignalError(HaloError):
    """An answer was refused; nothing changed."""


class AmbiguousSignal(SignalError):
    """Several questions are open and the answer names none; the message lists their ids."""


class AlreadyAnswered(SignalError):
    """The question has its answer already."""


class UnknownInterrupt(SignalError):
    """No open question has this id; the message lists those that are open."""


class UnknownRun(SignalError):
    """No run has this id."""


class RunRefused(HaloError):
    """A run cannot be continued as asked; nothing changed."""


class RunBusy(RunRefused):
    """Another process is at work on the run; the message names it."""


class StagesDiffer(RunRefused):
    """Under `--strict`: the program differs where the run has been already; the message names the stage."""
