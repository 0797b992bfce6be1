"""The options that every command shares which runs something: models, answers, what is shown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import click

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject

if TYPE_CHECKING:
    from halo_runtime.cassettes.cassette import Cassette
    from halo_runtime.ledger.recorder import RunRecorder
    from halo_runtime.runtime import Runtime
    from halo_runtime.store.files import FileRunStore
    from halo_runtime.store.stored import StoredRun

Command = TypeVar("Command", bound=Callable[..., int])

_OPTIONS = (
    click.option("--replies", metavar="FILE", help="Answer every agent from a replies file instead of its model."),
    click.option("--record", metavar="FILE", help="Keep what models and tools answer in a cassette."),
    click.option("--replay", metavar="FILE", help="Answer from a cassette alone: nothing is sent, no key is needed."),
    click.option("--replay-else-live", metavar="FILE", help="As --replay, but ask what is not there and add it."),
    click.option("--model", metavar="ID", help="Use this model for every agent."),
    click.option("--no-input", is_flag=True, help="Never ask at the terminal: pause instead."),
    click.option("--by", metavar="NAME", help="Who gives the answers (default: your user name)."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of the output alone."),
    click.option("--events", is_flag=True, help="Every event as a line of JSON on stderr instead of progress."),
    click.option("--quiet", is_flag=True, help="No progress on stderr, only errors and open questions."),
    click.option("--otel", is_flag=True, help="Send spans to an OpenTelemetry collector, as the OTEL_* variables say."),
    click.option(
        "--ledger",
        metavar="[=PATH]",
        is_flag=False,
        flag_value="",
        help="Log what the run does to the loop ledger (--ledger=PATH: not .halo/ledger.db).",
    ),
    click.option("--agent", metavar="NAME", help="Whom it is logged as (default: the pipeline)."),
    click.option("--env-file", metavar="FILE", help="Variables (NAME=value lines) for Env and the models' keys."),
)

_CONFLICTS = (
    ("replies", "replay", "both answer for every agent: leave one out"),
    ("replies", "replay_else_live", "both answer for every agent: leave one out"),
    ("replay", "replay_else_live", "one asks nobody, the other whoever is not in the cassette: leave one out"),
    ("record", "replay", "what a cassette answers is recorded already: leave one out"),
    ("record", "replay_else_live", "what is asked is added to that cassette: leave --record out"),
    ("replay", "model", "no model is asked: leave --model out, or use --replay-else-live"),
)
"""Options that exclude each other, and what to do."""


@record
class Settings:
    """What those options said."""

    replies: str | None = None
    record: str | None = None
    replay: str | None = None
    replay_else_live: str | None = None
    model: str | None = None
    no_input: bool = False
    by: str | None = None
    as_json: bool = False
    events: bool = False
    quiet: bool = False
    otel: bool = False
    ledger: str | None = None
    agent: str | None = None
    env_file: str | None = None

    @classmethod
    def taken_from(cls, given: dict[str, Json]) -> Settings:
        """Take the shared options out of a command's arguments. UsageError for two that exclude each other."""
        settings = cls(**{name: given.pop(name) for name in cls.__match_args__})  # pyright: ignore[reportAttributeAccessIssue] - every record has it
        settings._refuse_conflicts()
        return settings

    @property
    def person(self) -> str:
        """Who answers."""
        return self.by or user_name()

    def to_keep(self) -> JsonObject:
        """What a run's journal notes of them, so that it can go on without being told again. Nothing secret.

        To be asked after `runtime`, which refuses replies that are none.
        """
        replies = None if self.replies is None else json.loads(Path(self.replies).read_text("utf-8"))
        env_file = None if self.env_file is None else str(Path(self.env_file).absolute())
        cassettes = {"record": self.record, "replay": self.replay, "replayElseLive": self.replay_else_live}
        used = {name: str(Path(file).absolute()) for name, file in cassettes.items() if file is not None}
        ledger = {} if self.ledger is None else {"ledger": str(self._ledger_path().absolute()), "agent": self.agent}
        return {"replies": replies, "model": self.model, "envFile": env_file, **used, **ledger}

    def in_project(self) -> Settings:
        """The options of a new run, with what halo.toml says of models and replies (see configuration.py)."""
        from halo_runtime.configuration import configuration  # the help of a command needs no project

        project = configuration()
        model = None if self.model is None else project.model(self.model)
        return replace(self, model=model, replies=self.replies if self._says_who_answers else project.replies)

    def runtime(self, going_on: StoredRun | None = None) -> Runtime:
        """A Runtime as these options say, and where they say nothing as the run was started that it goes on with."""
        # Imported here: the help of a command needs its options and no engine.
        from halo_runtime.cli.env_file import environment
        from halo_runtime.cli.project import run_store, store_of
        from halo_runtime.configuration import configuration
        from halo_runtime.models.scripted import ScriptedModel
        from halo_runtime.runtime import Runtime

        store = run_store() if going_on is None else store_of(str(going_on.path))
        kept: JsonObject = {} if going_on is None else _options_of(going_on, store)
        env = environment(self.env_file or kept.get("envFile"), os.environ)
        script = self.replies if self._says_who_answers else kept.get("replies")
        replies = None if script is None else ScriptedModel(script)
        project, model = configuration(), kept.get("model") if self.model is None else self.model
        return Runtime(
            env=env,
            model=None if model is None else project.model(model),
            replies=replies,
            cassette=self._cassette(kept),
            store=store,
            prices=project.prices,
            recorder=self._recorder(kept),
        )

    def _recorder(self, kept: JsonObject) -> RunRecorder | None:
        """What logs the run, if anything does: as it is told now, else as the run was started. Raises StoreError."""
        path = kept.get("ledger") if self.ledger is None else self._ledger_path()
        if path is None:
            return None
        from halo_runtime.ledger import Ledger
        from halo_runtime.ledger.recorder import RunRecorder

        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return RunRecorder(Ledger.open(path), self.agent or kept.get("agent"))

    def _ledger_path(self) -> Path:
        from halo_runtime.cli.trace.options import ledger_path

        return ledger_path(Path(self.ledger) if self.ledger else None)

    @property
    def _says_who_answers(self) -> bool:
        """Whether an option names who answers, so that what the run was started with no longer counts."""
        return any((self.replies, self.replay, self.replay_else_live, self.model))

    def _cassette(self, kept: JsonObject) -> Cassette | None:
        """The cassette that is used, if any; that of the run's start goes on."""
        replay, else_live = self.replay, self.replay_else_live
        if not self._says_who_answers and self.record is None:
            replay, else_live = kept.get("replay"), kept.get("replayElseLive")
        record = self.record or (None if replay or else_live else kept.get("record"))
        if not (record or replay or else_live):
            return None
        from halo_runtime.cassettes.cassette import Cassette  # only runs with a cassette pay for it

        if record is not None:
            return Cassette.record(record, anew=self.record is not None)
        return Cassette.replay(replay or else_live or "", else_live=replay is None)

    def _refuse_conflicts(self) -> None:
        from halo_runtime.cli.usage import UsageError

        for first, second, hint in _CONFLICTS:
            if getattr(self, first) is not None and getattr(self, second) is not None:
                options = f"{_flag(first)} and {_flag(second)}"
                raise UsageError(f"{options} exclude each other", hint=hint)


def _options_of(run: StoredRun, store: FileRunStore) -> JsonObject:
    """The options that a run was started with, with what is kept out of its journal back in its replies."""
    from halo_runtime.policies.edge import revealed

    options, memory = run.header["options"], store.vault(run.run_id).load()
    return options if memory is None else cast("JsonObject", revealed(options, memory))


def run_options(command: Command) -> Command:
    """Give a command the shared options; `Settings.taken_from` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def user_name() -> str:
    """The person at the machine, as the system knows them."""
    import getpass  # only who answers needs it

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def seconds_of(option: str, duration: str) -> float:
    """What an option's duration comes to. Raises UsageError where it is none, or nothing."""
    from halo_lang.catalog.signature import duration_seconds  # the help of a command needs no catalogue
    from halo_runtime.cli.usage import UsageError

    seconds = duration_seconds(duration)
    if not seconds or seconds < 0:
        raise UsageError(f"{option} {duration}: no duration", hint="write 500ms, 30s, 5m, 1h or 1d")
    return seconds
