"""What a Halo run did, as steps of the loop (spec 7.5). Links come from the flow of data, never from what a model says.

The journal says which effects there were and which each came from; the run's events say what they were. An effect that
is no step itself, such as a model's wish to call a tool, passes its links on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal, TypeAlias

from halo_lang import Program, catalog, nodes
from halo_lang.records import record
from halo_runtime.engine.effects import INPUT, Origins
from halo_runtime.engine.events import (
    AgentFinished,
    AgentStarted,
    InterruptOpened,
    RunEvent,
    SystemEvent,
    ToolRequested,
)
from halo_runtime.engine.journal import SHADOW, EffectRecord, is_of_limit
from halo_runtime.json_types import JsonObject
from halo_runtime.ledger.events import Kind

END: Final = "end"
"""The place of the step that a run ends with, where others have the path of an effect."""

Form: TypeAlias = Literal["silence", "communication", "preparation", "execution"]

_STORES: Final = ("KV", "File", "VectorStore")
_MESSENGERS: Final = ("Slack", "Email")
_LONGEST_QUESTION: Final = 200


@record
class Step:
    """A step to be logged. `place` is the path of its effect; `uses` and `about` are places of earlier steps."""

    place: str
    kind: Kind
    what: str
    uses: tuple[str, ...] = ()
    about: str | None = None
    form: Form | None = None

    @property
    def summary(self) -> str:
        """What happened, with the place by which the step is found again."""
        return f"{self.what} [{self.place}]"


@record
class Story:
    """What a run's events told: the agents' calls by path, `ended` those that came to an answer, and what is where."""

    agents: dict[str, str] = field(default_factory=dict[str, str])
    ended: set[str] = field(default_factory=set[str])
    tools: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    questions: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    events: dict[str, str] = field(default_factory=dict[str, str])

    def hear(self, event: RunEvent) -> None:
        """Take note of an event."""
        match event:
            case AgentStarted():
                self.agents[event.path] = f"{event.agent}.{event.method}"
            case AgentFinished(outcome="completed"):
                self.ended.add(event.path)
            case ToolRequested():
                self.tools[event.path] = (event.tool, event.method)
            case InterruptOpened():
                self.questions[event.path] = event.interrupt
            case SystemEvent():
                self.events[f"{event.path}/event"] = event.name
            case _:
                pass


@record
class Ended:
    """How a run stopped: its status, and what the value came from that flowed then."""

    status: str
    origins: Origins


def steps_of(
    program: Program, pipeline: str, records: Sequence[EffectRecord], story: Story, ended: Ended
) -> list[Step]:
    """The steps of a run, in the order in which they happened. Pure."""
    return list(_Telling(program, pipeline, records, story).steps(ended))


class _Telling:
    """Works out the steps of one run."""

    def __init__(self, program: Program, pipeline: str, records: Sequence[EffectRecord], story: Story) -> None:
        self._program = program
        self._pipeline = pipeline
        self._story = story
        self._records = {one.path: one for one in records if one.outcome == "done" and _is_told(one.path)}
        self._answers = set(_last_of_each_call(self._records, story))
        self._steps: dict[str, Step] = {}
        self._resolved: dict[str, tuple[str, ...]] = {}

    def steps(self, ended: Ended) -> Iterator[Step]:
        node = self._program.find(self._pipeline)
        if isinstance(node, nodes.Pipeline) and node.params:
            names = ", ".join(parameter.name.text for parameter in node.params)
            yield self._kept(Step(INPUT, "observe", f"input of {self._pipeline}: {names}"))
        for one in self._records.values():
            step = self._step(one, self._sources((*one.origins, *one.guards)))
            if step is not None:
                yield self._kept(step)
        if ended.status == "halted":
            yield Step(END, "act", "a gate closed: nothing more was done", self._sources(ended.origins), form="silence")

    def _kept(self, step: Step) -> Step:
        self._steps[step.place] = step
        return step

    def _step(self, one: EffectRecord, uses: tuple[str, ...]) -> Step | None:
        match one.kind:
            case "model" if one.path in self._answers:
                agent = self._story.agents[_call_of(one.path, self._story) or ""]
                return Step(one.path, "act", f"{agent} answered", uses, form="preparation")
            case "tool":
                return self._of_tool(one.path, uses)
            case "human":
                return self._of_answer(one.path, uses)
            case "event" if one.path in self._story.events:
                name = self._story.events[one.path]
                return Step(one.path, "act", f"System.{name}", uses, form="communication")
            case "event" if one.path in self._story.questions:
                return Step(one.path, "observe", f"event {self._story.questions[one.path].get('event')}", uses)
            case _:
                return None

    def _of_tool(self, place: str, uses: tuple[str, ...]) -> Step | None:
        if place.endswith("/notified"):
            return Step(place, "act", "people were told of a question", uses, form="communication")
        if place not in self._story.tools:
            return None
        tool, name = self._story.tools[place]
        declaration = self._program.find(tool)
        provider = declaration.provider.text if isinstance(declaration, nodes.Provider) else ""
        spec = catalog.provider(provider)
        method = None if spec is None else spec.method(name)
        reads = method is not None and method.effect == "read"
        what = f"{tool}.{name}"
        if spec is not None and spec.name in _STORES:
            return Step(place, "recall" if reads else "remember", what, uses)
        if reads:
            return Step(place, "observe", what, uses)
        form: Form = "communication" if spec is not None and spec.name in _MESSENGERS else "execution"
        return Step(place, "act", what, uses, form=form)

    def _of_answer(self, place: str, uses: tuple[str, ...]) -> Step:
        """An answer after an action tells what came of it: of one that the question rests on, else of the latest."""
        message = str(self._story.questions.get(place, {}).get("message", "a question"))
        what = f"answer to: {' '.join(message.split())[:_LONGEST_QUESTION]}"
        acts = [step.place for step in self._steps.values() if step.kind == "act"]
        rested = [act for act in acts if act in uses]
        if not acts:
            return Step(place, "observe", what, uses)
        return Step(place, "outcome", what, uses, about=(rested or acts)[-1])

    def _sources(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The steps that effects were or rest on, each once, in the order in which they happened."""
        found = {place for path in paths for place in self._resolve(path)}
        return tuple(place for place in self._steps if place in found)

    def _resolve(self, path: str) -> tuple[str, ...]:
        if path in self._steps:
            return (path,)
        if path not in self._resolved:
            self._resolved[path] = ()  # a circle ends here
            below = [self._records[path]] if path in self._records else self._under(path)
            sources = (source for one in below for source in (*one.origins, *one.guards))
            steps = {one.path for one in below if one.path in self._steps}
            self._resolved[path] = tuple({*steps, *(place for source in sources for place in self._resolve(source))})
        return self._resolved[path]

    def _under(self, path: str) -> list[EffectRecord]:
        """The tries of an effect that is named by its place alone."""
        return [one for place, one in self._records.items() if place.startswith(f"{path}/")]


def _is_told(path: str) -> bool:
    """Shadows are no part of what the run did, and questions about budgets none of its loop."""
    return SHADOW not in path and not is_of_limit(path)


def _last_of_each_call(records: Mapping[str, EffectRecord], story: Story) -> Iterator[str]:
    """The record of the answer of every agent's call that has come to one: its last."""
    last: dict[str, str] = {}
    for path, one in records.items():
        call = _call_of(path, story) if one.kind == "model" else None
        if call is not None and call in story.ended:
            last[call] = path
    yield from last.values()


def _call_of(path: str, story: Story) -> str | None:
    """The path of the agent's call that a record belongs to, the innermost one."""
    parts = path.split("/")
    prefixes = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in story.agents), None)
