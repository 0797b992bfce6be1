"""`Redact(…)`: how much of each kind is found, how many ordinary texts are changed, and what a call pays for it.

The lists are those of tests/policies/data; what is on their even lines was held back while the rules were tuned.
Beside Halo stands datafog (its patterns, with German ones), on the same texts in the same run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final, NamedTuple, TypeAlias

import datafog
from record import table

import halo_lang
from halo_runtime import Runtime, ScriptedModel
from halo_runtime.policies.detection import expanded, find
from halo_runtime.policies.views import views_of

BESIDE: Final = ("datafog", "phonenumberslite")
DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "policies" / "data"
HALVES: Final = {"tuned on": 0, "held back": 1}
ALL: Final = expanded(["PII", "Secrets"])
_THEIRS: Final = {
    "Email": ("EMAIL",), "Phone": ("PHONE", "DE_PHONE"), "CreditCard": ("CREDIT_CARD",), "SSN": ("SSN",),
    "IBAN": ("DE_IBAN", "IBAN"), "IP": ("IP_ADDRESS",),
}  # fmt: skip
ROUNDS: Final = 30
RUNS: Final = 9

Spans: TypeAlias = Callable[[str, str], Iterable[tuple[int, int]]]
"""Where a kind is found in a text."""

_BARE: Final = """
agent Bot [openai/gpt-4o-mini]{requires}
pipeline Main(texts: Array) -> Result:
  texts |* each(text in texts, concurrency: 1) => Bot.answer(text)
"""
_POLICY: Final = "policy House : Redact(PII) & Block(PromptInjection) & MaxSpend(1)\n"


class Line(NamedTuple):
    """A text with something of a kind in it, from `start` to `end`."""

    kind: str
    text: str
    start: int
    end: int


def measure() -> dict[str, Any]:
    """The figures: of each half of the lists by kind, texts that are changed by mistake, and of time."""
    lines = [_line(json.loads(line)) for line in (DATA / "personal_data.jsonl").read_text("utf-8").splitlines()]
    ordinary = [
        json.loads(line)["text"] for line in (DATA / "personal_negatives.jsonl").read_text("utf-8").splitlines()
    ]
    tools: dict[str, Spans] = {"halo": _ours, "datafog": _datafog}
    return {
        "found": {
            name: {
                kind: {
                    tool: _share([one for one in lines[at::2] if one.kind == kind], spans)
                    for tool, spans in tools.items()
                }
                for kind in dict.fromkeys(line.kind for line in lines)
            }
            for name, at in HALVES.items()
        },
        "changed by mistake": {
            name: {
                tool: {"flagged": sum(_finds(text, spans) for text in ordinary[at::2]), "of": len(ordinary[at::2])}
                for tool, spans in tools.items()
            }
            for name, at in HALVES.items()
        },
        "milliseconds": _times(),
    }


def tables(figures: dict[str, Any]) -> str:
    """The figures to read."""
    found, mistaken, times = figures["found"], figures["changed by mistake"], figures["milliseconds"]
    kinds = [
        (kind, *(_counted(found[half][kind][tool]) for half in HALVES for tool in ("halo", "datafog")))
        for kind in found["held back"]
    ]
    changed = (
        "*changed by mistake*",
        *(_counted(mistaken[half][tool]) for half in HALVES for tool in ("halo", "datafog")),
    )
    heads = ("kind", *(f"{tool}, {half}" for half in HALVES for tool in ("Halo", "datafog")))
    parts = (
        table(heads, [*kinds, changed]),
        table(("milliseconds of processor time", ""), [(name, f"{value:.2f}") for name, value in times.items()]),
    )
    return "\n\n".join(parts)


def _line(document: dict[str, Any]) -> Line:
    """A line of the list. Secrets stand in parts there, so that no tool that looks for keys in sources finds one."""
    value, text = document["value"], document["text"]
    if isinstance(value, list):
        value = "".join(value)
        text = text.replace("{}", value)
    start = text.index(value)
    return Line(document["kind"], text, start, start + len(value))


def _ours(text: str, kind: str) -> Iterable[tuple[int, int]]:
    return [(one.start, one.end) for one in find(text, ALL if kind == "all" else (kind,))]


def _datafog(text: str, kind: str) -> Iterable[tuple[int, int]]:
    wanted = [name for names in _THEIRS.values() for name in names] if kind == "all" else _THEIRS.get(kind, ())
    found = datafog.scan(text, engine="regex", locales=["de"]).entities
    return [(one.start, one.end) for one in found if one.type in wanted]


def _share(lines: Sequence[Line], spans: Spans) -> dict[str, int]:
    return {"flagged": sum(_is_covered(line, spans) for line in lines), "of": len(lines)}


def _is_covered(line: Line, spans: Spans) -> bool:
    """Whether all letters and digits of the value are found."""
    covered = {at for start, end in spans(line.text, line.kind) for at in range(start, end)}
    return all(at in covered or not line.text[at].isalnum() for at in range(line.start, line.end))


def _finds(text: str, spans: Spans) -> bool:
    return bool(list(spans(text, "all")))


def _times() -> dict[str, float]:
    """Processor time for ordinary prose, of which nothing was looked at before."""
    pages = (DATA.parents[2] / "docs").rglob("*.md")
    prose = " ".join(word for page in sorted(pages) for word in page.read_text("utf-8").split() if word.isascii())
    small = [f"{n} {prose[n * 400 : n * 400 + 2000]}" for n in range(ROUNDS)]
    sizes = {
        size: [f"{n} {prose * (size // len(prose) + 1)}"[:size] for n in range(3)] for size in (250_000, 1_000_000)
    }
    bare, guarded = (_calls(requires, small) for requires in (False, True))
    return {
        "Redact(PII), 2,000 characters": _time(small),
        "Redact(PII), 250,000 characters": _time(sizes[250_000]),
        "Redact(PII), 1,000,000 characters": _time(sizes[1_000_000]),
        "a call under Redact(PII) & Block(PromptInjection) & MaxSpend(1), 2,000 characters, more than without": round(
            guarded - bare, 3
        ),
    }


def _time(texts: Sequence[str]) -> float:
    """The median, in milliseconds."""
    spent: list[float] = []
    kinds = expanded(["PII"])
    for text in texts:
        views_of.cache_clear()
        find.cache_clear()
        start = process_time()
        find(text, kinds)
        spent.append((process_time() - start) * 1000)
    return round(median(spent), 3)


def _calls(requires: bool, texts: Sequence[str]) -> float:
    """The median time of a call, in milliseconds: of runs with a call about each text, none of them seen before."""
    program = (_POLICY if requires else "") + _BARE.format(requires=" requires House" if requires else "")
    parsed = halo_lang.parse(program)
    spent: list[float] = []
    for number in range(RUNS + 1):
        asked = [f"{requires} {number} {text}" for text in texts]
        runtime = Runtime(env={}, replies=ScriptedModel({"*": "fine"}))
        start = process_time()
        asyncio.run(runtime.run(parsed, "Main", {"texts": asked}))
        spent.append((process_time() - start) * 1000 / len(texts))
    return median(spent[1:])


def _counted(share: dict[str, int]) -> str:
    return f"{share['flagged']} of {share['of']}"
