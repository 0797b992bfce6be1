"""What the tests of assistance share: programs with a cursor in them, and the damaged programs of property tests."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import strategies as st

from halo_lang import Analysis, Span, check, parse

EXAMPLES = {path.stem: path.read_text() for path in sorted(Path(__file__).parents[2].glob("examples/*.halo"))}
CURSOR = "¦"

PROMPTED = """agent Bot [openai/gpt-4o-mini] system "You know {{topic}} and {{ context.data.facts.0 }}."
tool Repo : GitHub(Env.TOKEN, repo: "a/b")
pipeline Main(topic: String, n: Number) -> Result:
  topic
    |> Bot.find("…", topic) as facts
    |> Bot.get_issue("About {{topic}}", tool: Repo, number: n)
    |> Inner(topic: facts, size: 2)
    |> System.Print("{{Inner.size}} {{Repo.get_issue.title}} {{get_issue}}")
pipeline Inner(topic: String, size: Number) -> Result:
  topic |* { Bot.judge(), Repo.list_issues() as issues } as both |> System.Value(both.issues) as done
"""
"""A program whose names meet in strings, prompts, named arguments and keys."""

PROGRAMS = [*EXAMPLES.values(), PROMPTED]


def placed(text: str) -> tuple[Analysis, int]:
    """The analysis of a text without its cursor, and where that was."""
    offset = text.index(CURSOR)
    return check(parse(text.replace(CURSOR, "", 1))), offset


def expected(text: str) -> tuple[str, list[Span]]:
    """A text without its `⟦marks⟧`, and the places that they mark; the cursor, which stays, counts for nothing."""
    spans: list[Span] = []
    starts: list[int] = []
    plain = ""
    for part in re.split("([⟦⟧])", text):
        at = len(plain.replace(CURSOR, ""))
        if part == "⟦":
            starts.append(at)
        elif part == "⟧":
            spans.append(Span(starts.pop(), at))
        else:
            plain += part
    return plain, spans


_WORDS = (
    "",
    "|> ",
    "{{",
    "}}",
    '"',
    '"""',
    "'",
    "/*",
    "(",
    ")",
    ".",
    "context.data.",
    "as ",
    "agent ",
    'loop(Bot, "x.")',
)
_NOISE = st.sampled_from((*_WORDS, "😀", "e\u0301", "\r\n", "\t", "\ud800"))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A program that was cut off, or in which something was put in place of something else, somewhere."""
    text = draw(st.sampled_from(PROGRAMS))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 3, 20, 10_000])))
        text = text[:start] + draw(_NOISE) + text[end:]
    return text
