"""What runs share in one process: services, compiled programs, observers, and the runs that are going on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from halo_lang import Analysis, Program, check
from halo_runtime.arguments import check_arguments, choose_pipeline
from halo_runtime.engine.events import Observer
from halo_runtime.engine.execution import Execution, Order, Services
from halo_runtime.engine.journal import Journal
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.reach import reach
from halo_runtime.engine.toolbox import ToolBox
from halo_runtime.errors import HaloError, InputError, ProgramError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.results import RunResult
from halo_runtime.values import type_name

if TYPE_CHECKING:
    from halo_runtime.ledger.recorder import RunRecorder

_PLANS_KEPT = 8


class Engine:
    """Compiles programs and executes orders. `running` are the runs in progress, by id, `waiting` those that paused."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.observers: list[Observer] = []
        self.running: dict[str, Execution] = {}
        self.waiting: set[str] = set()
        self._plans: dict[int, Plan] = {}

    def plan(self, given: Program | Analysis) -> Plan:
        """The program checked and compiled, once. Raises ProgramError."""
        program = given.program if isinstance(given, Analysis) else given
        if id(program) not in self._plans:
            analysis = given if isinstance(given, Analysis) else check(given)
            if analysis.errors:
                raise ProgramError(analysis.errors, program.source)
        return self.compiled(program)

    def compiled(self, program: Program) -> Plan:
        """A program that is known to have no errors, compiled once."""
        plan = self._plans.get(id(program))
        if plan is None:
            while len(self._plans) >= _PLANS_KEPT:
                del self._plans[next(iter(self._plans))]
            plan = self._plans[id(program)] = Plan(program)  # it holds the program, so the id stays its own
        return plan

    def order(self, plan: Plan, pipeline: str | None, inputs: JsonObject | None, timeout: float | None = None) -> Order:
        """What is to be run, its arguments checked. Raises InputError, and ValueError for a `timeout` of no time."""
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is a number of seconds over 0, not {timeout}")
        name = choose_pipeline(plan.program, pipeline)
        given: Json = as_json(inputs, InputError, "the input") if inputs else {}
        if not is_object(given):
            raise InputError(f"the input is an object of arguments by name, not a {type_name(given)}")
        arguments = check_arguments(name, plan.pipeline(name).parameters, given)
        return Order(plan.program, name, arguments, self.new_run_id(), Journal(), timeout=timeout)

    def learn_secrets(self, plan: Plan, pipeline: str) -> None:
        """Keep secret from now on what the tools of a pipeline read from the environment, before any of it is run."""
        services = self.services
        tools = ToolBox(plan.program, services.env, services.tool_factories, services.redactor, services.models)
        tools.prepare(reach(plan, pipeline).tools)  # what is missing is told where it is used

    def prepare(self, plan: Plan, order: Order) -> Execution:
        """An order ready to be executed. Raises ConfigError, and ValueError for a run that is going on."""
        if order.run_id in self.running:
            raise ValueError(f"the run {order.run_id} is going on already")
        recorder = self.services.recorder
        return Execution(plan, order, self.services, [*self.observers, *([] if recorder is None else [recorder])])

    async def execute(self, execution: Execution, order: Order) -> RunResult:
        """Do it."""
        self.running[order.run_id] = execution
        try:
            result = await execution.run()
        finally:
            del self.running[order.run_id]
        if self.services.recorder is not None and not order.rehearsal:
            await self._record(self.services.recorder, execution, order, result)
        return result

    async def _record(self, recorder: RunRecorder, execution: Execution, order: Order, result: RunResult) -> None:
        from halo_runtime.ledger.recording import Ended  # only runs that are logged pay for it

        ended = Ended(result.status, execution.frame.current_origins)
        await asyncio.to_thread(recorder.record, order.program, order.pipeline, order.run_id, order.journal, ended)

    def new_run_id(self) -> str:
        """Sorts by time and is given once: `20261130T101500123-4f1a2b`."""
        clock = self.services.clock
        moment = clock.now()
        chance = int(clock.random() * 0x1000000)
        while True:
            run_id = f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}-{chance:06x}"
            if run_id not in self.running and run_id not in self.waiting:
                return run_id
            chance += 1


def as_json(value: object, error: type[HaloError], what: str) -> Json:
    """What the host hands in as a JSON value. Raises `error` where it has no JSON form."""
    from halo_runtime.convert import ConversionError, to_json  # takes time, which a run without input shall not pay

    changed: list[str] = []
    try:
        given = to_json(value, changed.append)
    except ConversionError as problem:
        raise error(f"{what} is no JSON value: {problem}") from None
    if changed:
        raise error(f"{what} is no JSON value: {changed[0].partition(';')[0]}")
    return given
