"""Providers and rules that installed packages bring: known once they are asked for, and harmless when broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent

import pytest

from halo_lang.catalog import Method, ProviderSpec, Signature
from halo_lang.catalog.packages import Packages
from halo_lang.catalog.registry import Registry

KV = ProviderSpec("KV", Signature(), (Method("get", Signature(), "a value"),), "A store.", "store A : KV")

JIRA = """
    from halo_lang.catalog import Method, ProviderSpec, Signature
    from halo_lang.catalog.signature import required

    class Provider:
        spec = ProviderSpec(
            "Jira",
            Signature((required("url", "string", "Where it is."),)),
            (Method("find", Signature((required("text", "string", "What to look for."),)), "the issues"),),
            "Issues of Jira.",
            'tool Tracker : Jira("https://jira.example.org")',
        )
"""
RULE = """
    from halo_lang.catalog import RuleSpec, Signature

    class Polite:
        spec = RuleSpec("Polite", Signature(), ("output",), "The reply is polite.", "Polite")
"""
PROGRAM = """
policy Manners : Polite
tool Tracker : Jira("https://jira.example.org")
agent Clerk [openai/gpt-4o-mini]
  requires Manners
pipeline Look(text: String) -> Result:
  text |> Tracker.find(text) |> Tracker.fnd(text) |> Clerk.answer()
"""


def install(folder: Path, package: str, source: str, *points: str) -> None:
    """A package as an installer would leave it: a module, and metadata with entry points (`group: name = value`)."""
    (folder / f"{package}.py").write_text(dedent(source))
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    groups: dict[str, list[str]] = {}
    for point in points:
        group, _, line = point.partition(": ")
        groups.setdefault(group, []).append(line)
    sections = (f"[{group}]\n" + "\n".join(lines) for group, lines in groups.items())
    (info / "entry_points.txt").write_text("\n".join(sections) + "\n")


def check(folder: Path, program: str) -> list[tuple[str, str, str]]:
    """Code, message and hint of what `halo check` finds where the packages of `folder` are installed."""
    (folder / "main.halo").write_text(program)
    command = [sys.executable, "-m", "halo_runtime.cli.main", "check", "--json", "main.halo"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    (file,) = json.loads(done.stdout)["files"]
    return [(found["code"], found["message"], found["hint"] or "") for found in file["diagnostics"]]


def test_a_packages_provider_and_rule_are_known_to_the_checks(tmp_path: Path) -> None:
    install(tmp_path, "halo_jira", JIRA, "halo.tool_providers: Jira = halo_jira:Provider")
    install(tmp_path, "halo_manners", RULE, "halo.policy_rules: Polite = halo_manners:Polite")
    (found,) = check(tmp_path, PROGRAM)
    assert found[:2] == ("HL301", "Tracker (Jira) has no method `fnd`")
    assert found[2].startswith("did you mean `find`?")


def test_without_the_package_its_names_are_unknown(tmp_path: Path) -> None:
    assert [code for code, *_ in check(tmp_path, PROGRAM)] == ["HL304", "HL304"]


def test_a_broken_package_is_named_where_it_is_missed_and_stops_no_other(tmp_path: Path) -> None:
    install(tmp_path, "halo_jira", "raise RuntimeError('no licence')", "halo.tool_providers: Jira = halo_jira:Provider")
    install(tmp_path, "halo_manners", RULE, "halo.policy_rules: Polite = halo_manners:Polite")
    ((code, message, hint),) = check(tmp_path, PROGRAM)
    assert (code, message) == ("HL304", "the provider `Jira` cannot be loaded")
    assert hint.endswith("halo_jira: RuntimeError: no licence")


# --- one group


def packages(*points: EntryPoint) -> Packages[ProviderSpec]:
    return Packages("halo.tool_providers", ProviderSpec, Registry("provider", [KV]), lambda _: points)


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "halo.tool_providers")


def test_entry_points_are_not_even_looked_for_while_all_names_are_known() -> None:
    looked: list[str] = []

    def find(group: str) -> list[EntryPoint]:
        looked.append(group)
        return []

    group = Packages("halo.tool_providers", ProviderSpec, Registry("provider", [KV]), find)
    assert group.get("KV") is KV
    assert looked == []
    assert (group.get("Jira"), group.get("Other")) == (None, None)
    assert looked == ["halo.tool_providers"]


def test_only_what_is_asked_for_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one_of_two.py").write_text(dedent(JIRA))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    group = packages(point("Jira", "one_of_two:Provider"), point("Other", "not_there:Provider"))
    jira = group.get("Jira")
    assert jira is not None
    assert jira.doc == "Issues of Jira."
    assert getattr(group.object("Jira"), "spec", None) is jira
    assert group.broken == ()
    assert group.all().names == ("KV", "Jira")
    assert [(one.name, one.package) for one in group.broken] == [("Other", "not_there")]


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([("KV", "taken:Provider")], "ValueError: its entry point is called KV and its `spec` Jira"),
        ([("Jira", "taken:Provider.spec")], "TypeError: `taken:Provider.spec` has no `spec` that is a ProviderSpec"),
        ([("Jira", "taken:Nothing")], "AttributeError: module 'taken' has no attribute 'Nothing'"),
        (
            [("Jira", "taken:Provider"), ("Jira", "taken:Provider ")],
            "ValueError: the provider Jira exists already; give yours another name",
        ),
    ],
)
def test_what_does_not_fit_is_left_out_with_a_reason(
    points: list[tuple[str, str]], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken.py").write_text(dedent(JIRA))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    group = packages(*(point(name, value) for name, value in points))
    assert group.all().get("KV") is KV
    assert [one.reason for one in group.broken] == [reason]


def test_a_packages_entry_cannot_take_the_place_of_a_built_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "usurper.py").write_text(dedent(JIRA).replace('"Jira"', '"KV"'))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    group = packages(point("KV", "usurper:Provider"))
    assert group.all().get("KV") is KV
    assert [one.reason for one in group.broken] == [
        "ValueError: the provider KV exists already; give yours another name"
    ]
