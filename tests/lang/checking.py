"""What the tests of checks share: findings of a text as `code line:column`."""

from __future__ import annotations

from halo_lang import Analysis, Diagnostic, check, parse

BOT = "agent Bot [openai/gpt-4o-mini]\n"


def analysis(text: str) -> Analysis:
    """The analysis of a text."""
    return check(parse(text))


def found(text: str) -> list[str]:
    """All findings of a text, in order."""
    done = analysis(text)
    return [_shown(done, diagnostic) for diagnostic in done.diagnostics]


def only(text: str) -> Diagnostic:
    """The one finding of a text."""
    (diagnostic,) = analysis(text).diagnostics
    return diagnostic


def marked(text: str) -> list[str]:
    """The findings of a text as the code and the characters that it points at."""
    done = analysis(text)
    source = done.program.source.text
    return [f"{one.code} {source[one.span.start : one.span.end]}" for one in done.diagnostics]


def body(stages: str, parameters: str = "x: String") -> str:
    """A program with an agent `Bot` and a pipeline of these stages."""
    return f"{BOT}pipeline Main({parameters}) -> Result:\n  x {stages}"


def _shown(done: Analysis, diagnostic: Diagnostic) -> str:
    place = done.program.source.position(diagnostic.span.start)
    return f"{diagnostic.code} {place.line}:{place.column}"
