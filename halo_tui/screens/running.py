"""How a person starts, stops and answers a run: the order in which the forms come."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from textual.worker import Worker

from halo_lang import Program
from halo_lang.nodes import Pipeline
from halo_runtime.errors import HaloError
from halo_runtime.json_types import JsonObject
from halo_tui.models.inputs import Remembered, beside, complete_inputs
from halo_tui.models.launch import Launch, choose_launch
from halo_tui.models.options import Options
from halo_tui.models.problems import Findings
from halo_tui.models.questions import Question
from halo_tui.screens.arguments import Arguments
from halo_tui.screens.dialogs import Choose
from halo_tui.screens.question import Answer, Ask

if TYPE_CHECKING:
    from halo_tui.screens.workbench import Workbench


class Running:
    """The run of a workbench's program."""

    def __init__(self, workbench: Workbench, options: Options) -> None:
        self._workbench = workbench
        self._options = options
        self._remembered = Remembered({**beside(workbench.document.path), **options.inputs})
        self._last_pipeline: str | None = None
        self._asking: Ask | None = None
        self._waits = False  # whether the run here waits for the answer to what the form asks
        self._run: Worker[None] | None = None
        self._set_aside: set[str] = set()
        self._drafts: dict[str, str] = {}

    async def start(self, *, given: bool = False) -> None:
        """Ask for what is missing, then run; `given`: take what was given with the command without asking again."""
        workbench = self._workbench
        if workbench.session.view.active:
            workbench.tell("A run is going on; Shift+F5 stops it")
            return
        findings = await workbench.check()
        if self._refused(findings):
            return
        pipeline = await self._pipeline(findings.program)
        inputs = await self._inputs(findings.program, pipeline, given=given) if pipeline else None
        if pipeline is not None and inputs is not None:
            self._begin(findings.program, pipeline, inputs, at_once=given)

    def stop(self) -> None:
        """Cancel the run."""
        if self._run is None or not self._workbench.session.view.active:
            self._workbench.tell("No run is going on")
        elif not self._workbench.session.stop():
            self._run.cancel()

    def offer_question(self) -> None:
        """Open the form for what the run asks and nobody has set aside; close it when the run asks that no more."""
        asked = self._workbench.session.asked
        if self._asking is not None:
            if self._waits and all(question.id != self._asking.question.id for question in asked):
                self._asking.dismiss(None)
            return
        question = next((question for question in asked if question.id not in self._set_aside), None)
        if question is not None:
            self.ask(question)

    def open_question(self) -> None:
        """Open the form for the oldest question."""
        questions = self._workbench.session.questions
        if not questions:
            self._workbench.tell("The run asks nothing")
        elif self._asking is None:
            self.ask(questions[0])

    def ask(self, question: Question) -> None:
        """Open the form for a question of the run here, or of a kept one."""
        if self._asking is None:
            self._asking = Ask(question, self._drafts.get(question.id, ""))
            self._waits = question in self._workbench.session.asked
            self._workbench.host.push_screen(self._asking, lambda answer: self._answered(question, answer))

    def go_on(self, run: Coroutine[Any, Any, None], *, at_once: bool = False) -> None:
        """Let the session do a run; one that is refused is told of, and leaves things as they were."""
        run = self._telling(run)
        self._run = self._workbench.run_worker(run, name="the run", group="run", exclusive=True, exit_on_error=False)
        self._workbench.run_began(at_once=at_once)

    @property
    def launch(self) -> Launch:
        """What answers the agents."""
        options = self._options
        return choose_launch(self._workbench.document.path, replies=options.replies, model=options.model)

    def _refused(self, findings: Findings) -> bool:
        workbench = self._workbench
        if findings.analysis.errors:
            first = next(problem for problem in findings.problems if problem.severity == "error")
            workbench.tell("The program has errors; the first one is marked", failed=True)
            workbench.go_to(first)
            return True
        if not findings.program.pipelines:
            workbench.tell("There is no pipeline to run", failed=True)
            return True
        return False

    async def _pipeline(self, program: Program) -> Pipeline | None:
        found = {pipeline.name.text: pipeline for pipeline in program.pipelines}
        if len(found) == 1:
            return next(iter(found.values()))
        names = sorted(found, key=lambda name: name != self._last_pipeline)
        chosen = await self._workbench.host.push_screen_wait(Choose("Run which pipeline?", names))
        self._last_pipeline = chosen or self._last_pipeline
        return found[chosen] if chosen is not None else None

    async def _inputs(self, program: Program, pipeline: Pipeline, *, given: bool) -> JsonObject | None:
        name = pipeline.name.text
        known = self._remembered.texts(name)
        complete = complete_inputs(program, pipeline, known) if given or not pipeline.params else None
        if complete is not None:
            return complete
        form = Arguments(program, pipeline, known)
        answer = await self._workbench.host.push_screen_wait(form)
        if answer is None:
            return None
        values, texts = answer
        self._remembered.keep(name, texts)
        return values

    def _begin(self, program: Program, pipeline: Pipeline, inputs: JsonObject, *, at_once: bool) -> None:
        self._set_aside.clear()
        run = self._workbench.session.run(program, pipeline.name.text, inputs, self.launch)
        self.go_on(run, at_once=at_once)

    async def _telling(self, run: Coroutine[Any, Any, None]) -> None:
        try:
            await run
        except HaloError as refusal:
            self._workbench.tell(refusal.message, failed=True)
        await self._workbench.keeping.look(again=True)

    def _answered(self, question: Question, answer: Answer | None) -> None:
        self._asking = None
        session, name = self._workbench.session, question.id
        self._set_aside.add(name)
        if answer is None:
            self._workbench.tell("The question stays open; F4 or the inbox (Alt+5) opens it again")
        elif answer.later:
            session.leave_open(name)
        elif not session.answer(name, answer.value):
            self.go_on(self._answer_kept(question, answer))
        self.offer_question()

    async def _answer_kept(self, question: Question, answer: Answer) -> None:
        session = self._workbench.session
        self._drafts[question.id] = answer.typed
        await session.answer_kept(question.run_id, question.id, answer.value)
        del self._drafts[question.id]
        error = session.view.error
        if error is not None and error["type"] == "InterruptExpired":
            self._workbench.tell("The answer came too late: the time of the question was over", failed=True)
