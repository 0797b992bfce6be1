"""Rules and providers that packages bring, from their entry points to what runs come to; the example packages too."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_lang import catalog
from halo_lang.catalog import RuleSpec, Signature
from halo_lang.catalog.packages import POLICY_RULES, Packages
from halo_lang.catalog.registry import Registry
from halo_lang.catalog.rules import RULES
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies import made_by
from halo_runtime.policies.base import ALLOW, Decision, Examined, Finding, Point
from tests.lang.test_catalog_packages import install
from tests.runtime.support import runtime

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "policy_package"

RULE = """
    from halo_lang.catalog import RuleSpec, Signature
    from halo_runtime.policies.base import ALLOW, Decision

    class Polite:
        spec = RuleSpec("Polite", Signature(), ("output",), "The reply is polite.", "Polite")
        points = frozenset({"output"})

        def __init__(self, args):
            pass

        def evaluate(self, examined):
            return ALLOW if "please" in examined.text else Decision("block", "the reply is not polite")
"""
PROVIDER = """
    from halo_lang.catalog import Method, ProviderSpec, Signature

    class Echo:
        spec = ProviderSpec("Echo", Signature(), (Method("say", Signature(), "a word"),), "An echo.", "tool E : Echo")

        def __init__(self, config):
            self.name = config.name

        async def call(self, method, args):
            return f"{self.name} says {method}"

        async def close(self):
            pass
"""
PROGRAM = """
policy Manners : Polite
tool E : Echo
agent Bot [openai/gpt-4o-mini]
  requires Manners
pipeline Main(text: String) -> Result:
  text |> E.say() as echo |> Bot.answer("Say {{echo}}")
"""


def halo(folder: Path, *arguments: str, packages: Path | None = None) -> tuple[int, str, str]:
    """Exit code, output and errors of a command where the packages of a folder (this one) are installed."""
    command = [sys.executable, "-m", "halo_runtime.cli.main", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(packages or folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def run(folder: Path, reply: str, program: str = PROGRAM) -> tuple[int, JsonObject, str]:
    (folder / "main.halo").write_text(program)
    (folder / "replies.json").write_text(json.dumps({"Bot.answer": reply}))
    code, out, told = halo(folder, "run", "main.halo", "-i", "text=x", "--replies", "replies.json", "--json")
    return code, json.loads(out), told


def test_a_packages_rule_and_provider_do_their_work(tmp_path: Path) -> None:
    install(tmp_path, "halo_manners", RULE, "halo.policy_rules: Polite = halo_manners:Polite")
    install(tmp_path, "halo_echo", PROVIDER, "halo.tool_providers: Echo = halo_echo:Echo")
    code, document, _ = run(tmp_path, "please")
    assert (code, document["output"], document["context"]["data"]["echo"]) == (0, "please", "E says say")
    code, document, _ = run(tmp_path, "no")
    assert (code, document["error"]["type"]) == (1, "PolicyViolation")
    assert "policy Manners, rule Polite: the reply is not polite" in document["error"]["message"]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("pass", "the policy rule Polite cannot be made: RuntimeError: no licence"),
        ("self.points = {'everywhere'}", "the policy rule Polite is none: it needs `evaluate` and `points`"),
    ],
)
def test_a_rule_that_cannot_be_made_stops_the_run_before_it_starts(tmp_path: Path, broken: str, reason: str) -> None:
    body = "raise RuntimeError('no licence')" if broken == "pass" else broken
    source = RULE.replace("            pass", f"            {body}")
    install(tmp_path, "halo_manners", source, "halo.policy_rules: Polite = halo_manners:Polite")
    install(tmp_path, "halo_echo", PROVIDER, "halo.tool_providers: Echo = halo_echo:Echo")
    code, document, _ = run(tmp_path, "please")
    assert code == 2
    assert reason in document["error"]["message"]


def test_a_provider_that_cannot_be_opened_stops_the_run_before_it_starts(tmp_path: Path) -> None:
    source = PROVIDER.replace("self.name = config.name", "raise OSError('no such host')")
    install(tmp_path, "halo_manners", RULE, "halo.policy_rules: Polite = halo_manners:Polite")
    install(tmp_path, "halo_echo", source, "halo.tool_providers: Echo = halo_echo:Echo")
    code, document, _ = run(tmp_path, "please")
    assert code == 2
    assert "tool E: the provider Echo cannot be opened: OSError: no such host" in document["error"]["message"]


def test_a_broken_package_stops_no_program_that_does_not_need_it(tmp_path: Path) -> None:
    install(tmp_path, "halo_manners", "raise ImportError('broken')", "halo.policy_rules: Polite = halo_manners:Polite")
    install(tmp_path, "halo_echo", PROVIDER, "halo.tool_providers: Echo = halo_echo:Echo")
    program = PROGRAM.replace("policy Manners : Polite\n", "").replace("  requires Manners\n", "")
    assert run(tmp_path, "yes", program)[:1] == (0,)
    code, document, _ = run(tmp_path, "please")
    assert code == 2
    assert "halo_manners: ImportError: broken" in json.dumps(document)


# --- the example package ----------------------------------------------------------------------------------------


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example, installed as its `pyproject.toml` says."""
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "example"))
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    groups = project["entry-points"].items()
    points = [f"{group}: {name} = {value}" for group, found in groups for name, value in found.items()]
    install(folder, "halo_house_rules", (folder / "halo_house_rules.py").read_text("utf-8"), *points)
    return folder


def test_the_example_package_runs_its_program(example: Path) -> None:
    text = "text=project Ph\u200boenix is late, so is Blue%20Sky"
    code, out, _ = halo(example, "run", "memo.halo", "-i", text, "--replies", "memo.replies.json", "--json")
    document = json.loads(out)
    assert (code, document["output"]) == (0, "To all: [PROJECT_1] is late.")
    sent = document["context"]["meta"]["calls"][0]["messages"][0]["content"]
    assert "project [PROJECT_1] is late, so is [PROJECT_2]" in sent


def test_the_example_package_is_known_to_the_checks(example: Path) -> None:
    assert halo(example, "check", "memo.halo")[0] == 0
    (example / "memo.halo").write_text((example / "memo.halo").read_text().replace('"Phoenix", "Blue Sky"', ""))
    assert "HL302" in halo(example, "check", "memo.halo")[1]


# --- rules of a program that embeds Halo ------------------------------------------------------------------------


class Shouting:
    """A rule that a test plays: `decides` is what it says of a text."""

    points: frozenset[Point] = frozenset({"input", "output"})

    def __init__(self, decides: Any) -> None:
        self._decides = decides

    def evaluate(self, examined: Examined) -> Decision:
        if isinstance(self._decides, Exception):
            raise self._decides
        return self._decides


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule Calm, in a catalogue of this test's own: what is registered stays for good."""
    calm = RuleSpec("Calm", Signature(), ("input", "output"), "No shouting.", "Calm")
    registry = Registry("policy rule", (*RULES, calm))
    monkeypatch.setattr(catalog, "_rules", Packages(POLICY_RULES, RuleSpec, registry))


def embedded(decides: Any) -> Any:
    world = runtime({"Bot.answer": "fine"})
    world.register_policy_rule("Calm", lambda args: Shouting(decides))
    text = (
        "policy P : Calm\nagent Bot [openai/gpt-4o-mini]\n  requires P\n"
        "pipeline Main(text: String) -> Result:\n  text |> Bot.answer()\n"
    )
    return asyncio.run(world.run(halo_lang.parse(text), "Main", {"text": "x"}))


def test_a_registered_rule_decides() -> None:
    assert embedded(ALLOW).output == "fine"
    assert "policy P, rule Calm: too loud" in str(embedded(Decision("block", "too loud")).error)


@pytest.mark.parametrize(
    "decides",
    [
        None,
        True,
        "block",
        Decision("deny"),  # pyright: ignore[reportArgumentType]
        Decision("approve", "asks nobody here"),
        Decision("redact", None, (Finding("X", 5, 900, "x"),)),
        Decision("redact", None, (Finding("X", -1, 1, "x"),)),
        Decision("redact", None, (Finding("](x", 0, 1, "x"),)),
        Decision("allow", restore=frozenset({"("})),
        ZeroDivisionError("a secret text"),
        RecursionError(),
    ],
)
def test_a_rule_whose_decision_cannot_be_carried_out_blocks(decides: Any) -> None:
    result = embedded(decides)
    assert type(result.error).__name__ == "PolicyViolation"
    assert "policy P, rule Calm: the rule itself failed" in str(result.error)
    assert "a secret text" not in str(result.error)


def test_a_name_that_is_registered_is_taken() -> None:
    world = runtime({})
    world.register_policy_rule("Calm", lambda args: Shouting(ALLOW))
    with pytest.raises(ValueError, match="Calm is registered already"):
        world.register_policy_rule("Calm", lambda args: Shouting(ALLOW))


def test_what_a_factory_makes_must_be_a_rule() -> None:
    with pytest.raises(ConfigError, match="Calm cannot be made: AttributeError"):
        made_by("Calm", lambda args: None, {})  # pyright: ignore[reportArgumentType, reportReturnType]


def test_a_rule_of_the_catalogue_that_nobody_makes_stops_the_run_before_it_starts() -> None:
    text = (
        "policy P : Calm\nagent Bot [openai/gpt-4o-mini]\n  requires P\npipeline Main(x: Any) -> Any: x |> Bot.go()\n"
    )
    with pytest.raises(ConfigError, match=r'register_policy_rule\("Calm", …\)'):
        asyncio.run(runtime({}).run(halo_lang.parse(text), "Main", {"x": 1}))
