"""Providers that packages bring: the example package, and the page that says how to write one."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.lang.test_catalog_packages import install
from tests.policies.test_packages import halo

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "tool_package"


def entry_points(project: str) -> list[str]:
    groups = tomllib.loads(project)["project"]["entry-points"].items()
    return [f"{group}: {name} = {value}" for group, found in groups for name, value in found.items()]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example, installed as its `pyproject.toml` says."""
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "example"))
    points = entry_points((folder / "pyproject.toml").read_text("utf-8"))
    install(folder, "halo_timesheet", (folder / "halo_timesheet.py").read_text("utf-8"), *points)
    return folder


def run(folder: Path) -> tuple[int, str]:
    text = "text=Reviewed for an hour and a half"
    code, out, told = halo(folder, "run", "week.halo", "-i", text, "--replies", "week.replies.json", "--json")
    document = json.loads(out)
    return code, document.get("output") or document["error"]["message"] + told


def test_the_example_package_does_its_work_and_keeps_it(example: Path) -> None:
    assert run(example) == (0, "1.5 hours today, 1.5 on review in all")
    assert run(example) == (0, "3 hours today, 3 on review in all")
    assert (example / "hours.csv").read_text() == "2026-11-30,1.5,review\n" * 2


def test_the_example_package_is_known_everywhere(example: Path) -> None:
    assert halo(example, "check", "week.halo")[0] == 0
    assert "Timesheet" in halo(example, "providers")[1]
    assert 'Hours.add("2026-11-30", 1.5, "review")' in halo(example, "providers", "Timesheet")[1]
    run(example)
    assert "ok      store Hours : Timesheet: 1 entries in hours.csv" in halo(example, "doctor", "week.halo")[1]


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ({"day": "30.11.2026", "hours": 1, "task": "x"}, 'a day is written YYYY-MM-DD, not "30.11.2026"'),
        ({"day": "2026-11-30", "hours": 25, "task": "x"}, "hours"),
    ],
)
def test_the_example_package_refuses_what_it_cannot_do(example: Path, work: object, said: str) -> None:
    (example / "week.replies.json").write_text(json.dumps({"Clerk.read": work}))
    code, message = run(example)
    assert code == 1
    assert said in message
    assert not (example / "hours.csv").exists()


def test_a_file_that_is_no_timesheet_is_left_alone(example: Path) -> None:
    (example / "hours.csv").write_text("a letter\n")
    code, message = run(example)
    assert code == 1
    assert "hours.csv is no timesheet that can be read" in message


def test_a_declaration_that_cannot_work_is_refused_before_the_run(example: Path) -> None:
    program = (example / "week.halo").read_text("utf-8").replace("hours.csv", "hours.xls")
    (example / "week.halo").write_text(program)
    code, message = run(example)
    assert code == 2
    assert 'store Hours: a timesheet is a .csv file, and "hours.xls" is none' in message


def test_a_provider_written_as_its_page_says_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "providers.md").read_text("utf-8")
    blocks = dict(reversed(re.findall(r"^```(\w+)[^\n]*\n(.*?)^```$", page, re.M | re.S)))  # the first of each language
    install(tmp_path, "halo_dice", blocks["python"], *entry_points(blocks["toml"]))
    (tmp_path / "game.halo").write_text(blocks["halo"])
    (tmp_path / "game.replies.json").write_text(blocks["json"])
    code, out, told = halo(tmp_path, *blocks["sh"].split()[1:])
    assert (code, out.strip()) == (0, "The dice have spoken."), told
    assert halo(tmp_path, "check", "game.halo")[0] == 0
    (tmp_path / "game.halo").write_text(blocks["halo"].replace("sides: 2", "sides: 101"))
    code, _, told = halo(tmp_path, *blocks["sh"].split()[1:])
    assert code == 2
    assert "nobody makes dice with 101 sides" in told
