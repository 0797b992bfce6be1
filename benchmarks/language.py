"""How fast a large program is read: lines a second cold, and milliseconds for one edit in a file of 10,000 lines.

    python benchmarks/parse.py [LINES]

Prints one JSON object. "check" is parsing and all checks, as after a keystroke in an editor.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from time import perf_counter

import halo_lang
from halo_lang import Analysis, Program, Source

BLOCK = '''\
// Block {n}: support requests of team {n}
policy Safe{n} : Block(PromptInjection) & Redact(Email, restore: true)
tool Repo{n} : GitHub(Env.GITHUB_TOKEN, repo: "acme/service-{n}")
store Docs{n} : VectorStore(namespace: "docs-{n}")

schema Answer{n} {{
  text: String,
  sources: Array<String>,
  score: Number,
}}

@retry(3, 2s)
agent Triager{n} [openai/gpt-4o-mini, temp: 0.2, max_tokens: {tokens}]
  system "You sort the requests of team {n}."

@timeout(30s)
agent Writer{n} [anthropic/claude-sonnet-4-5, temp: 0.7]
  system """
    You write answers for team {n}.
    Be short and friendly.
  """
  equips Docs{n}, Repo{n}
  requires Safe{n}

pipeline Support{n}(request: String, number: Number) -> Answer{n}:
  request
    |> Triager{n}.classify("Reply with JSON: {{\\"kind\\": \\"bug\\" | \\"billing\\" | \\"other\\"}}") as kind
    |? (context.data.kind.kind != "other" && number > {n})
    |? {{
         (context.data.kind.kind == "bug") => Writer{n}.get_issue(request, tool: Repo{n}, number: number),
         else => Writer{n}.answer("Answer in the tone of team {n}: {{{{request}}}}"),
       }} as draft
    |* {{
         Writer{n}.check_facts("List what is not proven.") as facts,
         Writer{n}.check_tone("Is this polite?") as tone,
       }} as reviews
    |> Writer{n}.improve("Reply with JSON: text, sources, score.", draft: context.data.draft) as final
    |<> loop(Writer{n}, "context.data.final.score < 8", max: 3) as tries
    |! yield("Send this to the customer?", channel: "support-{n}", timeout: 1d) as approval

'''


def program(lines: int) -> str:
    """A program of about that many lines, no two declarations alike."""
    block = BLOCK.count("\n")
    return "".join(BLOCK.format(n=n, tokens=200 + n) for n in range(lines // block + 1))


def milliseconds(work: Callable[[], object]) -> float:
    """The time of one call."""
    gc.collect()
    start = perf_counter()
    work()
    return (perf_counter() - start) * 1000


def cold(text: str, rounds: int = 5) -> dict[str, float]:
    """Lines a second, best of some rounds, with the grammar already built."""
    lines = text.count("\n")
    halo_lang.parse("schema Warm { up: String }")
    parsed = min(milliseconds(lambda: halo_lang.parse(Source(text))) for _ in range(rounds))
    checked = min(milliseconds(lambda: halo_lang.check(halo_lang.parse(Source(text)))) for _ in range(rounds))
    return {"parse": round(lines / parsed * 1000), "check": round(lines / checked * 1000)}


def edits(text: str) -> Iterator[tuple[str, str]]:
    """One letter more in a string, a name and a comment: near the beginning, in the middle, near the end."""
    for share in (0.02, 0.5, 0.98):
        for place in ("Be short", "as draft", "// Block"):
            at = text.index(place, int(len(text) * share)) + len(place)
            yield place, text[:at] + "x" + text[at:]


def one_edit(text: str) -> dict[str, float]:
    """Milliseconds from one version to the next, the median over places."""
    before = halo_lang.check(halo_lang.parse(Source(text)))
    versions = [Source(edited) for _, edited in edits(text)]
    parses = [milliseconds(lambda s=source: _parse(s, before.program)) for source in versions]
    checks = [milliseconds(lambda s=source: _check(s, before)) for source in versions]
    return {"parse": round(statistics.median(parses), 2), "check": round(statistics.median(checks), 2)}


def _parse(source: Source, before: Program) -> int:
    return len(halo_lang.parse(source, before).diagnostics)


def _check(source: Source, before: Analysis) -> int:
    return len(halo_lang.check(halo_lang.parse(source, before.program), before).diagnostics)


def main() -> None:
    """Measure and print."""
    text = program(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    assert not halo_lang.parse(text).diagnostics
    print(json.dumps({"lines": text.count("\n"), "lines_per_second": cold(text), "edit_ms": one_edit(text)}))


if __name__ == "__main__":
    main()
