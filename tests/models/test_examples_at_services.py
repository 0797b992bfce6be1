"""Examples by `halo run` at every service's strict fake, which takes each of their requests.

Replies that are streamed are told as they come; those that are not, are not.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from halo_runtime.json_types import JsonObject
from tests.fakes.services import SERVICES, Kit, Turn, texts

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

every_service = pytest.mark.parametrize("kit", SERVICES, ids=lambda kit: kit.name)
with_tools = pytest.mark.parametrize("kit", [kit for kit in SERVICES if kit.tool_model], ids=lambda kit: kit.name)
in_both_ways = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])

REPORT = {"title": "Wärmepumpen 😀", "summary": "They work.", "open_questions": ["What does it cost?"]}
AGENTS = ["Planner", "Researcher", "Researcher", "Skeptic", "Editor"]
RESEARCH = (
    *map(Turn, ("A question?", "Facts.", "Figures.", "Objections.")),
    Turn(json.dumps(REPORT, ensure_ascii=False)),
)
BOOKED = {"booked": ["bell"], "summary": "There are 40404 bells."}
RESTOCK = (
    Turn("I look.", calls=(("Stock_get", {"key": "bell"}), ("Stock_get", {"key": "Schläuche"}))),
    Turn(calls=(("Stock_set", {"key": "bell", "value": 40404}),)),
    Turn(json.dumps(BOOKED)),
)


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("research", "restock"):
        for file in EXAMPLES.glob(f"{name}.*"):
            shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)


async def run(name: str, model: str, env: dict[str, str], narration: str) -> tuple[JsonObject, str]:
    """What `halo run --json` prints for an example, and all the text that it told while replies streamed."""
    halo = Path(sys.executable).with_name("halo")
    command = ["run", f"{name}.halo", "--input-json", f"{name}.input.json", "--model", model, "--json", narration]
    process = await asyncio.create_subprocess_exec(
        halo, *command, env={**os.environ, **env}, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (out + err).decode()
    events = map(json.loads, err.decode().splitlines())
    return json.loads(out), "".join(event["text"] for event in events if event["type"] == "model_delta")


@every_service
@in_both_ways
async def test_a_report_is_made_of_three_findings(kit: Kit, streams: bool) -> None:
    async with kit.start() as server:
        kit.order(server, *RESEARCH, streams=streams)
        result, told = await run("research", kit.model, kit.env(server), "--events" if streams else "--quiet")
        sent = texts(server.requests)
    assert result["output"] == REPORT
    assert [call["agent"] for call in result["context"]["meta"]["calls"]] == AGENTS
    assert json.dumps(REPORT, ensure_ascii=False) in told or not streams
    assert sum("Objections." in text and "open_questions" in text for text in sent) == 1


@with_tools
@in_both_ways
async def test_a_delivery_is_booked_with_the_tools_that_the_model_chooses(kit: Kit, streams: bool) -> None:
    assert kit.tool_model is not None
    async with kit.start() as server:
        kit.order(server, *RESTOCK, streams=streams)
        result, told = await run("restock", kit.tool_model, kit.env(server), "--events" if streams else "--quiet")
        assert len(server.requests) == 3
    assert result["output"] == BOOKED
    assert told.endswith(json.dumps(BOOKED)) if streams else not told
    [call] = result["context"]["meta"]["calls"]
    assert [tool["result"] for tool in call["tools"]] == [None, None, 40404]
