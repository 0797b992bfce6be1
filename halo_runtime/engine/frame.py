"""The state of one pipeline call: its arguments, its results, the flowing value, and where each came from."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from halo_runtime.engine.directives import NO_DIRECTIVES, Directives
from halo_runtime.engine.effects import NO_ORIGINS, Origins
from halo_runtime.engine.journal import Step
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing
from halo_runtime.values import lookup

if TYPE_CHECKING:
    from halo_runtime.engine.limits import TimeLimit
    from halo_runtime.engine.plan import PipelinePlan, StagePlan
    from halo_runtime.engine.run import Run
    from halo_runtime.engine.strand import Strand

EMPTY_LOCALS: JsonObject = {}


class Frame:
    """One call of a pipeline. Nested pipelines have frames of their own.

    `origins` is the side table of provenance: for each key of `data` (`summary`, `Bot.answer`) the paths of the
    effects its value came from; values themselves are plain JSON. `guards` are the effects that the conditions
    passed so far read. `digest` is the SHA-256 of the flowing value, kept so that each value is hashed once. `stage`
    is the stage being executed and `stored` what it has written so far, by the keys of `origins`.
    """

    __slots__ = (
        "current",
        "current_origins",
        "data",
        "depth",
        "digest",
        "directives",
        "guarded_by",
        "input",
        "input_origins",
        "jumps",
        "limit",
        "local_origins",
        "locals",
        "namespaces",
        "origins",
        "outer_guards",
        "path",
        "plan",
        "run",
        "stage",
        "stored",
        "strand",
        "visits",
    )

    def __init__(
        self,
        run: Run,
        plan: PipelinePlan,
        path: str,
        strand: Strand,
        arguments: JsonObject,
        input_origins: dict[str, Origins],
        *,
        depth: int = 0,
        limit: TimeLimit | None = None,
        guards: Origins = NO_ORIGINS,
        directives: Directives = NO_DIRECTIVES,
    ) -> None:
        self.run = run
        self.plan = plan
        self.path = path
        self.strand = strand
        self.input = arguments
        self.input_origins = input_origins
        self.depth = depth
        self.limit = limit
        self.outer_guards = guards
        self.guarded_by: dict[int, Origins] = {}
        self.directives = plan.directives.within(directives)
        self.stage: StagePlan | None = None
        self.data: JsonObject = {}
        self.origins: dict[str, Origins] = {}
        self.stored: JsonObject = {}
        self.namespaces: set[str] = set()
        self.locals = EMPTY_LOCALS
        self.local_origins: Origins = NO_ORIGINS
        self.visits = [0] * len(plan.stages)
        self.jumps: dict[int, int] = {}
        self.current: Json = MISSING
        self.current_origins: Origins = NO_ORIGINS
        self.digest = ""

    def fork(self, strand: Strand, *, current: Json, origins: Origins, local_values: JsonObject | None = None) -> Frame:
        """A view for one parallel arm or item: the same results, a strand and a flowing value of its own.

        The results are shared, not copied: a block writes to them only when all its items have ended.
        """
        view = Frame.__new__(Frame)
        for name in Frame.__slots__:
            setattr(view, name, getattr(self, name))
        view.strand = strand
        view.flow(current, origins)
        if local_values is not None:
            view.locals = local_values
            view.local_origins = origins
        return view

    # --- the flowing value --------------------------------------------------------------------------------------

    def flow(self, value: Json, origins: Origins) -> None:
        """Let `value` flow on."""
        self.current_origins = origins
        if value is not self.current:
            self.current = value
            self.digest = self.run.digest(value)

    @property
    def guards(self) -> Origins:
        """The effects that the conditions passed so far read; of one that is evaluated again only the last time."""
        return self.outer_guards.union(*self.guarded_by.values()) if self.guarded_by else self.outer_guards

    def guard(self, condition: object, origins: Origins) -> None:
        """Note what a condition read: what follows rests on it."""
        self.guarded_by[id(condition)] = origins

    def visit(self, index: int) -> str:
        """The structural path of the stage's execution that begins now: `Main/2`, `Main/2#1` the second time."""
        count = self.visits[index]
        self.visits[index] = count + 1
        return f"{self.path}/{index}#{count}" if count else f"{self.path}/{index}"

    def step(self, value: Json | Missing = MISSING) -> Step | None:
        """What the stage's execution did, for a run that is kept; `value` is an item's, which flows in a block only."""
        run, stage = self.run, self.stage
        if not run.recording or stage is None:
            return None
        item = value is not MISSING
        return Step(
            frame=self.path,
            pipeline=self.plan.name,
            info=stage.info,
            arguments=self.input,
            current=value if item else self.current,
            stored={} if item else self.stored,
        )

    def standing_still(self) -> AbstractContextManager[None]:
        """Stop the time limits around while people are asked."""
        return self.limit.standing_still() if self.limit else nullcontext()

    # --- reading ------------------------------------------------------------------------------------------------

    def read(self, segments: tuple[str, ...]) -> Json | Missing:
        """What a path in a value, a condition or a template leads to (spec 1.5)."""
        root = segments[0]
        if root == "context":
            return self._read_context(segments[1:])
        for names in (self.locals, self.input):
            if root in names:
                return lookup(names[root], segments[1:])
        if root in self.data:
            return self._read_data(segments)
        if root == "current":
            return lookup(self.current, segments[1:])
        return MISSING

    def _read_context(self, segments: tuple[str, ...]) -> Json | Missing:
        if not segments or segments[0] == "current":
            return lookup(self.current, segments[1:])
        if segments[0] == "data":
            return self._read_data(segments[1:])
        if segments[0] == "input":
            return lookup(self.input, segments[1:])
        if segments[0] == "meta":
            return lookup(self.run.meta(), segments[1:])
        return MISSING

    def _read_data(self, segments: tuple[str, ...]) -> Json | Missing:
        # Whole namespaces are copied: they grow while the run goes on, a value once read does not.
        if not segments:
            return {name: dict(value) if name in self.namespaces else value for name, value in self.data.items()}
        if len(segments) == 1 and segments[0] in self.namespaces:
            return dict(self.data[segments[0]])
        return lookup(self.data, segments)

    def origins_of(self, segments: tuple[str, ...]) -> Origins:
        """The effects that the value at a path came from; follows `read`."""
        root = segments[0]
        if root == "context":
            return self._context_origins(segments[1:])
        if root in self.locals:
            return self.local_origins
        if root in self.input:
            return self.input_origins.get(root, NO_ORIGINS)
        if root in self.data:
            return self._data_origins(segments)
        return self.current_origins if root == "current" else NO_ORIGINS

    def _context_origins(self, segments: tuple[str, ...]) -> Origins:
        namespace, rest = (segments[0], segments[1:]) if segments else ("current", ())
        if namespace == "current":
            return self.current_origins
        if namespace == "data":
            return self._data_origins(rest)
        if namespace == "input":
            return self._input_origins(rest)
        return NO_ORIGINS

    def _input_origins(self, segments: tuple[str, ...]) -> Origins:
        if segments:
            return self.input_origins.get(segments[0], NO_ORIGINS)
        return NO_ORIGINS.union(*self.input_origins.values())

    def _data_origins(self, segments: tuple[str, ...]) -> Origins:
        if not segments:
            return NO_ORIGINS.union(*self.origins.values())
        root = segments[0]
        if root not in self.namespaces:
            return self.origins.get(root, NO_ORIGINS)
        if len(segments) > 1:
            return self.origins.get(f"{root}.{segments[1]}", NO_ORIGINS)
        return NO_ORIGINS.union(*(found for key, found in self.origins.items() if key.startswith(f"{root}.")))

    def origins_of_all(self, paths: tuple[tuple[str, ...], ...]) -> Origins:
        """The effects that the values at any of the paths came from."""
        if not paths:
            return NO_ORIGINS
        return NO_ORIGINS.union(*map(self.origins_of, paths))

    # --- writing ------------------------------------------------------------------------------------------------

    def bind(self, name: str, value: Json, origins: Origins) -> None:
        """Store a result under a name of its own: an `as` name, a method alone, a nested pipeline."""
        if name in self.namespaces:
            self.run.warn(self, f"a result named {name} meets the namespace context.data.{name}; the namespace is kept")
            return
        self.data[name] = self.stored[name] = value
        self.origins[name] = origins

    def bind_in(self, namespace: str, name: str, value: Json, origins: Origins) -> None:
        """Store a result at `data.<namespace>.<name>`: `Callee.method`, `Source.Event`."""
        if namespace not in self.namespaces:
            if namespace in self.data:
                self.run.warn(
                    self, f"a result named {namespace} meets the namespace context.data.{namespace}; it is replaced"
                )
                self.origins.pop(namespace, None)
            self.namespaces.add(namespace)
            self.data[namespace] = {}
        key = f"{namespace}.{name}"
        self.data[namespace][name] = self.stored[key] = value
        self.origins[key] = origins
