"""`halo models`: what each service needs, and whether it answers; and what `halo run` says where a key is missing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from halo_runtime.json_types import JsonObject
from tests.fakes.ollama_server import FakeOllama
from tests.fakes.openai_server import KEY, FakeOpenAI
from tests.fakes.services import SERVICES, Kit
from tests.fakes.wire import Answer, reply

Captured = pytest.CaptureFixture[str]

every_service = pytest.mark.parametrize("kit", SERVICES, ids=lambda kit: kit.name)
keyed = pytest.mark.parametrize(
    "kit", [kit for kit in SERVICES if not kit.name.startswith("ollama")], ids=lambda kit: kit.name
)


def prefix(kit: Kit) -> str:
    """The name of a kit's service in the list."""
    return kit.model.partition("/")[0]


async def halo(capsys: Captured, *arguments: str) -> tuple[int, str]:
    """The exit code and the output of a command, run beside the servers of this event loop."""
    code = await asyncio.to_thread(main, arguments)
    return code, capsys.readouterr().out


def found(output: str, name: str) -> JsonObject:
    """What is said of one service."""
    (service,) = (one for one in json.loads(output)["services"] if one["service"] == name)
    return service


def set_all(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@every_service
async def test_a_service_that_answers_has_models(kit: Kit, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    async with kit.start() as server:
        set_all(monkeypatch, kit.env(server))
        code, output = await halo(capsys, "models", "--check", "--json")
        service = found(output, prefix(kit))
    assert (code, service["ok"], service["error"]) == (0, True, None)
    assert service["models"]
    assert kit.key not in output


@keyed
async def test_a_wrong_key_is_a_failure_that_names_its_variable(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    async with kit.start(refusals_expected=True) as server:
        set_all(monkeypatch, kit.env(server, **{kit.key_variable: "wrong-0123456789"}))
        code, output = await halo(capsys, "models", "--check")
    (line,) = (line for line in output.splitlines() if line.startswith("failed"))
    assert code == 1
    assert kit.key_variable in line
    assert "wrong-0123456789" not in output


async def test_one_that_hangs_holds_up_no_other_and_fails_in_time(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    async with FakeOpenAI() as hangs, FakeOllama() as answers:
        hangs.answer(Answer(hang=True))
        set_all(monkeypatch, {"OPENAI_BASE_URL": hangs.url, "OPENAI_API_KEY": KEY, "OLLAMA_HOST": answers.host})
        code, output = await halo(capsys, "models", "--check", "--timeout", "300ms")
    assert code == 1
    assert "failed  openai/: did not answer within 0.3 s" in output
    assert "ok      ollama/: 2 models" in output


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (reply({"data": "many"}), "answered without a list of its models"),
        (reply("none"), "answered without a list of its models"),
        (Answer(body=b"<html>", content_type="text/html"), "instead of JSON"),
    ],
)
async def test_an_answer_that_is_no_list_is_a_failure(
    answer: Answer, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    async with FakeOpenAI() as server:
        server.answer(answer)
        set_all(monkeypatch, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY})
        code, output = await halo(capsys, "models", "--check", "--json")
    assert code == 1
    assert reason in found(output, "openai")["error"]["message"]


def test_services_that_nobody_has_configured_are_no_failure(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("halo_runtime.models.ollama.DEFAULT_PORT", 1)  # where no Ollama listens
    assert main(["models", "--check"]) == 0
    output = capsys.readouterr().out
    assert "absent  openai/: OPENAI_API_KEY is not set" in output
    assert "absent  ollama/: Ollama (127.0.0.1:1) cannot be reached" in output


def test_the_list_tells_what_is_set_and_where_it_leads_and_no_secret(capsys: Captured) -> None:
    Path("keys.env").write_text("GEMINI_API_KEY=AIza-0123456789\nOPENAI_BASE_URL=http://me:pw12@127.0.0.1:8080\n")
    assert main(["models", "--env-file", "keys.env"]) == 0
    output = capsys.readouterr().out
    lines = {line.split()[0]: line for line in output.splitlines()}
    assert "http://127.0.0.1:8080/v1 (from OPENAI_BASE_URL)" in lines["openai/"]
    assert "GEMINI_API_KEY is set" in lines["google/"]
    assert "ANTHROPIC_API_KEY is not set" in lines["anthropic/"]
    assert "in this process" in lines["local/smollm2"]
    assert "0123456789" not in output
    assert "pw12" not in output


def test_the_list_has_a_shape_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-0123456789")
    assert main(["models", "--json"]) == 0
    google = found(capsys.readouterr().out, "google")
    assert google | {"known": []} == {
        "service": "google",
        "prefixes": ["google", "gemini"],
        "keyVariables": ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        "keysSet": ["GOOGLE_API_KEY"],
        "baseUrl": "https://generativelanguage.googleapis.com/v1beta",
        "baseUrlVariable": "GOOGLE_GEMINI_BASE_URL",
        "baseUrlFrom": None,
        "configured": True,
        "known": [],
    }
    assert "google/gemini-2.5-flash" in google["known"]


# --- a run without its key ----------------------------------------------------------------------------------


@keyed
@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_without_its_key_says_which_and_how_to_go_on_before_anything_is_sent(
    kit: Kit, as_json: bool, capsys: Captured
) -> None:
    Path("p.halo").write_text(
        f"agent Bot [{kit.model}]\npipeline Main(x: String) -> Result: x |> System.Print() |> Bot.go()\n"
    )
    assert main(["run", "p.halo", "-i", "x=1", *(["--json"] if as_json else [])]) == 2
    captured = capsys.readouterr()
    said = json.loads(captured.out)["error"]["message"] if as_json else captured.err
    assert f"{kit.model}: {kit.key_variable} is not set" in said
    assert "--replies FILE" in said
    assert "--model local/smollm2" in said
    assert "line 2" not in captured.err  # no stage has begun


def test_all_keys_that_are_missing_are_named_at_once(capsys: Captured) -> None:
    agents = "agent A [openai/gpt-4o]\nagent B [claude-haiku-4-5]\n"
    Path("p.halo").write_text(f"{agents}pipeline Main(x: String) -> Result: x |> A.go() |> B.go()\n")
    assert main(["run", "p.halo", "-i", "x=1"]) == 2
    said = capsys.readouterr().err
    assert "OPENAI_API_KEY is not set" in said
    assert "ANTHROPIC_API_KEY is not set" in said


@pytest.mark.parametrize("form", [(), ("--json",), ("--check",)], ids=["table", "json", "check"])
async def test_a_key_within_an_address_is_not_shown(
    form: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    set_all(monkeypatch, {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"http://127.0.0.1:1/{KEY}/v1"})
    _, said = await halo(capsys, "models", *form)
    assert "127.0.0.1:1" in said
    assert KEY not in said


@pytest.mark.parametrize("name", ["", " ", "openai/", "nowhere/x"])
def test_a_name_of_no_model_starts_nothing(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    set_all(monkeypatch, {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:1"})
    Path("p.halo").write_text("agent Bot [openai/gpt-4o]\npipeline Main() -> Result:\n  |> Bot.go()\n")
    assert main(["run", "p.halo", "--model", name]) == 2
    assert f'the model "{name}" names no service' in capsys.readouterr().err
