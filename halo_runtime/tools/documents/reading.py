"""The process that takes one document apart: from standard input to one JSON object on standard output.

`python -m halo_runtime.tools.documents.reading KIND text|tables`; the answer is `{"pages", "metadata", "tables"}` or
`{"error"}`, words that follow the document's name. Libraries read whatever they are given, so this process may take
only so much memory and processor time, and Office files are looked into before one of them opens them.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Final

from halo_runtime.json_types import JsonObject
from halo_runtime.tools.documents.formats import READERS
from halo_runtime.tools.documents.limits import UnreadableError, check_archive

MEMORY_BYTES: Final = 2 * 1024**3
PROCESSOR_SECONDS: Final = 60
MAX_CHARS: Final = 20_000_000
"""How much text of a document is taken."""


def main() -> None:
    """Read the document, write the answer."""
    kind, wanted = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    answer, sys.stdout = sys.stdout, sys.stderr  # a library may print
    json.dump(take_apart(sys.stdin.buffer.read(), kind, tables=wanted == "tables"), answer)
    answer.flush()


def take_apart(data: bytes, kind: str, *, tables: bool) -> JsonObject:
    """The answer for a document."""
    try:
        if kind in ("docx", "xlsx", "pptx"):
            check_archive(data)
        taken = READERS[kind](data, tables)
    except UnreadableError as problem:
        return {"error": str(problem)}
    except MemoryError:
        return {"error": f"takes more than {MEMORY_BYTES >> 30} GB of memory"}
    except Exception as error:  # libraries raise whatever they like for a file that is not as it should be
        said = f"{type(error).__name__}: {error}"[:200]
        return {"error": f"cannot be read; it is damaged, or no {kind} file ({said})"}
    if sum(map(len, taken["pages"])) > MAX_CHARS:
        return {"error": f"has more than {MAX_CHARS:,} characters of text"}
    return taken


if __name__ == "__main__":
    main()
