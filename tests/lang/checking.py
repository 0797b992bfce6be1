"""What the tests of checks share: findings of a text as `code line:column`.

The programs of most tests declare what a test looks at and little else, so what is never used (HL505) is left out but
where a test asks for it.
"""

from __future__ import annotations

from halo_lang import Analysis, Diagnostic, check, parse

BOT = "agent Bot [openai/gpt-4o-mini]\n"


def analysis(text: str) -> Analysis:
    """The analysis of a text."""
    return check(parse(text))


def findings(done: Analysis, *, unused: bool = False) -> list[Diagnostic]:
    """The findings of an analysis, in order."""
    return [one for one in done.diagnostics if unused or one.code != "HL505"]


def found(text: str, *, unused: bool = False) -> list[str]:
    """All findings of a text, in order."""
    done = analysis(text)
    return [_shown(done, diagnostic) for diagnostic in findings(done, unused=unused)]


def only(text: str, *, unused: bool = False) -> Diagnostic:
    """The one finding of a text."""
    (diagnostic,) = findings(analysis(text), unused=unused)
    return diagnostic


def marked(text: str, *, unused: bool = False) -> list[str]:
    """The findings of a text as the code and the characters that it points at."""
    done = analysis(text)
    source = done.program.source.text
    return [f"{one.code} {source[one.span.start : one.span.end]}" for one in findings(done, unused=unused)]


def body(stages: str, parameters: str = "x: String") -> str:
    """A program with an agent `Bot` and a pipeline of these stages."""
    return f"{BOT}pipeline Main({parameters}) -> Result:\n  x {stages}"


def _shown(done: Analysis, diagnostic: Diagnostic) -> str:
    place = done.program.source.position(diagnostic.span.start)
    return f"{diagnostic.code} {place.line}:{place.column}"
