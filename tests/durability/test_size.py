"""A journal grows with what its stages produce, and not with its own length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability.support import Project


@pytest.mark.parametrize(
    "stage",
    [
        "|* each(item in items) => System.Value(item)",
        "|> System.Value(0)\n    |* each(item in items) => System.Value(1)",
    ],
    ids=["first", "later"],
)
async def test_items_do_not_repeat_the_whole_list(tmp_path: Path, stage: str) -> None:
    project = Project(tmp_path / ".halo")
    program = f"pipeline Main(items: List) -> Result:\n  items\n    {stage}\n"
    few, many = [await project.run(program, {"items": [1000] * count}) for count in (200, 400)]
    assert len(project.bytes_of(many.run_id)) < 2.1 * len(project.bytes_of(few.run_id))
    assert project.store.load(many.run_id).context(1)["input"] == {"items": [1000] * 400}
