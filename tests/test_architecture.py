"""The shape of the code base: what each command loads, how long things get, what is documented (spec 10)."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = ("halo_lang", "halo_runtime", "halo_tui")
HEAVY = {"textual", "rich", "mcp", "dbos", "playwright", "xllamacpp", "numpy", "pydantic", "opentelemetry"}
"""Never loaded by a command without a screen, unless it runs on a model that needs them."""
NETWORK = {"httpx", "asyncio", "ssl"}
"""Not loaded by commands that run nothing."""
MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 600

PROGRAM = "agent Bot [openai/gpt-4o-mini]\n\npipeline Main(text: String) -> Result:\n  text\n    |> Bot.answer()\n"

COMMANDS: dict[str, tuple[list[str], set[str]]] = {
    "version": (["--version"], HEAVY | NETWORK),
    "check": (["check", "p.halo"], HEAVY | NETWORK),
    "fmt": (["fmt", "--check", "p.halo"], HEAVY | NETWORK),
    "explain": (["explain", "HL203"], HEAVY | NETWORK),
    "run": (["run", "p.halo", "-i", "text=x", "--replies", "r.json", "--no-input"], HEAVY | {"httpx"}),
}


def loaded_by(code: str, folder: Path) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `code`."""
    program = f"import sys, json\n{code}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(arguments: list[str]) -> str:
    """Code that runs `halo` with `arguments` and goes on after its exit."""
    return (
        f"sys.argv = {['halo', *arguments]!r}\n"
        "from halo_runtime.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_headless_command_loads_nothing_it_does_not_use(name: str, tmp_path: Path) -> None:
    arguments, forbidden = COMMANDS[name]
    (tmp_path / "p.halo").write_text(PROGRAM)
    (tmp_path / "r.json").write_text('{"*": "ok"}')
    assert not loaded_by(command(arguments), tmp_path) & forbidden


@pytest.mark.parametrize(
    ("package", "forbidden"), [("halo_lang", HEAVY | NETWORK | {"click"}), ("halo_runtime", HEAVY | {"httpx", "click"})]
)
def test_a_library_loads_nothing_it_does_not_use(package: str, forbidden: set[str], tmp_path: Path) -> None:
    assert not loaded_by(f"import {package}", tmp_path) & forbidden


def modules(root: Path) -> Iterator[tuple[str, ast.Module, int]]:
    """Each module's path, tree and number of lines."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            source = path.read_text("utf-8")
            yield path.relative_to(root).as_posix(), ast.parse(source), source.count("\n")


def test_no_module_is_longer_than_one_can_read(root: Path) -> None:
    assert [(path, lines) for path, _, lines in modules(root) if lines > MAX_MODULE_LINES] == []


def test_no_function_is_longer_than_a_screen(root: Path) -> None:
    too_long = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree, _ in modules(root)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert too_long == []


def undocumented(tree: ast.Module) -> Iterator[str]:
    """The module itself, and its public classes and functions, where they have no docstring."""
    if tree.body and ast.get_docstring(tree) is None:
        yield "module"
    definitions = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in definitions:
        if not node.name.startswith("_") and ast.get_docstring(node) is None:
            yield f"{node.lineno} {node.name}"


def test_what_is_public_says_what_it_is_for(root: Path) -> None:
    assert [f"{path}:{name}" for path, tree, _ in modules(root) for name in undocumented(tree)] == []


def test_the_runtime_exports_a_sorted_and_complete_list() -> None:
    import halo_runtime

    exported = list(halo_runtime.__all__)
    assert exported == sorted(exported, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert [name for name in exported if not hasattr(halo_runtime, name)] == []


def test_imports_point_one_way(root: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
