"""The process in the sandbox that runs one program in CPython.

The request is on standard input, `{"code", "inputs", "memory", "seconds"}`; the report goes to what standard error was
at the start, `{"result", "problem": {"type", "message", "line"} | null}`, and both streams of the program to standard
output. Beside this package nothing but Python's own modules is at hand, and the packages that were installed with Halo.
"""

from __future__ import annotations

import ast
import io
import json
import os
import resource
import sys
from typing import Any, Final

from halo_runtime.tools.code.base import MAX_MESSAGE, Problem, checked

OPEN_FILES: Final = 64
OWN_MEMORY: Final = 64 << 20
"""What CPython itself reserves, in bytes."""

_NAME: Final = "<program>"


def main() -> None:
    """Do what standard input says; the process ends with it, whatever the program has left running."""
    request = json.load(sys.stdin)
    report = os.dup(2)
    os.dup2(1, 2)
    # By lines, so that both streams come as they were written.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), line_buffering=True)
    _limit(request["memory"], request["seconds"])
    written = json.dumps(run(request["code"], request["inputs"]), ensure_ascii=False).encode(errors="replace")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # the program has closed it, or put something else there
            continue
    while written:
        written = written[os.write(report, written) :]
    os._exit(0)


def _limit(memory: int, seconds: float) -> None:
    for kind, most in (
        (resource.RLIMIT_AS, memory + OWN_MEMORY),
        (resource.RLIMIT_CPU, int(seconds) + 2),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def run(code: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """The report on a program."""
    try:
        ended = checked(_value(code, inputs), "")
    except BaseException as raised:  # a program may raise whatever it likes
        ended = None
        problem = _problem(raised)
    else:
        problem = ended.problem
    told = None if problem is None else {"type": problem.type, "message": problem.message, "line": problem.line}
    return {"result": None if ended is None else ended.result, "problem": told}


def _value(code: str, inputs: dict[str, Any]) -> object:
    """The value of the last line, where that is an expression; None otherwise."""
    names: dict[str, Any] = {"__name__": "__main__", **inputs}
    tree = ast.parse(code, _NAME)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, _NAME, "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), _NAME, "eval"), names)


def _problem(raised: BaseException) -> Problem | None:
    if isinstance(raised, SystemExit) and not raised.code:
        return None
    line: int | None = None
    if isinstance(raised, SyntaxError) and raised.filename == _NAME:
        line = raised.lineno
    step = raised.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == _NAME:
            line = step.tb_lineno
        step = step.tb_next
    try:
        message = raised.msg if isinstance(raised, SyntaxError) else str(raised)
    except Exception:  # the program's own class
        message = ""
    return Problem(type(raised).__name__, str(message)[:MAX_MESSAGE], line)


if __name__ == "__main__":
    main()
