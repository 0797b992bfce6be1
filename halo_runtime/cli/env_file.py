"""Reading `--env-file`: `NAME=value` lines, as the shell and other tools write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from halo_runtime.cli.sources import read_text
from halo_runtime.cli.usage import UsageError

_LINE = re.compile(
    r"""\s* (?:export\s+)? (?P<name>[A-Za-z_][A-Za-z0-9_]*) \s*=\s*
        (?: '(?P<raw>[^']*)' | "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<plain>[^'"#\s](?:[^#]|(?<!\s)\#)*)? )
        \s* (?:\#.*)?""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def environment(path: str | None, outer: Mapping[str, str]) -> Mapping[str, str]:
    """`outer` with the variables of the file added; a variable that is set already stays as it is."""
    return outer if path is None else {**parse(read_text(path), path), **outer}


def parse(text: str, path: str) -> dict[str, str]:
    """The variables of a file. UsageError names the line that is none, never what stands in it."""
    variables: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise UsageError(f"{path}:{number}: no variable", hint='write NAME=value, or NAME="value" in quotes')
        variables[match["name"]] = _value(match)
    return variables


def _value(match: re.Match[str]) -> str:
    if match["quoted"] is not None:
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match["quoted"])
    return match["raw"] if match["raw"] is not None else (match["plain"] or "").strip()
