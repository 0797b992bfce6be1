"""`halo edit`: the workbench. Textual is imported only when it opens."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import click

from halo_runtime.cli.output import is_terminal
from halo_runtime.cli.usage import UsageError
from halo_runtime.json_types import Json

SWITCH_INTERVAL: Final = 0.0005
"""Seconds for which a busy thread may keep others waiting: a key passes through three, and Python's 5 ms add up."""


@click.command()
@click.argument("file", required=False)
@click.option("--replies", metavar="F", help="Answer for every agent from this replies file.")
@click.option("--model", metavar="ID", help="Use this model instead of every agent's own.")
@click.option("-i", "pairs", multiple=True, metavar="NAME=VALUE", help="Fill in an argument; may be repeated.")
@click.option("--run", is_flag=True, help="Run at once; asks only for arguments that -i does not give.")
@click.option("--project", metavar="FOLDER", hidden=True, help="Keep runs in this folder's .halo.")
def edit(
    file: str | None, replies: str | None, model: str | None, pairs: tuple[str, ...], run: bool, project: str | None
) -> int:
    """Write, run and look into a program in the terminal.

    Without FILE: choose one of the current folder. F5 runs with --replies or --model, else with FILE.replies.json or
    replies.json beside the program, else on the embedded model, else on the agents' own models.
    """
    inputs = dict(_pair(pair) for pair in pairs)
    place = Path(file) if file else Path()
    return run_workbench(place, replies=replies, model=model, inputs=inputs, run=run, project=project)


def run_workbench(
    path: str | Path,
    *,
    replies: str | Path | None = None,
    model: str | None = None,
    inputs: Mapping[str, Json] | None = None,
    run: bool = False,
    project: str | Path | None = None,
) -> int:
    """Open a program (or choose one of a folder) and return the exit code when the person leaves.

    `inputs` fill the form in; texts stand as they would be typed. `run` starts a run at once, without the form where
    the inputs are complete. Runs are kept in the `.halo` of the folder `project`, else in that of the project that
    the current folder belongs to. Raises UsageError where there is no terminal or the file cannot be opened.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError("the workbench needs a terminal", hint="halo run FILE works without one")
    # Nearly all that is made while the workbench opens stays; collections would only look it through.
    gc.disable()
    sys.setswitchinterval(SWITCH_INTERVAL)
    from halo_tui.app import WorkbenchApp
    from halo_tui.models.document import Document, DocumentError
    from halo_tui.models.inputs import as_typed
    from halo_tui.models.options import Options, project_store

    place = Path(path)
    texts = {name: as_typed(value) for name, value in (inputs or {}).items()}
    open_store = partial(project_store, Path(project) if project is not None else None)
    options = Options(Path(replies) if replies is not None else None, model, texts, run, open_store)
    try:
        document = place if str(place) == "." else Document.open(place)
    except DocumentError as error:
        raise UsageError(str(error)) from None
    app = WorkbenchApp(document, options)
    app.run()
    return app.return_code or 0


def _pair(pair: str) -> tuple[str, str]:
    name, equals, text = pair.partition("=")
    if not name or not equals:
        raise UsageError(f"-i {pair}: no value", hint="write -i name=value, or -i name=@file")
    return name, text
