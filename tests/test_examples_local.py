"""Examples on the embedded model: they come to their end without a reply file, and a cassette of one replays."""

from __future__ import annotations

import json
import re
import shutil
import socket
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from halo_runtime.json_types import JsonObject

pytestmark = pytest.mark.local

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RUNS = [
    ("support_triage",),
    ("review_with_approval", "--answer", "decision=publish"),
    ("label_each",),
    ("minutes",),
    ("tour", "Tour", "--answer", "answer=yes", "--answer", "printer=LP-1"),
]
_AGENT = re.compile(r"^(agent \w+ \[)[^,\]]+", re.MULTILINE)


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")


def limited(name: str, tokens: int, but: str = "") -> None:
    """Let the agents of an example, all `but` one, answer with few tokens: the test is about the way, not the words."""
    path = Path(f"{name}.halo")
    text = path.read_text().replace(", max_tokens: 40", "")
    path.write_text(_AGENT.sub(lambda found: _with_limit(found, tokens, but), text))


def _with_limit(found: re.Match[str], tokens: int, but: str) -> str:
    return found[0] if but and but in found[1] else f"{found[0]}, max_tokens: {tokens}"


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
    limited(name, 12)
    result = run(capsys, name, *rest, "--model", "local/smollm2")
    assert result["status"] == "completed"
    assert {call["modelUsed"] for call in result["context"]["meta"]["calls"]} == {"local/smollm2"}


def test_a_cassette_of_one_replays_with_the_network_off_to_the_same_hash_chain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited("research", 12, but="Editor")  # whose answer must fit a schema
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
