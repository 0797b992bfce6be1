"""What an argument list takes: the signature of whatever stands in front of its bracket, with words for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.analysis import Analysis
from halo_lang.assist.cursor import Arguments
from halo_lang.assist.frames import FrameKind
from halo_lang.catalog.signature import Method, Parameter, Signature
from halo_lang.records import record
from halo_lang.symbols import Interface, Kind


@record
class Described:
    """The parameters of an argument list.

    `title` is what is written in front of the bracket. `leading` are the parts in front of those that the signature
    describes: an agent's model, the list of an `each`. `types` has the declared types of a pipeline's parameters.
    """

    title: str
    signature: Signature
    doc: str = ""
    leading: tuple[str, ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    brackets: str = "()"

    def type_of(self, parameter: Parameter) -> str:
        """The type of a parameter in a word or two."""
        return dict(self.types).get(parameter.name) or type_label(parameter)

    def parameter(self, arguments: Arguments) -> Parameter | None:
        """The parameter that the argument at the cursor is for."""
        if arguments.argument:
            return self.signature.by_name.get(arguments.argument)
        if arguments.index < 0:
            return None
        slots = [parameter for parameter in self.signature.parameters if not parameter.named_only]
        return slots[arguments.positional] if arguments.positional < len(slots) else self.signature.rest


def describe(arguments: Arguments, analysis: Analysis) -> Described | None:
    """The description of an argument list; None where nothing is known about it."""
    find = _DESCRIPTIONS.get(arguments.kind)
    return find(arguments, analysis) if find is not None else None


def provider_of(tool: str, analysis: Analysis) -> catalog.ProviderSpec | None:
    """The catalogue's entry for the provider of a declared tool or store."""
    interface = analysis.whole.symbols.interfaces.get(tool)
    return catalog.provider(interface.provider) if interface is not None and interface.provider else None


def type_label(parameter: Parameter) -> str:
    """What a parameter takes, in a word or two: `duration`, `list of texts`, `"fail" | "keep" | "drop"`."""
    if parameter.choices:
        quoted = parameter.type not in ("name", "pattern")
        return " | ".join(f'"{choice}"' if quoted else choice for choice in parameter.choices)
    return f"list of {parameter.items}" if parameter.type == "list" and parameter.items != "any" else parameter.type


def type_text(type_: nodes.TypeRef) -> str:
    """A type as it is written."""
    names: list[str] = []
    inner: nodes.TypeRef | None = type_
    while inner is not None:
        names.append(inner.name.text)
        inner = inner.item
    return "<".join(names) + ">" * (len(names) - 1)


def _call(arguments: Arguments, analysis: Analysis) -> Described | None:
    if arguments.name == "System":
        return _method("System", catalog.system_method(arguments.method))
    interface = analysis.whole.symbols.interfaces.get(arguments.name)
    find = _CALLEES.get(interface.kind) if interface is not None else None
    return find(arguments, analysis, interface) if find is not None and interface is not None else None


def _method(owner: str, method: Method | None, written: str = "") -> Described | None:
    if method is None:
        return None
    doc = f"{method.doc} Gives {method.result}." if method.result else method.doc
    return Described(f"{owner}.{method.name or written}", method.signature, doc)


def _pipeline(arguments: Arguments, analysis: Analysis, interface: Interface) -> Described:
    pipeline = analysis.program.find(arguments.name)
    fields, doc = (), ""
    if isinstance(pipeline, nodes.Pipeline):
        fields, doc = pipeline.params, f"Runs the pipeline, which gives {type_text(pipeline.returns)}."
    types = tuple((field.name.text, type_text(field.type)) for field in fields)
    parameters = tuple(Parameter(name, required=True) for name in dict.fromkeys(interface.parameters))
    return Described(arguments.name, Signature(parameters), doc, types=types)


def _tool(arguments: Arguments, analysis: Analysis, _: Interface) -> Described | None:
    spec = provider_of(arguments.name, analysis)
    method = spec.method(arguments.method) if spec is not None else None
    return _method(arguments.name, method, arguments.method)


def _agent(arguments: Arguments, analysis: Analysis, _: Interface) -> Described:
    """The settings of the call, and what the tool takes that runs before the prompt (`tool: Repo`)."""
    title = f"{arguments.name}.{arguments.method}"
    settings = catalog.CALL_SETTINGS
    spec = provider_of(arguments.given.get("tool", ""), analysis)
    method = spec.method(arguments.method) if spec is not None else None
    own = method.signature.parameters if method is not None else ()
    further = tuple(_named(parameter) for parameter in own if parameter.name not in settings.by_name)
    signature = Signature((*further, *settings.parameters), settings.rest, open_named=True)
    return Described(title, signature, "Texts are instructions, other values are inputs; further names are parameters.")


def _named(parameter: Parameter) -> Parameter:
    """The parameter as one that is given by name only: by position an agent's call takes inputs."""
    return Parameter(
        parameter.name,
        parameter.type,
        parameter.doc,
        parameter.required,
        choices=parameter.choices,
        items=parameter.items,
        named_only=True,
    )


_CALLEES: Final[dict[Kind, Callable[[Arguments, Analysis, Interface], Described | None]]] = {
    Kind.PIPELINE: _pipeline,
    Kind.TOOL: _tool,
    Kind.AGENT: _agent,
}


def _provider(arguments: Arguments, _: Analysis) -> Described | None:
    spec = catalog.provider(arguments.name)
    return Described(spec.name, spec.config, spec.doc) if spec is not None else None


def _rule(arguments: Arguments, _: Analysis) -> Described | None:
    spec = catalog.rule(arguments.name)
    return Described(spec.name, spec.signature, spec.doc) if spec is not None else None


def _directive(arguments: Arguments, _: Analysis) -> Described | None:
    spec = catalog.directive(arguments.name)
    return Described(f"@{spec.name}", spec.signature, spec.doc) if spec is not None else None


def _settings(arguments: Arguments, _: Analysis) -> Described:
    title, doc = f"agent {arguments.name} ", "A model and its settings."
    return Described(title, catalog.AGENT_SETTINGS, doc, ("model",), brackets="[]")


def _form(title: str, signature: Signature, doc: str, *leading: str) -> Callable[[Arguments, Analysis], Described]:
    described = Described(title, signature, doc, leading)
    return lambda _, __: described


_DESCRIPTIONS: Final[dict[FrameKind, Callable[[Arguments, Analysis], Described | None]]] = {
    FrameKind.CALL: _call,
    FrameKind.PROVIDER: _provider,
    FrameKind.RULE: _rule,
    FrameKind.DIRECTIVE: _directive,
    FrameKind.SETTINGS: _settings,
    FrameKind.EACH: _form("each", catalog.EACH, "Calls once for each item of a list.", "item in list"),
    FrameKind.YIELD: _form("yield", catalog.YIELD, "Asks a person; the answer flows on."),
    FrameKind.LOOP: _form("loop", catalog.LOOP, "Goes back to an agent's earlier stage.", "Agent", '"condition"'),
    FrameKind.LISTEN: _form("listen", Signature(), "Waits for an event from outside.", "Source.Event"),
}
