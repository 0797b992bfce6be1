"""What answers the agents when a program is run from the workbench."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from halo_runtime.extras import is_installed
from halo_runtime.json_types import JsonObject

if TYPE_CHECKING:
    from halo_runtime.runtime import Runtime
    from halo_runtime.store.files import FileRunStore

EMBEDDED_MODEL = "local/smollm2"


@dataclass(frozen=True, slots=True)
class Launch:
    """A replies file, or a model instead of every agent's own, or neither.

    A run that was kept brings its replies as a `script`, and the file with its environment.
    """

    replies: Path | None = None
    model: str | None = None
    script: JsonObject | None = None
    env_file: str | None = None

    @classmethod
    def kept(cls, options: JsonObject) -> Launch:
        """As a kept run was started: `options` are those of its journal's first line."""
        return cls(None, options.get("model"), options.get("replies"), options.get("envFile"))

    def to_keep(self) -> JsonObject:
        """What a run's journal notes, for whoever goes on with it. Read after `runtime`, which refuses bad replies."""
        script = self.script if self.replies is None else json.loads(self.replies.read_text("utf-8"))
        return {"replies": script, "model": self.model, "envFile": self.env_file}

    @property
    def answers_from_a_script(self) -> bool:
        """Whether the answers come from a list, which another run begins anew."""
        return self.replies is not None or self.script is not None

    @property
    def description(self) -> str:
        """For people: where the answers come from."""
        if self.replies is not None:
            return f"on the replies in {self.replies.name}"
        if self.script is not None:
            return "on its replies"
        return f"on {self.model}" if self.model else "on the agents' own models"

    def runtime(self, store: FileRunStore | None = None) -> Runtime:
        """A runtime that answers so. Raises ConfigError for replies that cannot be used, UsageError for variables."""
        # Imported here: the editor opens before the engine's modules are needed.
        from halo_runtime.cli.env_file import environment
        from halo_runtime.configuration import configuration
        from halo_runtime.models.scripted import ScriptedModel
        from halo_runtime.runtime import Runtime

        script = self.replies if self.replies is not None else self.script
        replies = None if script is None else ScriptedModel(script)
        env = environment(self.env_file, os.environ)
        project = configuration()
        model = None if self.model is None else project.model(self.model)
        return Runtime(env=env, model=model, replies=replies, store=store, prices=project.prices)


def choose_launch(program: Path, *, replies: Path | None, model: str | None) -> Launch:
    """What was asked for; else replies beside the program; else the embedded model; else the agents' own models."""
    if replies is not None or model is not None:
        return Launch(replies, model)
    beside = (program.with_suffix(".replies.json"), program.with_name("replies.json"))
    found = next((path for path in beside if path.is_file()), None)
    if found is not None:
        return Launch(replies=found)
    return Launch(model=EMBEDDED_MODEL if is_installed("local") else None)
