"""Generated programs that run: text, input, replies and answers, with every operator in every place it may stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

REPLIES = ["yes", "no", "7", {"k": 1, "ok": "no"}, "[1, 2]"]
FAILURES = [{"error": 400}, {"error": 503}]
ANSWERS = ["yes", "no", False, 0, "", None, [], {"a": 1}]


@dataclass(frozen=True)
class Runnable:
    """A program with the pipeline `Main(text, xs)` and everything that its world answers."""

    text: str
    inputs: dict[str, Any]
    replies: dict[str, Any]
    answers: tuple[Any, ...]


@st.composite
def runnables(draw: st.DrawFn) -> Runnable:
    """Programs of two agents, a helper pipeline and a main pipeline; replies may fail."""
    main = draw(st.lists(stages(), min_size=1, max_size=6))
    helper = draw(st.lists(stages(nested=False), min_size=1, max_size=3))
    retry = draw(st.sampled_from(["", "@retry(1, 1ms)\n"]))
    text = (
        f"{retry}agent A [openai/gpt-4o-mini]\nagent B [openai/gpt-4o-mini]\n"
        f"pipeline Sub(v: Any) -> Result:\n  v\n{lines(helper)}"
        f"pipeline Main(text: String, xs: Array) -> Result:\n  text\n{lines(main)}"
    )
    value = st.sampled_from([*REPLIES, *FAILURES]) if draw(st.booleans()) else st.sampled_from(REPLIES)
    turns = st.lists(value, min_size=1, max_size=4)
    replies = {key: {"replies": draw(turns), "repeat": True} for key in ("A.go", "A.say", "B.go", "B.say")}
    xs = draw(st.lists(st.sampled_from(["yes", "no", 3, None]), max_size=4))
    answers = tuple(draw(st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=3)))
    return Runnable(text, {"text": "hello", "xs": xs}, replies, answers)


def lines(parts: list[str]) -> str:
    # A loop needs an earlier stage of its agent in the same pipeline.
    return "".join(f"    {part}\n" for part in ["|> A.go()", *parts])


def calls(nested: bool = True) -> st.SearchStrategy[str]:
    plain = [
        "A.go()",
        'A.say("{{current}}?")',
        "B.go(context)",
        "B.say(text: context.data.go)",
        'System.Value("v {{go}}")',
    ]
    return st.sampled_from([*plain, "System.Value(context.data)", *(["Sub(context)", "Sub(context.data.go)"] * nested)])


CONDITIONS = st.sampled_from(
    [
        "context != 'zz'",
        "go == 'yes'",
        "context.data.go.k > 0",
        "!(go == 'no')",
        "go && true",
        "context.data.A.go == 'no'",
    ]
)


@st.composite
def stages(draw: st.DrawFn, nested: bool = True) -> str:
    """One stage as text. `|*` and branch arms take every kind of call."""
    call = calls(nested)
    kind = draw(
        st.sampled_from(["pipe", "pipe", "gate", "arrow", "branch", "fanout", "each", "yield", "listen", "loop"])
    )
    if kind == "pipe":
        return f"|> {draw(call)}"
    if kind == "gate":
        return f"|? ({draw(CONDITIONS)})"
    if kind == "arrow":
        return f"|? ({draw(CONDITIONS)}) => {draw(call)} as arrowed"
    if kind == "branch":
        return f"|? {{ ({draw(CONDITIONS)}) => {draw(call)}, else => {draw(call)} }} as chosen"
    if kind == "fanout":
        return f"|* {{ {draw(call)} as one, {draw(call)} as two, {draw(call)} as three }} as all"
    if kind == "each":
        how = draw(st.sampled_from(["", ", concurrency: 1", ', onError: "keep"', ', concurrency: 2, onError: "drop"']))
        return f"|* each(x in {draw(st.sampled_from(['[1, 2, 3]', '[]']))}{how}) => {draw(call)} as every"
    if kind == "yield":
        return '|! yield("Go on with {{current}}?") as answer'
    if kind == "listen":
        return "~> listen(UI.Click) as click"
    return f'|<> loop(A, "{draw(st.sampled_from(["go == 1", "go == 7", "true"]))}", max: 2) as rounds'
