"""What the catalogue knows under a name, as Markdown for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from halo_lang import catalog
from halo_lang.assist.meanings import Entity
from halo_lang.catalog import DirectiveSpec, Method, ModelRoute, Parameter, ProviderSpec, RuleSpec, Signature

EFFECTS: Final = {
    "read": "reads only",
    "write": "changes something",
    "destructive": "changes something for good",
}
"""What a method does to the world, in words."""


def code(text: str) -> str:
    """A block of Halo code; the fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}halo\n{text}\n{fence}"


def entry_text(entity: Entity) -> str | None:
    """The documentation of a catalogue entry; None where there is none."""
    return _TEXTS[type(entity.entry)](entity, entity.entry) if entity.entry is not None else None


def method_text(title: str, method: Method) -> str:
    """The documentation of a method as it is written in the program: `Repo.get_issue`."""
    notes = [EFFECTS[method.effect]] if not title.startswith("System.") else []
    notes += ["may be repeated"] if method.idempotent and method.effect != "read" else []
    notes += ["lets the value flow on"] if method.passes else []
    given = f"Gives {method.result}." if method.result else ""
    noted = f"*{', '.join(notes)}*" if notes else ""
    parts = (method.doc, given, noted, *_parameters(method.signature), *_example(method.example))
    return _joined(code(f"{title}{method.signature}"), *parts)


def _directive(_: Entity, spec: DirectiveSpec) -> str:
    targets = " and ".join(f"{target}s" for target in spec.applies_to)
    title = code(f"@{spec.name}{_shown(spec.signature)}")
    return _joined(title, spec.doc, f"Stands above {targets}.", *_parameters(spec.signature), *_example(spec.example))


def _rule(_: Entity, spec: RuleSpec) -> str:
    title = code(f"policy … : {spec.name}{_shown(spec.signature)}")
    return _joined(title, spec.doc, *_extra(spec.extra), *_parameters(spec.signature), *_example(spec.example))


def _provider(_: Entity, spec: ProviderSpec) -> str:
    title = code(f"tool … : {spec.name}{_shown(spec.config)}")
    parts = (spec.doc, *_extra(spec.extra), methods_text(spec), *_parameters(spec.config))
    return _joined(title, *parts, *_example(spec.example))


def methods_text(spec: ProviderSpec) -> str:
    """The methods of a provider in one line."""
    names = ", ".join(f"`{method.name}{method.signature}`" for method in spec.methods)
    return f"Methods: {names}" if names else "Methods: any name; the server knows them."


def _parameter(entity: Entity, parameter: Parameter) -> str:
    return _joined(code(f"{entity.name}: {parameter.expected()}"), parameter.doc, *_limits(parameter))


def _limits(parameter: Parameter) -> Iterator[str]:
    if parameter.default is not None:
        yield f"Left out: `{json.dumps(parameter.default, ensure_ascii=False)}`."
    if parameter.secret:
        yield "Give it as `Env.NAME`, never as a text."


def _model(entity: Entity, route: ModelRoute) -> str:
    keys = " or ".join(f"`{key}`" for key in route.entry.keys)
    return _joined(
        code(entity.name),
        f"The model `{route.model}` of the service {route.entry.name}. {route.entry.doc}",
        f"Its key is read from {keys}." if keys else "It needs no key.",
    )


_TEXTS: Final[dict[type, Callable[..., str]]] = {
    DirectiveSpec: _directive,
    RuleSpec: _rule,
    ProviderSpec: _provider,
    Parameter: _parameter,
    ModelRoute: _model,
}

_CONTEXT: Final = {
    "context": "All that a run holds: `current`, `input`, `data`, `meta` and `trace`. Alone it is `context.current`.",
    "current": "The flowing value: what the stage before gave.",
    "input": "The arguments of the pipeline, by the names of its parameters.",
    "data": "The results so far: by `as` name, by method name, and as `Callee.method`.",
    "meta": "What the run did: cost, tokens, every call, policy violations.",
    "trace": "The hash chain of the stages so far.",
}
_TYPES: Final = {
    "String": "A text.",
    "Number": "Any number.",
    "Integer": "A whole number.",
    "Boolean": "`true` or `false`.",
    "Array": "A list; `Array<T>` says what is in it.",
    "List": "A list; `List<T>` says what is in it.",
    "Object": "An object with any keys.",
    "JSON": "An object with any keys.",
    "Any": "Any value at all.",
}


def _name(name: str) -> str | None:
    if name == "System":
        names = ", ".join(f"`{method.name}{method.signature}`" for method in catalog.SYSTEM_METHODS)
        return f"Built in: what needs no agent and no tool. Methods: {names}"
    return "Environment variables, in tool and store declarations only: `Env.NAME`." if name == "Env" else None


WORDS: Final[dict[str, Callable[[str], str | None]]] = {
    "context": _CONTEXT.get,
    "type": _TYPES.get,
    "name": _name,
}
"""What is known of names that are no entries, by what they are."""


def _shown(signature: Signature) -> str:
    empty = not signature.parameters and signature.rest is None and not signature.open_named
    return "" if empty else str(signature)


def _parameters(signature: Signature) -> Iterator[str]:
    """The parameters as a list, if there are any."""
    known = [*signature.parameters, *((signature.rest,) if signature.rest is not None else ())]
    lines = [f"- `{parameter.name}`: {parameter.expected()}. {parameter.doc}".rstrip() for parameter in known]
    if lines:
        yield "\n".join(lines)


def _example(example: str) -> Iterable[str]:
    return (f"For example `{example}`",) if example else ()


def _extra(extra: str | None) -> Iterable[str]:
    return (f"Needs the extra `{extra}`.",) if extra is not None else ()


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
