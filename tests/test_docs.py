"""What the documentation shows is true: its programs check, its commands print what stands below them.

A code block with a `title` is written to that file; `console` blocks are run in the same folder, in the order of the
page, and a line `…` in their output stands for any lines. Other blocks are only shown.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from halo_lang import Source, check, parse
from halo_lang.formatter import format_source
from halo_runtime.engine import events

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TABLE = ROOT / "tests" / "models" / "README.md"
SHORT = {
    "loop": "../runtime/test_tool_loop.py",
    "services": "test_tool_loop_at_services.py",
    **{name: f"test_{name}.py" for name in ("connections", "retries", "spending")},
}
FENCE = re.compile(r"^```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)
TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: `title` is the file it is written to; `fails` marks a program that shows an error."""

    language: str
    title: str | None
    fails: bool
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """The page's code blocks in order."""
    for fence in FENCE.finditer(page.read_text("utf-8")):
        title = TITLE.search(fence["options"])
        yield Block(fence["language"], title and title[1], "fails" in fence["options"].split(), fence["text"])


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block and the output shown below it."""
    for part in re.split(r"^\$ ", session, flags=re.M)[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", part)
        assert command is not None
        yield command[0], part[command.end() :]


def run(command: str, folder: Path) -> str:
    """What a shell prints for `command`, with this installation's `halo` and `python3` on its path."""
    scripts = folder / ".bin"
    scripts.mkdir(exist_ok=True)
    for name, target in (("python3", sys.executable), ("halo", Path(sys.executable).with_name("halo"))):
        if not (scripts / name).exists():
            (scripts / name).write_text(f'#!/bin/sh\nexec "{target}" "$@"\n')
            (scripts / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def matches(expected: str, printed: str) -> bool:
    """Whether the output is as shown, `…` alone on a line standing for any lines."""
    lines = expected.strip().splitlines()
    pattern = "\n".join("(?:.*)" if line == "…" else re.escape(line.rstrip()) for line in lines)
    actual = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    return re.fullmatch(pattern, actual, re.S) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_pages_commands_print_what_it_says(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.title is not None:
            file = tmp_path / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, "utf-8")
        if block.language == "console":
            for command, expected in commands(block.text):
                printed = run(command, tmp_path)
                assert matches(expected, printed), f"$ {command}{printed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_pages_programs_are_well_formed_but_where_it_says_so(page: Path) -> None:
    for block in blocks(page):
        if block.language == "halo" and block.title is not None:
            analysis = check(parse(block.text))
            assert analysis.ok != block.fails, f"{block.title}: {[item.message for item in analysis.errors]}"
            assert format_source(Source(block.text)) == block.text


def test_every_page_stands_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in PAGES[1:]]
    assert [page for page in pages if f": {page}\n" not in navigation] == []


def test_links_lead_to_files_that_are_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} → {target}"


def test_the_events_page_lists_every_event_and_field() -> None:
    text = (ROOT / "docs/reference/events.md").read_text("utf-8")
    for event in (kind for kind in vars(events).values() if isinstance(kind, type)):
        if issubclass(event, events.RunEvent) and event is not events.RunEvent:
            row = re.search(rf"^\| `{event.type}` \| (.*) \|$", text, re.M)
            assert row is not None, event.type
            fields = [name for name in event.__dataclass_fields__ if name not in ("run_id", "path", "type")]
            assert re.findall(r"`(\w+)`", row[1]) == [re.sub("_(.)", lambda m: m[1].upper(), f) for f in fields]


def test_every_test_that_the_table_of_bug_reports_names_exists() -> None:
    named = re.findall(r"(?:`([\w./]+)|(loop|services)`)::(test_\w+)`", TABLE.read_text("utf-8"))
    assert len(named) > 40
    for file, short, test in named:
        text = (TABLE.parent / (file or SHORT[short])).read_text("utf-8")
        assert f"def {test}(" in text, f"{file or short} has no {test}"
