"""A program made ready to run: names resolved, values, templates and conditions compiled, once a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from halo_lang import Program, catalog, nodes
from halo_lang.catalog.signature import Method
from halo_lang.catalog.specs import ProviderSpec
from halo_lang.records import record
from halo_lang.source import Span
from halo_runtime.engine.directives import Directives, read_directives
from halo_runtime.engine.expressions import Expression, compile_text, compile_value
from halo_runtime.engine.frame import Frame
from halo_runtime.errors import Place
from halo_runtime.schemas import Schemas, SchemaType, compile_schemas
from halo_runtime.values import compact, digest

if TYPE_CHECKING:
    from halo_runtime.engine.reach import Reach

_Kind = TypeVar("_Kind")


@record
class StageInfo:
    """What every stage knows of itself: its number, its kind for events and trace, its label, where it stands.

    `label_json` is the label as a JSON string, for the hash chain; `nodes` is the syntax that the stage was made of.
    """

    index: int
    kind: str
    label: str
    find_place: Callable[[], Place] = field(compare=False)
    nodes: tuple[object, ...] = field(default=(), compare=False)
    label_json: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label_json", compact(self.label))

    @property
    def place(self) -> Place:
        """Where it stands; looked up when somebody asks, as most stages are done and nobody does."""
        return self.find_place()


class StagePlan(Protocol):
    """A compiled stage."""

    @property
    def info(self) -> StageInfo: ...

    async def execute(self, frame: Frame, path: str) -> int:
        """Do the stage: read the frame's flowing value, set the next; return the number of the stage that follows."""
        ...


@record
class AgentPlan:
    """An agent's declaration as values. `tools` are the equipped tools and stores."""

    name: str
    model: str
    system: Expression | None
    system_text: str
    settings: Mapping[str, nodes.ArgumentValue]
    tools: tuple[str, ...]
    policies: tuple[str, ...]
    directives: Directives


@record
class PipelinePlan:
    """A pipeline ready to be walked. `output` is the schema that its output must match, `place` where it stands."""

    name: str
    place: Place
    parameters: tuple[str, ...]
    start: Expression | None
    stages: tuple[StagePlan, ...]
    directives: Directives
    output: SchemaType | None


class Plan:
    """One program's compiled pipelines and agents, made when first asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.declared: Final = frozenset(declaration.name.text for declaration in program.declarations)
        self._pipelines: dict[str, PipelinePlan] = {}
        self._agents: dict[str, AgentPlan] = {}
        self.reached: dict[str, Reach] = {}
        """What each pipeline can reach, as far as it was asked for (see reach.py)."""

    @cached_property
    def program_sha256(self) -> str:
        """Hash of the program's text, which binds it to the trace."""
        return digest(self.program.source.text)

    @cached_property
    def schemas(self) -> Schemas:
        return compile_schemas([d for d in self.program.declarations if isinstance(d, nodes.Schema)])

    def declaration(self, name: str, kind: type[_Kind]) -> _Kind:
        """The declaration of that name, of a kind that the checks have made sure of."""
        found = self.program.find(name)
        assert isinstance(found, kind), f"{name} is checked to be a {kind.__name__}"
        return found

    def pipeline(self, name: str) -> PipelinePlan:
        """The compiled pipeline."""
        if name not in self._pipelines:
            from halo_runtime.engine.compiler import compile_pipeline  # it needs the plan to resolve names

            self._pipelines[name] = compile_pipeline(self, self.declaration(name, nodes.Pipeline))
        return self._pipelines[name]

    def agent(self, name: str) -> AgentPlan:
        """The compiled agent."""
        if name not in self._agents:
            self._agents[name] = self._compile_agent(self.declaration(name, nodes.Agent))
        return self._agents[name]

    def shadows_of(self, agent: str, model: str) -> tuple[AgentPlan, ...]:
        """The agents that run beside every call to an agent or a model."""
        return tuple(self.agent(name) for target, name in self._shadows if target in (agent, model))

    @cached_property
    def _shadows(self) -> tuple[tuple[str, str], ...]:
        return tuple(shadows(self.program))

    def provider(self, tool: str) -> ProviderSpec | None:
        """The catalogue's entry of a tool's provider; None where it has none."""
        return catalog.provider(self.declaration(tool, nodes.Provider).provider.text)

    def provider_method(self, tool: str, method: str) -> Method | None:
        """The catalogue's entry of a tool's method; None for a provider that has no catalogue entry.

        The entry that an open provider has for every name gets the name that was asked for.
        """
        spec = self.provider(tool)
        entry = spec.method(method) if spec else None
        return entry if entry is None or entry.name else replace(entry, name=method)

    def place(self, declaration: nodes.Declaration, span: Span, label: str) -> Place:
        """Where something stands, for errors."""
        position = self.program.position(declaration, span)
        return Place(label, self.program.source.path, position.line, position.column)

    def _compile_agent(self, agent: nodes.Agent) -> AgentPlan:
        settings = canonical_settings(agent.config)
        text = agent.system or settings.get("system")
        system_text = text.value if isinstance(text, nodes.String) else ""
        return AgentPlan(
            name=agent.name.text,
            model=agent.model.text,
            system=compile_text(system_text) if system_text else None,
            system_text=system_text,
            settings=settings,
            tools=tuple(name.text for name in agent.names("equips")),
            policies=tuple(name.text for name in agent.names("requires")),
            directives=read_directives(agent.directives),
        )

    def value(self, node: nodes.ArgumentValue) -> Expression:
        """The expression of a value in this program."""
        return compile_value(node, self.declared)


def shadows(program: Program) -> Iterator[tuple[str, str]]:
    """Each `@shadow(target)` of a program: its target, an agent or a model, and the agent it stands on."""
    for agent in program.declarations:
        if isinstance(agent, nodes.Agent):
            for directive in agent.directives:
                if directive.name.text == "shadow" and directive.args:
                    value = directive.args[0].value
                    if isinstance(value, nodes.ModelRef | nodes.Path | nodes.String):
                        yield _target(value), agent.name.text


def _target(value: nodes.ModelRef | nodes.Path | nodes.String) -> str:
    if isinstance(value, nodes.Path):
        return value.root
    return value.text if isinstance(value, nodes.ModelRef) else value.value


def canonical_settings(arguments: tuple[nodes.Argument, ...]) -> dict[str, nodes.ArgumentValue]:
    """The settings among named arguments by their catalogue name (`temp` is `temperature`, `role` is `system`)."""
    known = catalog.CALL_SETTINGS.by_name
    named = ((argument.name.text, argument.value) for argument in arguments if argument.name is not None)
    return {known[name].name: value for name, value in named if name in known}
