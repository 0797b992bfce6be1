"""The pages about rules are those of the catalogue: every rule has its section, every example can be enforced."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from halo_lang import catalog, check, parse
from halo_lang.catalog.rules import RULES
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.policies import bind_policies
from tests.lang.test_catalog_packages import install
from tests.policies.test_packages import halo

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference" / "policies.md").read_text("utf-8")
RULE_NAMES = [rule.name for rule in RULES]


def section(rule: str) -> str:
    """What stands under a rule's heading."""
    found = re.search(rf"^## {rule}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found is not None, f"docs/reference/policies.md has no section {rule}"
    return found[1]


@pytest.mark.parametrize("name", RULE_NAMES)
def test_every_rule_has_a_section_with_its_points_and_arguments(name: str) -> None:
    spec, text = catalog.rule(name), section(name)
    assert spec is not None
    points = re.search(r"^- Points: ([^.;]*)", text, re.M)
    assert points is not None
    assert points[1].split(", ") == list(spec.points)
    for parameter in spec.signature.parameters:
        assert not parameter.named_only or f"`{parameter.name}" in text, parameter.name
    if spec.extra is not None:
        assert f"extra `{spec.extra}`" in text


@pytest.mark.parametrize("name", RULE_NAMES)
def test_every_example_of_a_rule_can_be_enforced(name: str) -> None:
    examples = re.findall(r"^```halo\n(.*?)^```$", section(name), re.M | re.S)
    assert examples
    assert f" {name}" in "".join(examples)
    for example in examples:
        program = parse(example)
        assert [error.message for error in check(program).errors] == []
        policies = re.findall(r"^policy (\w+)", example, re.M)
        bound, problems = bind_policies(Plan(program), policies, {})
        assert problems == []
        assert sorted(bound) == sorted(policies)


def test_the_page_has_no_rule_that_the_catalogue_has_not() -> None:
    headings = re.findall(r"^## (\S+)$", PAGE, re.M)
    assert headings == [name for name in headings if name in RULE_NAMES]


def test_a_rule_written_as_its_page_says_works(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "rules.md").read_text("utf-8")
    blocks = dict(reversed(re.findall(r"^```(\w+)[^\n]*\n(.*?)^```$", page, re.M | re.S)))  # the first of each language
    groups = tomllib.loads(blocks["toml"])["project"]["entry-points"].items()
    points = [f"{group}: {name} = {value}" for group, found in groups for name, value in found.items()]
    install(tmp_path, "halo_manners", blocks["python"], *points)
    (tmp_path / "letter.halo").write_text(blocks["halo"])
    (tmp_path / "letter.replies.json").write_text(blocks["json"])
    command = blocks["sh"].replace('"a reminder"', "reminder").split()
    code, out, told = halo(tmp_path, *command[1:])
    assert (code, out.strip()) == (0, "Please pay now."), told
    assert halo(tmp_path, "check", "letter.halo")[0] == 0
