"""The contract of tool and store providers (spec 5).

The catalogue in `halo_lang` says which methods a provider has, their arguments and effects; a provider does them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from halo_lang.catalog.signature import Effect
from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject

if TYPE_CHECKING:
    from halo_runtime.models.embeddings import Embeddings


@record
class ToolConfig:
    """What a declaration says: `name` as declared, `settings` by the catalogue's parameter names.

    `folder` is the program's folder: relative paths start there. `env` are the variables that processes of the tool
    see: the harmless ones of the run's own environment, and those that the declaration names with `env:`. Neither is
    shown, for both hold secrets. `embeddings` are the model services that embed texts, where there are any to ask.
    """

    name: str
    provider: str
    settings: JsonObject = field(repr=False)
    folder: Path
    env: Mapping[str, str] = field(repr=False, default_factory=dict[str, str])
    embeddings: Embeddings | None = field(repr=False, default=None)


class ToolProvider(Protocol):
    """An opened tool. Errors are ToolError; results are JSON values; cancelling stops the work.

    Texts that are run as code (`code` in the catalogue) come as WrittenText where the program calls, so that values
    in them can be kept from being read as code. A plain text there was chosen by an agent, whole.
    """

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do `method` with arguments by name, already checked against the catalogue."""
        ...

    async def close(self) -> None:
        """Free what the provider holds; called at the run's end, also after a failure."""
        ...


@runtime_checkable
class Probing(Protocol):
    """A provider that can say whether its settings work, for `halo doctor`."""

    async def probe(self) -> str:
        """Reach what the provider needs, changing nothing: what was found, in a few words ("12 tables, read only").

        Raises ToolError that says what is wrong and what to do.
        """
        ...


@runtime_checkable
class Notifying(Protocol):
    """A provider that can tell people of a question whose `channel:` its tool is."""

    async def notify(self, subject: str, text: str) -> None:
        """Send a message to where the declaration says. Raises ToolError."""
        ...


@record
class OfferedMethod:
    """A method that a server tells of, in its own words: `schema` is the JSON Schema of its arguments, an object."""

    name: str
    doc: str
    schema: JsonObject
    effect: Effect


@runtime_checkable
class SelfDescribing(Protocol):
    """A provider whose methods are not in the catalogue, but what its server says it has (`listed` there)."""

    async def methods(self) -> Sequence[OfferedMethod]:
        """All that may be called, for models to choose from. Raises ToolError."""
        ...


@runtime_checkable
class Choosy(Protocol):
    """A provider that does not do for an agent all that it does for a program."""

    def refuses(self, method: str, args: JsonObject) -> str | None:
        """Why a call that an agent chose is not made, in words for its model; None for one that is.

        Asked before the call, with arguments by name, already checked against the catalogue.
        """
        ...


ToolFactory: TypeAlias = Callable[[ToolConfig], ToolProvider]
"""Makes a tool and opens nothing yet. Those of Halo itself are called before a run starts, so that ConfigError for
settings that cannot work comes before anything is done; others when their tool is first called."""
