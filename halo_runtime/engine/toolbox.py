"""The tools of one run: opened at first use, closed at its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from halo_lang import Program, catalog, nodes
from halo_lang.catalog.signature import Signature
from halo_runtime.engine.expressions import compile_value
from halo_runtime.errors import ConfigError, HaloError, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.redaction import Redactor
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import Choosy, Notifying, Probing, SelfDescribing, ToolConfig, ToolFactory, ToolProvider
from halo_runtime.tools.shell.environment import given_variable, harmless

if TYPE_CHECKING:
    from halo_runtime.models.embeddings import Embeddings
    from halo_runtime.models.registry import ModelRegistry


class ToolBox:
    """Opens tools from their declarations. Values of `Env.NAME` are secrets from the moment they are read.

    `models` are the services that tools may let embed their texts.
    """

    def __init__(
        self,
        program: Program,
        env: Mapping[str, str],
        factories: Mapping[str, ToolFactory],
        redactor: Redactor,
        models: ModelRegistry,
    ) -> None:
        self._program = program
        self._env = env
        self._factories = factories
        self._redactor = redactor
        self._models = models
        self._configs: dict[str, tuple[ToolFactory, ToolConfig]] = {}
        self._made: dict[str, ToolProvider] = {}
        self._open: dict[str, ToolProvider] = {}
        self._problems: dict[str, str] = {}

    def prepare(self, names: frozenset[str]) -> list[str]:
        """Read the configuration of tools that a run may use; what is missing, all at once, in words."""
        problems: list[str] = []
        for name in sorted(names):
            declaration = self._program.find(name)
            if isinstance(declaration, nodes.Provider):
                try:
                    factory, config = self._configs[name] = self._configure(declaration)
                    if declaration.provider.text not in self._factories:
                        self._made[name] = factory(config)
                except ConfigError as error:
                    problems.append(f"{declaration.kind} {name}: {error.message}")
                    self._problems[name] = problems[-1]
        return problems

    async def call(self, name: str, method: str, arguments: JsonObject) -> JsonObject:
        """Do a method of a tool: `{"value": its result as JSON, "warnings": what was changed for that}`.

        `"embedded"` stands there too where it has used embedding models: `[{"model", "tokens", "estimated"}]`. Secrets
        are taken out here, so that neither journal nor models ever see what a service repeats of them.

        Raises ToolError.
        """
        found = self._configs.get(name)
        if found is None or found[1].embeddings is None:
            return await self._asked(name, method, lambda tool: tool.call(method, arguments))
        from halo_runtime.models.embeddings import metered  # only stores with a service's model pay for it

        with metered() as used:
            try:
                answer = await self._asked(name, method, lambda tool: tool.call(method, arguments))
            except HaloError as error:
                error.embedded = [use.to_json() for use in used.values()]
                raise
        return answer | ({"embedded": [use.to_json() for use in used.values()]} if used else {})

    async def methods(self, name: str) -> JsonObject:
        """What a tool's server says of its methods, in the form of `call`: `[{"name", "doc", "schema", "effect"}]`."""

        async def described(tool: ToolProvider) -> Json:
            if not isinstance(tool, SelfDescribing):
                return []
            return [
                {"name": one.name, "doc": one.doc, "schema": one.schema, "effect": one.effect}
                for one in await tool.methods()
            ]

        return await self._asked(name, "(methods)", described)

    async def _asked(self, name: str, what: str, ask: Callable[[ToolProvider], Awaitable[Json]]) -> JsonObject:
        from halo_runtime.convert import ConversionError, to_json  # only runs that call tools need the converters

        warnings: list[str] = []
        try:
            if name in self._problems:  # a cassette was to answer in its place
                raise ToolError(self._problems[name])
            result = await ask(self._opened(name))
            return {"value": self._redactor.json(to_json(result, warnings.append)), "warnings": warnings}
        except HaloError:
            raise
        except ConversionError as error:
            raise ToolError(f"{name}.{what} gave what is no JSON value: {error}") from error
        except Exception as error:  # a provider may be a stranger's code; the run fails at this call, with its name
            raise ToolError(f"{name}.{what} failed inside its provider: {type(error).__name__}: {error}") from error

    def notifies(self, name: str) -> bool:
        """Whether a prepared tool can tell people of a question."""
        return name in self._configs and isinstance(self._opened(name), Notifying)

    async def notify(self, name: str, subject: str, text: str) -> None:
        """Send a message by a tool that `notifies`. Raises ToolError."""

        async def sent(tool: ToolProvider) -> Json:
            assert isinstance(tool, Notifying)
            await tool.notify(subject, text)
            return None

        await self._asked(name, "notify", sent)

    async def probe(self, name: str) -> str | None:
        """What a prepared tool finds when it tries its settings, changing nothing; None where it has no way to try.

        Raises ToolError, and ConfigError where its provider cannot be opened.
        """
        try:
            tool = self._opened(name)
            return self._redactor.text(await tool.probe()) if isinstance(tool, Probing) else None
        except HaloError:
            raise
        except Exception as error:  # a provider may be a stranger's code
            raise ToolError(f"{name} failed inside its provider: {type(error).__name__}: {error}") from error

    def refuses(self, name: str, method: str, arguments: JsonObject) -> str | None:
        """Why a call that an agent chose is not made; None for one that is."""
        tool = self._made.get(name) or self._open.get(name)
        return tool.refuses(method, arguments) if isinstance(tool, Choosy) else None

    async def close(self) -> None:
        """Close what was opened; one that fails to close does not keep the others open."""
        opened, self._open = self._open, {}
        for tool in opened.values():
            with suppress(Exception):  # a provider may be a stranger's code; the run has its result already
                await tool.close()

    def _opened(self, name: str) -> ToolProvider:
        if name not in self._open:
            factory, config = self._configs[name]
            self._open[name] = self._made.get(name) or factory(config)
        return self._open[name]

    def _configure(self, node: nodes.Provider) -> tuple[ToolFactory, ToolConfig]:
        provider = node.provider.text
        factory = self._factories.get(provider) or tool_factory(provider)
        spec = catalog.provider(provider)
        positional = [argument.value for argument in node.args if argument.name is None]
        named = {argument.name.text: argument.value for argument in node.args if argument.name is not None}
        values = {name: self._setting(value) for name, value in named.items()}
        settings = spec.config.bind([*map(self._setting, positional)], values).values() if spec else values
        settings |= self._left_out(spec.config, settings) if spec else {}
        source = Path(self._program.source.path)
        folder = source.parent if source.suffix else Path()
        variables = spec.config.bind(positional, named).arguments.get("env") if spec else named.get("env")
        env = harmless(self._env) | self._variables(variables)
        embeddings = self._embeddings() if spec is not None and spec.name == "VectorStore" else None
        return factory, ToolConfig(node.name.text, spec.name if spec else provider, settings, folder, env, embeddings)

    def _embeddings(self) -> Embeddings:
        from halo_runtime.models.embeddings import Embeddings  # only stores of vectors pay for it

        return Embeddings(self._models)

    def _left_out(self, signature: Signature, settings: JsonObject) -> JsonObject:
        """What the declaration leaves out and the environment says."""
        found: JsonObject = {}
        for parameter in signature.parameters:
            set_ = (value for name in parameter.variables if (value := self._env.get(name, "").strip()))
            if parameter.name not in settings and (value := next(set_, None)) is not None:
                self._redactor.add([value] if parameter.secret else ())
                found[parameter.name] = value
        return found

    def _variables(self, node: nodes.ArgumentValue | None) -> dict[str, str]:
        """The variables of an `env:` list: `Env.NAME` and "NAME" pass one on, "NAME=value" sets one."""
        given: dict[str, str] = {}
        for item in node.items if isinstance(node, nodes.ListValue) else ():
            name, value = _environment_name(item), self._setting(item)
            given.update([given_variable(value, self._env) if name is None else (name, value)])
        return given

    def _setting(self, node: nodes.ArgumentValue) -> Json:
        if isinstance(node, nodes.ListValue):
            return [self._setting(item) for item in node.items]
        name = _environment_name(node)
        if name is None:
            expression = compile_value(node, frozenset())
            assert not expression.paths, "checked by HL504"
            return expression.evaluate(None)  # pyright: ignore[reportArgumentType] - constants read no frame
        value = self._env.get(name)
        if not value:
            raise ConfigError(f"the environment variable {name} is not set; set it, or name it with --env-file")
        self._redactor.add([value])
        return value


def _environment_name(node: nodes.ArgumentValue) -> str | None:
    """NAME of `Env.NAME`, written bare or as a string."""
    if isinstance(node, nodes.Path) and node.root == "Env" and len(node.parts) == 2:
        return node.parts[1].text
    if isinstance(node, nodes.String) and node.value.startswith("Env."):
        return node.value.removeprefix("Env.")
    return None
