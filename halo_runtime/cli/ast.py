"""`halo ast`: a program as the parser sees it, for other programs and for the curious."""

from __future__ import annotations

import sys

import click

import halo_lang
from halo_lang.diagnostics import to_json
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.findings import Report, text
from halo_runtime.cli.output import emit, say, tell_json
from halo_runtime.cli.sources import read_source


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option("--text", "as_text", is_flag=True, help="Indented lines for people instead of JSON.")
def ast(file: str, as_text: bool) -> int:
    """Print the syntax tree of a program as JSON.

    The program is parsed, not checked. Where it has syntax errors, the tree holds what parsed, the errors stand beside
    it, and the exit code is 2.
    """
    from halo_lang import tree  # nothing else needs it

    source, undecodable = read_source(file)
    program = halo_lang.parse(source)
    diagnostics = program.diagnostics if undecodable is None else (undecodable,)
    declarations = tree.trees(program)
    if not as_text:
        found = [to_json(diagnostic, source) for diagnostic in diagnostics]
        tell_json({"path": source.path, "declarations": declarations, "diagnostics": found})
    else:
        emit(sys.stdout, tree.text(declarations))
        if diagnostics:
            say(text([Report(source, diagnostics)], sys.stderr))
    return ExitCode.REFUSED if diagnostics else ExitCode.COMPLETED
