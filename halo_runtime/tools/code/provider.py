"""`Code(language, sandbox, timeout, memory)`: programs in Python, without network or files (spec 5, reference 2.13).

What a program does wrong is a result, with its exception and line: a model that wrote it can then do better. Values
are given by the names that the program has for them; filled into its text they would be run as code.
"""

from __future__ import annotations

import json
from keyword import iskeyword
from typing import Final

from halo_lang.catalog.signature import duration_seconds
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.templates import WrittenText
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.code.base import Limits, Sandbox
from halo_runtime.tools.code.cpython import CPython
from halo_runtime.tools.code.monty import Monty

DEFAULT_TIMEOUT: Final = "10s"
DEFAULT_MEMORY: Final = 256
"""Megabytes."""
MAX_CODE: Final = 1_000_000


class Code:
    """One declared sandbox. Each call is a program of its own; nothing is left of the one before."""

    def __init__(self, name: str, sandbox: Sandbox) -> None:
        self._name = name
        self._sandbox = sandbox

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do `run`. Raises ToolError for what cannot be run at all."""
        if method != "run":
            raise ToolError(f"{self._name} has no method `{method}`; a Code tool has run")
        try:
            ended = await self._sandbox.run(_read_code(args["code"]), _read_inputs(args))
        except ToolError as error:
            raise ToolError(f"{self._name}.run: {error.message}") from None
        problem = ended.problem
        told = None if problem is None else {"type": problem.type, "message": problem.message, "line": problem.line}
        return {"result": ended.result, "stdout": ended.printed, "error": told}

    async def probe(self) -> str:
        """Add two numbers. Raises ToolError."""
        try:
            ended = await self._sandbox.run("1 + 1", {})
        except ToolError as error:
            raise ToolError(f"{self._name}: {error.message}") from None
        if ended.result != 2:
            said = "" if ended.problem is None else f": {ended.problem.type}: {ended.problem.message}"
            raise ToolError(f"{self._name}: the sandbox does not work here{said}")
        return "the sandbox works"

    async def close(self) -> None:
        """End what runs programs."""
        await self._sandbox.close()


def open_code(config: ToolConfig) -> Code:
    """The sandbox that a declaration describes."""
    settings = config.settings
    seconds = duration_seconds(settings.get("timeout") or DEFAULT_TIMEOUT) or 10.0
    limits = Limits(seconds, int(settings.get("memory") or DEFAULT_MEMORY) << 20)
    if settings.get("sandbox") == "bubblewrap":
        return Code(config.name, CPython(limits, config.env.get("PATH")))
    return Code(config.name, Monty(limits))


def _read_code(code: str) -> str:
    """The program. Raises ToolError where a value was filled into it, and for what no sandbox takes."""
    if isinstance(code, WrittenText) and code.filled and not code.is_value:
        before = " ".join(code.written[0].split())[-40:]
        raise ToolError(
            f"values do not go into the program's text, where they would be run: at `{before}{{{{…}}}}` write a name,"
            ' and give its value by that name, as in run("len(text)", text: …)'
        )
    text = str(code)
    if not text.strip():
        raise ToolError("the code is empty")
    if len(text) > MAX_CODE:
        raise ToolError(f"the code has over {MAX_CODE:,} characters; give long values in inputs")
    if "\0" in text:
        raise ToolError("the code holds a NUL character")
    _check_unicode(text, "the code")
    return text


def _read_inputs(args: JsonObject) -> JsonObject:
    """The program's variables. Raises ToolError for names that Python cannot have."""
    inputs: JsonObject = args.get("inputs") or {}
    named = {name: value for name, value in args.items() if name not in ("code", "inputs")}
    for name in (*inputs, *named):
        if not name.isidentifier() or iskeyword(name):
            raise ToolError(f"`{name[:80]}` cannot be the name of a variable in Python; give it another one")
    if twice := inputs.keys() & named.keys():
        raise ToolError(f"inputs has {', '.join(sorted(twice))}, too, which is given by name")
    _check_unicode(json.dumps(args, ensure_ascii=False), "what is given to the code")
    return inputs | named


def _check_unicode(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{what} must be valid Unicode text; it holds half a surrogate pair") from None
