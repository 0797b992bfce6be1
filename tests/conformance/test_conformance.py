"""The conformance kit beside the repository, where there is one: what passes must pass, what does not is listed.

`pending.txt` names the cases that need parts which are still to come, each under a line `# what they need`. A listed
case that passes fails this test as one that fails unlisted does, so the list is always the truth.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
KIT = HERE.parents[2] / "shared" / "conformance"
AREAS = sorted(path.name for path in (KIT / "cases").glob("*") if path.is_dir())

pytestmark = pytest.mark.conformance


def pending() -> dict[str, str]:
    """Case → what it needs; a case that is named twice, or under no reason, is refused."""
    needs: dict[str, str] = {}
    reason = ""
    for line in (HERE / "pending.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            reason = line.removeprefix("#").strip()
        elif line.strip():
            assert reason, f"{line}: no reason above it"
            assert line not in needs, f"{line}: listed twice"
            needs[line] = reason
    return needs


def failures(area: str) -> dict[str, str]:
    """Case → what was wrong, for the area's cases that fail."""
    halo = Path(sys.executable).with_name("halo")
    done = subprocess.run(
        [sys.executable, str(KIT / "run.py"), "--halo", str(halo), area], capture_output=True, text=True, check=False
    )
    assert re.search(r"^\d+ passed, \d+ failed$", done.stdout, re.M), done.stdout + done.stderr
    return dict(re.findall(r"^FAIL (\S+): (.*(?:\n(?!FAIL |\d+ passed).*)*)", done.stdout, re.M))


@pytest.mark.parametrize("area", AREAS)
def test_the_area_passes_but_for_what_is_listed(area: str) -> None:
    listed = {case for case in pending() if case.startswith(f"{area}/")}
    failed = failures(area)
    unexpected = "\n".join(f"{case}: {why}" for case, why in failed.items() if case not in listed)
    assert not unexpected, unexpected
    assert listed == set(failed), f"pass now, take them off the list: {sorted(listed - set(failed))}"


def test_the_list_names_only_cases_that_there_are() -> None:
    assert [case for case in pending() if AREAS and not (KIT / "cases" / case / "case.json").is_file()] == []
