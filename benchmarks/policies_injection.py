"""`Block(PromptInjection)`: how many attempts are found, how many ordinary texts are stopped, and what it costs.

The lists are those of tests/policies/data; what is on their even lines was held back while the rules were tuned.
Beside Halo stands aicordon's Picket, on the same texts in the same run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final, NamedTuple, TypeAlias

from aicordon import picket
from record import table

from halo_runtime.policies.injection import DEFAULT_THRESHOLD
from halo_runtime.policies.injection.score import assess
from halo_runtime.policies.views import views_of

BESIDE: Final = ("aicordon",)
DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "policies" / "data"
THRESHOLDS: Final = (0.3, 0.4, 0.5, 0.6, 0.7)
ROUNDS: Final = 30

Flags: TypeAlias = Callable[[str], bool]


class Line(NamedTuple):
    """A text of a list, and of which family and language it is."""

    family: str
    language: str
    text: str


def measure() -> dict[str, Any]:
    """The figures: of each half of the lists, by family and by language, by threshold, and of time."""
    attacks, negatives = _lines("injection_attacks.jsonl"), _lines("injection_negatives.jsonl")
    engine = picket.load()
    tools: dict[str, Flags] = {"halo": _flags(DEFAULT_THRESHOLD), "aicordon": lambda text: engine.check(text).flagged}
    halves = {"tuned on": slice(0, None, 2), "held back": slice(1, None, 2)}
    return {
        "halves": {
            name: {
                tool: {"attacks": _share(attacks[half], flags), "ordinary": _share(negatives[half], flags)}
                for tool, flags in tools.items()
            }
            for name, half in halves.items()
        },
        "phrases": {tool: _share(_lines("injection_phrases.jsonl"), flags) for tool, flags in tools.items()},
        "held back by family": _by(attacks[1::2], tools, lambda line: line.family),
        "held back by language": _by(attacks[1::2], tools, lambda line: line.language),
        "held back, ordinary, by family": _by(negatives[1::2], tools, lambda line: line.family),
        "held back by threshold": {
            str(threshold): {
                "attacks": _share(attacks[1::2], _flags(threshold)),
                "ordinary": _share(negatives[1::2], _flags(threshold)),
            }
            for threshold in THRESHOLDS
        },
        "milliseconds": _times(lambda text: engine.check(text)),
    }


def tables(figures: dict[str, Any]) -> str:
    """The figures to read."""
    halves, families = figures["halves"], figures["held back by family"]
    thresholds, times = figures["held back by threshold"], figures["milliseconds"]
    parts = (
        table(
            ("texts", "Halo finds", "Halo stops by mistake", "aicordon finds", "aicordon stops by mistake"),
            [
                (name, *(_shown(of[tool][kind]) for tool in ("halo", "aicordon") for kind in ("attacks", "ordinary")))
                for name, of in halves.items()
            ],
        ),
        table(
            ("family, held back", "Halo", "aicordon"),
            [(name, _counted(of["halo"]), _counted(of["aicordon"])) for name, of in families.items()],
        ),
        table(
            ("threshold, held back", "finds", "stops by mistake"),
            [(name, _shown(of["attacks"]), _shown(of["ordinary"])) for name, of in thresholds.items()],
        ),
        table(("milliseconds of processor time", "Halo", "aicordon"),
              [(name, f"{of['halo']:.2f}", f"{of['aicordon']:.2f}") for name, of in times.items()]),
    )  # fmt: skip
    return "\n\n".join(parts)


def _lines(name: str) -> list[Line]:
    return [Line(**json.loads(line)) for line in (DATA / name).read_text("utf-8").splitlines()]


def _flags(threshold: float) -> Flags:
    return lambda text: assess(text).score >= threshold


def _share(lines: Sequence[Line], flags: Flags) -> dict[str, int]:
    return {"flagged": sum(flags(line.text) for line in lines), "of": len(lines)}


def _by(lines: Sequence[Line], tools: dict[str, Flags], key: Callable[[Line], str]) -> dict[str, Any]:
    """The shares of each group of lines."""
    return {
        group: {tool: _share([line for line in lines if key(line) == group], flags) for tool, flags in tools.items()}
        for group in dict.fromkeys(map(key, lines))
    }


def _times(other: Callable[[str], Any]) -> dict[str, dict[str, float]]:
    """Processor time for ordinary prose, of which nothing was looked at before."""
    pages = (DATA.parents[2] / "docs").rglob("*.md")
    prose = " ".join(word for page in sorted(pages) for word in page.read_text("utf-8").split() if word.isascii())
    small = [f"{n} {prose[n * 400 : n * 400 + 2000]}" for n in range(ROUNDS)]
    large = [f"{n} {prose * (1_000_000 // len(prose) + 1)}"[:1_000_000] for n in range(3)]
    return {
        "2,000 characters": {"halo": _time(_assessed, small), "aicordon": _time(other, small)},
        "1,000,000 characters": {"halo": _time(_assessed, large), "aicordon": _time(other, large)},
    }


def _assessed(text: str) -> None:
    views_of.cache_clear()
    assess.cache_clear()
    assess(text)


def _time(check: Callable[[str], Any], texts: Sequence[str]) -> float:
    """The median, in milliseconds."""
    spent: list[float] = []
    for text in texts:
        start = process_time()
        check(text)
        spent.append((process_time() - start) * 1000)
    return round(median(spent), 3)


def _shown(share: dict[str, int]) -> str:
    return f"{share['flagged'] / share['of']:.0%} ({_counted(share)})"


def _counted(share: dict[str, int]) -> str:
    return f"{share['flagged']} of {share['of']}"
