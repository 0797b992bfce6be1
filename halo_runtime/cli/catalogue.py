"""What `halo providers` says: the catalogue of tools and stores, as text for people and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator

from halo_lang import catalog
from halo_lang.assist.entries import EFFECTS
from halo_lang.catalog import Method, Parameter, ProviderSpec, Signature
from halo_lang.excerpt import visible
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import emit, paint, say, tell, tell_json
from halo_runtime.cli.usage import UsageError, did_you_mean
from halo_runtime.extras import PACKAGES, install_line, is_installed
from halo_runtime.json_types import Json, JsonObject


def list_providers(*, as_json: bool) -> int:
    """All providers, each with what it needs."""
    specs = list(catalog.providers())
    if as_json:
        tell_json({"providers": [_document(spec) for spec in specs]})
    else:
        rows = [(spec.name, _need(spec), spec.doc) for spec in specs]
        tell("\n".join([*_table(rows), "", "`halo providers NAME` says what one takes and does."]))
    for broken in catalog.broken_packages():
        say(f"{paint('warning', 'warning', sys.stderr)}: {visible(broken.name)} of {visible(broken.package)}"
            f" is left out: {visible(broken.reason)}")  # fmt: skip
    return ExitCode.COMPLETED


def show_provider(name: str, *, as_json: bool) -> int:
    """One provider. UsageError for a name that is none."""
    spec = catalog.provider(name) or _in_other_letters(name)
    if spec is None:
        why = catalog.why_missing(name)
        hint = why or did_you_mean(name, [spec.name for spec in catalog.providers()])
        raise UsageError(f"there is no provider {name}", hint=hint)
    if as_json:
        tell_json(_document(spec))
    else:
        emit(sys.stdout, "\n".join(_page(spec)) + "\n")
    return ExitCode.COMPLETED


def _in_other_letters(name: str) -> ProviderSpec | None:
    return next((spec for spec in catalog.providers() if spec.name.casefold() == name.casefold()), None)


# --- text ---------------------------------------------------------------------------------------------------------


def _page(spec: ProviderSpec) -> Iterator[str]:
    yield f"{paint('strong', spec.name, sys.stdout)}: {visible(spec.doc)}"
    yield f"  {visible(spec.example)}"
    if (need := _need(spec)) and spec.extra is not None:
        yield f"  {need}: {install_line(spec.extra)}" if spec.extra in PACKAGES else f"  {need}"
    if settings := list(_parameters(spec.config)):
        yield from ("", paint("strong", "Settings", sys.stdout), *settings)
    yield from ("", paint("strong", "Methods", sys.stdout))
    for method in spec.methods:
        yield from _method(method)
    if spec.open_methods is not None:
        yield from _method(spec.open_methods)


def _method(method: Method) -> Iterator[str]:
    yield f"  {paint('strong', method.name, sys.stdout)}{method.signature}"
    gives = f" Gives {method.result}." if method.result else ""
    yield f"      {visible(method.doc)}{visible(gives)}"
    yield f"      {_effect(method)}"
    yield from (f"    {line}" for line in _parameters(method.signature))
    if method.example:
        yield f"      e.g. {visible(method.example)}"


def _effect(method: Method) -> str:
    repeated = ", may be repeated" if method.idempotent and method.effect != "read" else ""
    words = f"{EFFECTS[method.effect]}{repeated}"
    return words[0].upper() + words[1:] + "."


def _parameters(signature: Signature) -> Iterator[str]:
    known = [*signature.parameters, *((signature.rest,) if signature.rest is not None else ())]
    rows = [(f"  {parameter.name}", parameter.expected(), _about(parameter)) for parameter in known]
    return iter(_table(rows))


def _about(parameter: Parameter) -> str:
    parts = [parameter.doc]
    if parameter.required and not parameter.flows:
        parts.append("Needed.")
    elif parameter.default is not None:
        parts.append(f"Left out: {json.dumps(parameter.default, ensure_ascii=False)}.")
    if parameter.variables:
        parts.append(f"Left out, it is read from {' or '.join(parameter.variables)}.")
    return " ".join(part for part in parts if part)


def _need(spec: ProviderSpec) -> str:
    if spec.extra is None:
        return ""
    there = spec.extra in PACKAGES and is_installed(spec.extra)
    return f"extra `{spec.extra}`" + ("" if there else ", not installed")


def _table(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    lines = [tuple(map(visible, row)) for row in rows]
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(2)]
    return ["  ".join([*map(str.ljust, line[:2], widths), line[2]]).rstrip() for line in lines]


# --- JSON ---------------------------------------------------------------------------------------------------------


def _document(spec: ProviderSpec) -> JsonObject:
    return {
        "name": spec.name,
        "aliases": list(spec.aliases),
        "doc": spec.doc,
        "example": spec.example,
        "extra": spec.extra,
        "installed": spec.extra is None or (spec.extra in PACKAGES and is_installed(spec.extra)),
        "settings": _schema(spec.config),
        "methods": [_method_document(method) for method in spec.methods],
        "anyMethod": None if spec.open_methods is None else _method_document(spec.open_methods),
    }


def _method_document(method: Method) -> JsonObject:
    return {
        "name": method.name,
        "doc": method.doc,
        "arguments": _schema(method.signature),
        "result": method.result,
        "effect": method.effect,
        "idempotent": method.idempotent,
        "example": method.example,
    }


def _schema(signature: Signature) -> Json:
    return signature.json_schema()  # pyright: ignore[reportReturnType] - a schema is JSON
