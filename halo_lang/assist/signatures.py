"""Signature help: what the argument list around a place takes, and which of its parameters the cursor is at."""

from __future__ import annotations

import json
from collections.abc import Iterator

from halo_lang.analysis import Analysis
from halo_lang.assist.cursor import Arguments, enclosing
from halo_lang.assist.described import Described, describe
from halo_lang.catalog.signature import Parameter
from halo_lang.records import record
from halo_lang.source import Span


@record
class ParameterHelp:
    """One parameter: where it stands in the label, and what it means."""

    span: Span
    documentation: str


@record
class SignatureHelp:
    """A signature in one line, `active` being the index of the parameter at the cursor, None for none."""

    label: str
    documentation: str
    parameters: tuple[ParameterHelp, ...]
    active: int | None


def signature_help(analysis: Analysis, offset: int) -> SignatureHelp | None:
    """The signature of the innermost argument list around an offset that anything is known about."""
    for arguments in enclosing(analysis, offset):
        described = describe(arguments, analysis)
        if described is not None:
            return _help(described, arguments)
    return None


def _help(described: Described, arguments: Arguments) -> SignatureHelp:
    opening, closing = described.brackets
    label = described.title + opening
    parameters: list[ParameterHelp] = []
    for text, documentation in _parts(described):
        label += ", " if parameters else ""
        parameters.append(ParameterHelp(Span(len(label), len(label) + len(text)), documentation))
        label += text
    more = ", …" if described.signature.open_named else ""
    return SignatureHelp(f"{label}{more}{closing}", described.doc, tuple(parameters), _active(described, arguments))


def _parts(described: Described) -> Iterator[tuple[str, str]]:
    """Each parameter as it is shown, and what it means."""
    yield from ((text, "") for text in described.leading)
    for parameter in _shown(described):
        is_rest = parameter is described.signature.rest
        optional = "…" if is_rest else "" if parameter.required else "?"
        default = f" = {json.dumps(parameter.default)}" if parameter.default is not None else ""
        text = f"{parameter.name}{optional}: {described.type_of(parameter)}{default}"
        yield text, explained(parameter)


def explained(parameter: Parameter) -> str:
    """What a parameter means and takes, in a sentence or two."""
    takes = "" if parameter.type == "any" else f"Takes {parameter.expected()}."
    aliases = f"Also written {', '.join(parameter.aliases)}." if parameter.aliases else ""
    return " ".join(filter(None, (parameter.doc, takes, aliases)))


def _shown(described: Described) -> list[Parameter]:
    """Those by position first, as they are written first."""
    signature = described.signature
    by_position = [parameter for parameter in signature.parameters if not parameter.named_only]
    by_name = [parameter for parameter in signature.parameters if parameter.named_only]
    return [*by_position, *([signature.rest] if signature.rest is not None else []), *by_name]


def _active(described: Described, arguments: Arguments) -> int | None:
    leading = len(described.leading)
    if arguments.index < 0:
        return max(0, leading + arguments.index)
    parameter = described.parameter(arguments)
    shown = _shown(described)
    return next((leading + number for number, one in enumerate(shown) if one is parameter), None)
