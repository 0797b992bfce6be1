"""Findings in the Static Analysis Results Interchange Format, SARIF 2.1.0 (OASIS), for code scanning services."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from halo_lang.catalog.codes import CODES, explain, section
from halo_lang.catalog.specs import Code
from halo_lang.diagnostics import Diagnostic, Fix, Related
from halo_lang.source import Source, Span
from halo_runtime.cli.findings import Report
from halo_runtime.cli.places import repository_path
from halo_runtime.json_types import JsonObject
from halo_runtime.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def log(reports: Sequence[Report]) -> JsonObject:
    """A log with one run; its rules are the codes that were found."""
    found = {diagnostic.code for report in reports for diagnostic in report.diagnostics}
    rules = [code for code in CODES if code.name in found]
    number = {code.name: index for index, code in enumerate(rules)}
    results = [_result(each, report.source, number[each.code]) for report in reports for each in report.diagnostics]
    driver = {"name": "halo", "version": __version__, "rules": [_rule(code) for code in rules]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: Code) -> JsonObject:
    return {
        "id": code.name,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.text},
        "help": {"text": explain(code.name), "markdown": section(code)},
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
    }


def _result(found: Diagnostic, source: Source, rule: int) -> JsonObject:
    message = f"{found.message}\nhint: {found.hint}" if found.hint else found.message
    result: JsonObject = {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": _LEVELS[found.severity],
        "message": {"text": message},
        "locations": [{"physicalLocation": _location(found.span, source)}],
    }
    if found.related:
        result["relatedLocations"] = [_related(each, source) for each in found.related]
    if found.fix:
        result["fixes"] = [_fix(found.fix, source)]
    return result


def _related(related: Related, source: Source) -> JsonObject:
    return {"message": {"text": related.message}, "physicalLocation": _location(related.span, source)}


def _fix(fix: Fix, source: Source) -> JsonObject:
    replacement = {"deletedRegion": _region(fix.span, source), "insertedContent": {"text": fix.text}}
    return {"artifactChanges": [{"artifactLocation": _artifact(source.path), "replacements": [replacement]}]}


def _location(span: Span, source: Source) -> JsonObject:
    return {"artifactLocation": _artifact(source.path), "region": _region(span, source)}


def _artifact(path: str) -> JsonObject:
    """A reference from the repository's root, percent-encoded byte by byte; a file of another place by its full URI."""
    place = repository_path(path)
    written = quote(bytes(place))
    return {"uri": f"file://{written}"} if place.is_absolute() else {"uri": written, "uriBaseId": "%SRCROOT%"}


def _region(span: Span, source: Source) -> JsonObject:
    start, end = source.position(span.start), source.position(span.end)
    return {"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column}
