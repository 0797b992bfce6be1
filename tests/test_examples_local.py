"""Examples on the embedded model: they come to their end without a reply file, and a cassette of one replays."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from halo_runtime.json_types import JsonObject
from halo_runtime.models import local

pytestmark = pytest.mark.local

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RUNS = [
    ("support_triage",),
    ("review_with_approval", "--answer", "decision=publish"),
    ("label_each",),
    ("minutes",),
    ("tour", "Tour", "--answer", "answer=yes", "--answer", "printer=LP-1"),
]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents answer with few tokens, where no schema asks for more: the tests are about the way, not the words."""
    monkeypatch.setattr(local, "DEFAULT_MAX_TOKENS", 12)


def run(capsys: pytest.CaptureFixture[str], name: str, *arguments: str) -> JsonObject:
    """What `halo run --json` prints for an example on its input."""
    command = ["run", f"{name}.halo", *arguments, "--input-json", f"{name}.input.json", "--no-input", "--json"]
    code = main(command)
    captured = capsys.readouterr()
    assert code == 0, captured.out + captured.err
    return json.loads(captured.out)


@pytest.mark.parametrize("arguments", RUNS, ids=[name for name, *_ in RUNS])
def test_an_example_runs_on_the_embedded_model(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    name, *rest = arguments
    result = run(capsys, name, *rest, "--model", "local/smollm2")
    assert result["status"] == "completed"
    assert {call["modelUsed"] for call in result["context"]["meta"]["calls"]} == {"local/smollm2"}


def test_a_cassette_of_one_replays_with_the_network_off_to_the_same_hash_chain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(capsys, "research", "--model", "local/smollm2", "--record", "c.jsonl", "--keep")
    assert first["output"].keys() == {"title", "summary", "open_questions"}

    def refuse(*_: object) -> None:
        raise AssertionError("something asks the network, or the model")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("halo_runtime.models.local.LocalModel.complete", refuse)
    again = run(capsys, "research", "--replay", "c.jsonl", "--keep")
    heads: list[str] = []
    for result in (first, again):
        assert main(["verify", result["runId"], "--json"]) == 0
        heads.append(json.loads(capsys.readouterr().out)["head"])
    assert heads[0] == heads[1] == again["context"]["trace"][-1]["hash"]
    assert again["context"]["meta"] == first["context"]["meta"]
