"""A report for people: as text in columns, as Markdown and as a page of HTML. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from halo_lang.excerpt import visible
from halo_runtime.ledger.analysis import LEVELS
from halo_runtime.ledger.guide import MISSING, rubric
from halo_runtime.ledger.report import NOT_OBSERVED, AgentReport, Cell, Report

_NOTE = "e5 ← e2, e3: event e5 shows it, with what it has from e2 and e3."
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}th,td{text-align:left;padding:.3rem .8rem;border-bottom:1px solid #ccc}"
    ".none{color:#777}"
)


def as_text(report: Report) -> str:
    """The report as a terminal shows it."""
    parts = ["\n".join(_lines(one)) for one in report.agents]
    return "\n\n".join([*parts, *([] if parts else [_nothing(report)]), f"{_NOTE}\n\n{rubric()}"])


def as_markdown(report: Report) -> str:
    """The report as Markdown, a section for each agent."""
    parts = ["# Loop report", *(_section(one) for one in report.agents)]
    return "\n\n".join([*parts, *([] if report.agents else [_nothing(report)]), "## Levels", rubric(), _NOTE])


def as_html(report: Report) -> str:
    """The report as a page that needs nothing else."""
    body = "".join(_article(one) for one in report.agents) or f"<p>{escape(_nothing(report))}</p>"
    levels = "".join(f"<li>{one.number}, {escape(one.name)}: {escape(one.meaning)}</li>" for one in LEVELS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Loop report</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Loop report</h1>\n{body}<h2>Levels</h2>\n"
        f"<ul>{levels}</ul>\n<p>{escape(_NOTE)} "
        f"{escape(MISSING)}</p>\n</body></html>"
    )


def _nothing(report: Report) -> str:
    agent = report.query.agent
    return f"No events of the agent {visible(agent, keep='')}." if agent else "No events."


def _level(one: AgentReport) -> str:
    named = f"Level {one.level.number}, {one.level.name}" if one.level.number else "Level 0"
    return f"{named} · {one.events} event{'' if one.events == 1 else 's'}"


def _rows(one: AgentReport) -> Iterator[tuple[str, str, str]]:
    """Name, what was observed, and the events of each row."""
    for cell in (*one.channels, *one.steps):
        yield cell.name, f"observed {cell.count}×" if cell.observed else NOT_OBSERVED, _events(cell)


def _events(cell: Cell) -> str:
    more = cell.count - len(cell.shown)
    return "; ".join([*map(str, cell.shown), *([f"and {more} more"] if more else [])])


def _lines(one: AgentReport) -> Iterator[str]:
    rows = list(_rows(one))
    name, observed = (max(len(row[column]) for row in rows) for column in (0, 1))
    yield f"{visible(one.agent, keep='')}: {_level(one)}"
    for row in rows:
        yield f"  {row[0].ljust(name)}  {row[1].ljust(observed)}  {row[2]}".rstrip()


def _section(one: AgentReport) -> str:
    rows = "\n".join(f"| {name} | {observed} | {events} |" for name, observed, events in _rows(one))
    return f"## {_plain(one.agent)}\n\n{_level(one)}\n\n| | | events |\n|---|---|---|\n{rows}"


def _article(one: AgentReport) -> str:
    rows = "".join(
        f"<tr{_of_missing(observed)}><th>{escape(name)}</th><td>{escape(observed)}</td><td>{escape(events)}</td></tr>\n"
        for name, observed, events in _rows(one)
    )
    return f"<h2>{escape(visible(one.agent, keep=''))}</h2>\n<p>{escape(_level(one))}</p>\n<table>\n{rows}</table>\n"


def _plain(text: str) -> str:
    """A name in which Markdown finds nothing to format."""
    return "".join(f"\\{one}" if one in "\\`*_{}[]()#+-!|<>~&" else one for one in visible(text, keep=""))


def _of_missing(observed: str) -> str:
    return ' class="none"' if observed == NOT_OBSERVED else ""
