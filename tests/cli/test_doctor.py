"""`halo doctor`: what is wrong with an installation and with what programs declare, found without doing harm."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import halo_lang
from halo_lang import catalog
from halo_lang.catalog import ProviderSpec, Signature
from halo_lang.catalog.packages import TOOL_PROVIDERS, Packages
from halo_lang.catalog.providers import PROVIDERS
from halo_lang.catalog.registry import Registry
from halo_runtime.cli.main import main
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.probing import Probe
from halo_runtime.runtime import Runtime
from halo_runtime.tools.base import ToolConfig
from tests.fakes.github_documents import REPO
from tests.fakes.github_server import TOKEN, FakeGitHub, refusal

Captured = pytest.CaptureFixture[str]

AGENT = "agent Bot [openai/gpt-4o-mini]\n"
MAIN = "pipeline Main(text: String) -> Any:\n  text |> Bot.answer()\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def doctor(capsys: Captured, *arguments: str) -> tuple[int, str]:
    code = main(["doctor", *arguments])
    return code, capsys.readouterr().out


def used(*declarations: str) -> str:
    """A program that declares tools."""
    return "".join(f"{line}\n" for line in declarations) + AGENT + MAIN


async def probes(text: str, env: Mapping[str, str] | None = None, seconds: float = 10.0) -> dict[str, Probe]:
    """What is found of each part but the agent, by its declared name."""
    runtime = Runtime(env=env or {})
    try:
        found = await runtime.probe(halo_lang.parse(text), seconds=seconds)
    finally:
        await runtime.close()
    return {probe.part.split()[1]: probe for probe in found if probe.part.startswith(("tool", "store"))}


def test_of_an_installation_it_tells_versions_extras_and_where_runs_are_kept(capsys: Captured) -> None:
    code, out = doctor(capsys)
    assert code == 0
    assert [line.split(":")[0].split()[-1] for line in out.splitlines()] == ["halo", "extras", "halo.toml", "runs"]
    assert f"kept in {Path.cwd()}/.halo, which is made when needed" in out


def test_a_key_that_is_set_is_enough_for_a_model(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("p.halo").write_text(AGENT + MAIN)
    code, out = doctor(capsys, "p.halo")
    assert code == 1
    assert "failed  agent Bot [openai/gpt-4o-mini]: OPENAI_API_KEY is not set; set it, or run without a key:" in out
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    code, out = doctor(capsys, "p.halo")
    assert (code, "sk-not-to-be-seen" in out) == (0, False)
    assert "ok      agent Bot [openai/gpt-4o-mini]: what it needs is there" in out


def test_variables_may_come_from_a_file(capsys: Captured) -> None:
    Path("p.halo").write_text(AGENT + MAIN)
    Path("my.env").write_text("OPENAI_API_KEY=sk-not-to-be-seen\n")
    assert doctor(capsys, "p.halo", "--env-file", "my.env")[0] == 0


def test_local_tools_are_looked_at_and_nothing_is_made() -> None:
    Path("room").mkdir()
    Path("room/a.md").write_text("# A")
    text = used(
        'tool Desk : Workspace("room")', 'tool Later : Workspace("later", write: true)',
        'tool Gone : Workspace("gone")', 'store Papers : Documents("room")',
        'store Memory : KV("memory.db")', 'store Lost : KV("none/memory.db")',
        'store Chat : File("chat.jsonl")', 'tool Shell : Bash(allow: ["cat", "no-such-command"])',
    )  # fmt: skip
    found = asyncio.run(probes(text))
    assert found["Desk"].found == "the folder room, which may be read: 1 entries"
    assert found["Later"].found == "the folder later is made by the first change"
    assert "there is no folder gone; create it" in str(found["Gone"].problem)
    assert found["Papers"].found == "the folder room: 1 documents"
    assert found["Memory"].found == "memory.db is made when the first value is set"
    assert "the folder none does not exist" in str(found["Lost"].problem)
    assert found["Chat"].found == "chat.jsonl is made when the first turn is kept"
    assert "not on the PATH: no-such-command; install" in str(found["Shell"].problem)
    assert sorted(path.name for path in Path().iterdir()) == ["room"]


async def test_a_service_is_asked_for_something_harmless() -> None:
    async with FakeGitHub() as server:
        text = used(f'tool Repo : GitHub(Env.MY_TOKEN, repo: "{REPO}", baseUrl: "{server.url}")')
        found = await probes(text, {"MY_TOKEN": TOKEN})
        assert found["Repo"].found == f"{REPO}, which the token may change"
        assert [request.method for request in server.requests] == ["GET"]
    async with FakeGitHub(refusals_expected=True) as server:
        server.answer(refusal(401, f"Bad credentials {TOKEN}"))
        text = used(f'tool Repo : GitHub(Env.MY_TOKEN, repo: "{REPO}", baseUrl: "{server.url}")')
        problem = (await probes(text, {"MY_TOKEN": TOKEN}))["Repo"].problem or ""
        assert "Bad credentials" in problem
        assert TOKEN not in problem


async def test_a_variable_that_is_missing_is_named() -> None:
    found = await probes(used("tool Repo : GitHub(Env.MY_TOKEN)"))
    assert found["Repo"].problem == ("the environment variable MY_TOKEN is not set; set it, or name it with --env-file")


async def test_an_address_that_nobody_listens_at_and_a_private_one_are_told_apart() -> None:
    text = used(
        'tool Api : REST("http://127.0.0.1:1", allowHosts: ["127.0.0.1"])', 'tool Own : REST("http://10.0.0.1")'
    )
    found = await probes(text)
    assert "127.0.0.1:1 cannot be reached" in str(found["Api"].problem)
    assert "allowHosts" in str(found["Own"].problem)


class Stranger:
    """A package's tool: what it does when it is tried is each test's."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.closed = False

    async def call(self, method: str, args: JsonObject) -> Json:
        raise AssertionError("only tried")

    async def close(self) -> None:
        self.closed = True

    async def probe(self) -> str:
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return str(self.answer)


class Untriable:
    async def call(self, method: str, args: JsonObject) -> Json:
        raise AssertionError("only tried")

    async def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stranger's provider, in a catalogue of this test's own: what is registered stays for good."""
    stranger = ProviderSpec("Stranger", Signature(), (), "A stranger's.", "tool S : Stranger()")
    registry = Registry("provider", (*PROVIDERS, stranger))
    monkeypatch.setattr(catalog, "_providers", Packages(TOOL_PROVIDERS, ProviderSpec, registry))


async def tried(tool: object, seconds: float = 10.0) -> Probe:
    def factory(config: ToolConfig) -> object:
        if isinstance(tool, ConfigError):
            raise tool
        return tool

    runtime = Runtime(env={"SOME_TOKEN": "not-to-be-seen"})
    runtime.register_tool_provider("Stranger", factory)  # pyright: ignore[reportArgumentType]
    (probe,) = await runtime.probe(halo_lang.parse("tool S : Stranger()\npipeline Main() -> Any: 1\n"), seconds=seconds)
    return probe


async def test_a_tool_of_a_package_can_be_tried_too() -> None:
    tool = Stranger("all there, not-to-be-seen")
    assert (await tried(tool)).found == "all there, [REDACTED]"
    assert tool.closed


async def test_one_that_cannot_be_tried_is_neither_right_nor_wrong() -> None:
    probe = await tried(Untriable())
    assert (probe.found, probe.problem) == (None, None)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (ZeroDivisionError("not-to-be-seen"), "S failed inside its provider: ZeroDivisionError: [REDACTED]"),
        (None, "did not answer within 0.001 s"),
    ],
)
async def test_one_that_fails_or_hangs_does_not_stop_the_others(answer: object, problem: str) -> None:
    tool = Stranger(answer)
    assert (await tried(tool, seconds=0.001 if answer is None else 10.0)).problem == problem
    assert tool.closed


async def test_one_that_cannot_be_opened_says_why() -> None:
    assert (await tried(ConfigError("no such thing"))).problem == "no such thing"


def test_a_store_of_runs_that_cannot_be_made_is_told(capsys: Captured) -> None:
    Path(".halo").write_text("in the way")
    code, out = doctor(capsys)
    assert code == 1
    assert "failed  runs: " in out
    assert ".halo is no folder, so runs cannot be kept" in out


def test_a_project_file_with_errors_is_told(capsys: Captured) -> None:
    Path("halo.toml").write_text("models = 3\n")
    code, out = doctor(capsys)
    assert code == 1
    assert "failed  halo.toml: " in out


def test_a_program_with_errors_is_refused_as_everywhere(capsys: Captured) -> None:
    Path("p.halo").write_text("tool X : Nothing()\n")
    assert main(["doctor", "p.halo"]) == 2
    assert "HL304" in capsys.readouterr().err


def test_programs_get_objects(capsys: Captured) -> None:
    Path("p.halo").write_text(used('store Memory : KV("memory.db")'))
    code, out = doctor(capsys, "p.halo", "--json")
    document = json.loads(out)
    assert code == 1
    (file,) = document["files"]
    assert [part["ok"] for part in file["parts"]] == [False, True]
    found = "memory.db is made when the first value is set"
    assert file["parts"][1] == {"part": "store Memory : KV", "ok": True, "found": found, "problem": None}
    assert [part["part"] for part in document["installation"]] == ["halo", "extras", "halo.toml", "runs"]
