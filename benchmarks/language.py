"""How the language grows: programs of 100 to 100,000 lines, read cold, after one keystroke, and looked into.

    python benchmarks/language.py [--lines 100,1000,10000,100000] [--out FILE]

Prints a table and writes JSON. What an editor pays for one keystroke is measured whole: from the new text over parsing
to all diagnostics. Beside it stand what one would have without this project: the same grammar in Lark alone, and
Pygments over the whole text.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import TypeAlias

from lark import Lark
from record import machine, save, table, versions

import halo_lang
from halo_lang import Analysis, Source
from halo_lang.assist import complete
from halo_lang.grammar import GRAMMAR
from halo_lang.highlight import START, HaloLexer, highlight_line

Figures: TypeAlias = dict[str, float]

VISIBLE = 60
"""Lines of a large window."""

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
    """A program of at least that many lines, no two declarations alike."""
    block = BLOCK.count("\n")
    return "".join(BLOCK.format(n=n, tokens=200 + n) for n in range(-(-lines // block)))


def milliseconds(work: Callable[[], object], rounds: int = 1) -> float:
    """The processor time of one call, the best of some rounds: what else the machine does meanwhile does not count."""
    times: list[float] = []
    for _ in range(rounds):
        gc.collect()
        start = process_time()
        work()
        times.append((process_time() - start) * 1000)
    return min(times)


def analyse(text: str, before: Analysis | None = None) -> Analysis:
    """All diagnostics of a text, as an editor asks for them."""
    return halo_lang.check(halo_lang.parse(Source(text), before.program if before else None), before)


def typed(text: str, place: str, typing: str) -> list[str]:
    """The text after `typing` behind `place`: near the beginning, in the middle, near the end."""
    found: list[str] = []
    for share in (0.02, 0.5, 0.97):
        at = text.find(place, int(len(text) * share))
        at = (text.rfind(place) if at < 0 else at) + len(place)
        found.append(text[:at] + typing + text[at:])
    return found


def cold(text: str) -> Figures:
    """Lines a second without a previous version, with the grammar already loaded."""
    lark = Lark(
        f"{GRAMMAR.read_text('utf-8')}\nprogram: declaration*\n",
        start="program",
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        propagate_positions=True,
    )
    works: dict[str, Callable[[], object]] = {
        "parse": lambda: halo_lang.parse(Source(text)),
        "parse_and_check": lambda: analyse(text),
        "lark_alone": lambda: lark.parse(text),
    }
    lines, rounds = text.count("\n"), 5 if len(text) < 1_000_000 else 2
    return {f"{name}_lines_per_s": round(lines / milliseconds(work, rounds) * 1000) for name, work in works.items()}


EDITS = {
    "in_a_text": ("Be short", "x"),
    "in_a_result": ("as draft", "x"),
    "in_a_comment": ("// Block", "x"),
    "in_a_declared_name": ("agent Writer", "x"),
    "opening_a_comment": ("\n", "/*"),
}
"""What is typed, and behind what."""


def edits(text: str, before: Analysis) -> Figures:
    """Milliseconds from one keystroke to all diagnostics, the median over places."""
    found: Figures = {}
    for name, (place, typing) in EDITS.items():
        times = [milliseconds(lambda new=new: analyse(new, before), 2) for new in typed(text, place, typing)]
        found[f"edit_{name}_ms"] = round(statistics.median(times), 2)
    return found


def completion(text: str, before: Analysis) -> Figures:
    """Milliseconds to what can stand at a cursor, in the middle of the file and of what is being typed."""
    found: Figures = {}
    for name, place, typing in (("name", "equips ", ""), ("path", "draft: ", "context.data.")):
        _, new, _ = typed(text, place, typing)
        after = analyse(new, before)
        at = len(new) - len(text) + text.find(place, len(text) // 2) + len(place)
        assert complete(after, at).items
        found[f"complete_{name}_ms"] = round(milliseconds(partial(complete, after, at), 5), 2)
    return found


def lexing(text: str) -> Figures:
    """Milliseconds to the colours of the lines in sight, and of the whole text."""
    lines = text.split("\n")
    first = max(0, len(lines) // 2 - VISIBLE)
    state = START
    for line in lines[:first]:
        _, state = highlight_line(line, state)

    def visible() -> None:
        now = state
        for line in lines[first : first + VISIBLE]:
            _, now = highlight_line(line, now)

    whole = milliseconds(lambda: sum(1 for _ in HaloLexer().get_tokens(text)), 1)
    return {"lex_visible_ms": round(milliseconds(visible, 9), 2), "lex_whole_ms": round(whole, 1)}


def figures(lines: int) -> Figures:
    """Everything about a program of that size."""
    text = program(lines)
    before = analyse(text)
    assert not before.diagnostics
    gc.freeze()  # or each of the many measurements would begin with looking through all of this
    found = {**cold(text), **edits(text, before), **completion(text, before), **lexing(text)}
    gc.unfreeze()
    return {"lines": text.count("\n"), **found}


ROWS = {
    "parse": ("parse_lines_per_s", "lines/s"),
    "parse and check": ("parse_and_check_lines_per_s", "lines/s"),
    "Lark alone, same grammar": ("lark_alone_lines_per_s", "lines/s"),
    "keystroke in a text → diagnostics": ("edit_in_a_text_ms", "ms"),
    "keystroke in a result's name": ("edit_in_a_result_ms", "ms"),
    "keystroke in a comment": ("edit_in_a_comment_ms", "ms"),
    "keystroke in a declared name": ("edit_in_a_declared_name_ms", "ms"),
    "`/*` opened, the rest is a comment": ("edit_opening_a_comment_ms", "ms"),
    "completion of a name": ("complete_name_ms", "ms"),
    "completion of `context.data.`": ("complete_path_ms", "ms"),
    f"colours of the {VISIBLE} lines in sight": ("lex_visible_ms", "ms"),
    "colours of all lines (Pygments)": ("lex_whole_ms", "ms"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lines", default="100,1000,10000,100000")
    options.add_argument("--out", type=Path, default=Path(__file__).parent / "results/language.json")
    chosen = options.parse_args(arguments)
    analyse(program(100))  # the grammar and the checks are loaded now
    columns = [figures(int(lines)) for lines in chosen.lines.split(",")]
    heads = ["", *(f"{column['lines']:,.0f} lines" for column in columns)]
    print(
        table(heads, [[name, *(f"{column[key]:,} {unit}" for column in columns)] for name, (key, unit) in ROWS.items()])
    )
    save(chosen.out, {"benchmark": "language", **machine(), "versions": versions("lark", "pygments"), "sizes": columns})


if __name__ == "__main__":
    main()
