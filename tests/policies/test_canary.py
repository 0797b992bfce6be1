"""A secret and an address put in at every entrance of a run: they come out nowhere."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import KEY, FakeOpenAI, calls, completion

PLACES = ("input", "tool", "env", "system", "history", "answer", "reply", "arguments")
MAILS = {place: f"canary-{place}@birds.example" for place in PLACES}
SECRETS = {place: f"ghp_{place}Canary0Canary1Canary2Canary3x" for place in PLACES}
CANARIES = (*MAILS.values(), *SECRETS.values())

PROGRAM = f"""
tool Files : Workspace("files")
tool Hidden : Workspace(Env.CANARY_FOLDER)
store Talk : File("talk.jsonl")
policy Guard : Redact(PII, Secrets, restore: true)
policy Short : MaxLength(300)
@correct(1)
agent Bot [openai/gpt-4o-mini]
  system "Work for {MAILS["system"]} with {SECRETS["system"]}."
  equips Files, Talk
  requires Guard, Short
@checkpoint
pipeline Main(input: Object) -> Result:
  input
    |> Bot.read("About {{{{input.mail}}}}", tools: [Files])
    |> Hidden.list()
    |! yield("Send it to {{{{input.mail}}}} with {{{{input.secret}}}}?") as answer
    |> System.Print("{{{{input.mail}}}} {{{{input.secret}}}} {{{{answer}}}}")
    |> Bot.write("Say {{{{answer}}}} to {{{{input.mail}}}}")
    |> Files.read("missing {{{{input.mail}}}} {{{{input.secret}}}}.txt")
"""


class World:
    """A project with canaries at all entrances, and commands run in it as processes."""

    def __init__(self, folder: Path, service: FakeOpenAI) -> None:
        self.folder = folder
        self.service = service
        self.told: list[str] = []
        (folder / "main.halo").write_text(PROGRAM)
        (folder / "in.json").write_text(
            json.dumps({"input": {"mail": MAILS["input"], "secret": SECRETS["input"], "n": [{MAILS["input"]: 1}]}})
        )
        (folder / "files").mkdir()
        (folder / "files" / "note.txt").write_text(f"{MAILS['tool']} {SECRETS['tool']}")
        (folder / SECRETS["env"]).mkdir()
        (folder / SECRETS["env"] / "seen.txt").write_text("x")
        said = {"role": "user", "text": f"{MAILS['history']} {SECRETS['history']}"}
        turns = [said, {"role": "assistant", "text": f"to {MAILS['history']}"}]
        self.history = json.dumps({"v": 1, "at": "2026-01-02T03:04:05Z", "turns": turns}) + "\n"
        (folder / "talk.jsonl").write_text(self.history)

    async def halo(self, *words: str) -> int:
        """Run a command; what it says is kept in `told`."""
        env = {
            **os.environ, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": self.service.url, "NO_COLOR": "1",
            "CANARY_FOLDER": SECRETS["env"], "CANARY_TOKEN": f"{MAILS['env']} {SECRETS['env']}",
        }  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "halo_runtime.cli.main", *words, cwd=self.folder, env=env,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, error = await process.communicate()
        self.told.append(f"$ halo {' '.join(words[:2])}\n{out.decode()}\n{error.decode()}")
        assert process.returncode is not None
        return process.returncode

    @property
    def run_id(self) -> str:
        return next((self.folder / ".halo" / "checkpoints").glob("*.jsonl")).stem

    @property
    def vault(self) -> Path:
        return self.folder / ".halo" / "vault" / f"{self.run_id}.json"

    async def look(self) -> None:
        """Say all that there is to say about the run."""
        for words in (
            ["show", self.run_id], ["show", self.run_id, "--json"], ["runs"], ["runs", "--json"], ["inbox"],
            ["inbox", "--json"], ["checkpoints", "verify", self.run_id], ["trace", "events", "--json"],
            ["prompt", "main.halo", "--input-json", "in.json"],
        ):  # fmt: skip
            await self.halo(*words)

    def files(self) -> dict[str, str]:
        """All that Halo has written, but the vault: names with contents."""
        written = [path for path in (self.folder / ".halo").rglob("*") if path.is_file() and path != self.vault]
        written += self.folder.glob("tape*")
        told = {str(path.name): path.read_bytes().decode("utf-8", "replace") for path in written}
        return told | {"talk.jsonl": (self.folder / "talk.jsonl").read_text().removeprefix(self.history)}

    def found(self) -> list[tuple[str, str]]:
        """Where canaries are that must not be there."""
        sent = {f"request {n}": json.dumps(one.body) for n, one in enumerate(self.service.requests)}
        screens = {f"screen {n}": text for n, text in enumerate(self.told)}
        everywhere = sent | screens | self.files()
        return [(place, canary) for place, text in everywhere.items() for canary in CANARIES if canary in text]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with FakeOpenAI() as service:
        yield World(tmp_path, service)


async def test_canaries_come_out_nowhere(world: World) -> None:
    arguments = json.dumps({"path": "note.txt"})
    written = json.dumps({"path": "out.txt", "text": f"{MAILS['arguments']} {SECRETS['arguments']}"})
    world.service.turn(calls(("call_1", "Files_read", arguments), ("call_2", "Files_write", written)))
    world.service.turn(completion(f"{'too long ' * 40} {MAILS['reply']}"))
    world.service.turn(completion(f"a reply of {MAILS['reply']} with {SECRETS['reply']} about [EMAIL_1]"))
    options = ("--record", "tape.jsonl", "--events", "--no-input")
    assert await world.halo("run", "main.halo", "--input-json", "in.json", "--json", "--ledger", *options) == 4, (
        world.told[-1]
    )
    await world.look()
    assert stat.S_IMODE(world.vault.stat().st_mode) == 0o600
    assert MAILS["input"] in world.vault.read_text()
    assert not any(secret in world.vault.read_text() for secret in SECRETS.values())
    assert world.found() == []

    world.service.turn(completion("written to [EMAIL_1]"))
    answer = json.dumps(f"yes {MAILS['answer']} {SECRETS['answer']}")
    assert await world.halo("resume", world.run_id, "--answer", answer, *options) == 1
    await world.look()
    assert not world.vault.exists()
    assert "missing ⟨EMAIL_" in "".join(world.told)
    assert world.found() == []
    assert '"remember"' in "".join(world.told)  # it was logged
    assert len(world.service.requests) == 4
