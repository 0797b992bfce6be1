"""Values as a program writes them, compiled once: constants, paths, templates and lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from halo_lang import nodes
from halo_lang.records import record
from halo_runtime.errors import RunError
from halo_runtime.json_types import MISSING, Json, Missing, is_object
from halo_runtime.templates import Template, WrittenText, compile_template

Segments: TypeAlias = tuple[str, ...]

LONGEST_TEXT = 100_000_000
"""Characters that a filled-in string may have. Anything near it is a program that feeds on itself."""


class Scope(Protocol):
    """What values are read from: a pipeline's call in progress (Frame), or one that is only foreseen."""

    @property
    def current(self) -> Json:
        """The flowing value."""
        ...

    def read(self, segments: Segments) -> Json | Missing:
        """What a path leads to, MISSING where it leads nowhere."""
        ...


class Expression(Protocol):
    """A compiled value. `paths` are all places of the context that it reads."""

    @property
    def paths(self) -> tuple[Segments, ...]: ...

    def evaluate(self, scope: Scope) -> Json: ...


@record
class Constant:
    """A literal."""

    value: Json
    paths: tuple[Segments, ...] = ()

    def evaluate(self, scope: Scope) -> Json:
        return self.value


@record
class Read:
    """A path. A missing one is null; `name` is what a bare declaration's name stands for, itself."""

    segments: Segments
    name: str | None

    @property
    def paths(self) -> tuple[Segments, ...]:
        return (self.segments,)

    def evaluate(self, scope: Scope) -> Json:
        value = scope.read(self.segments)
        return self.name if value is MISSING else value


@record
class Filled:
    """A string with placeholders."""

    template: Template

    @property
    def paths(self) -> tuple[Segments, ...]:
        return self.template.paths

    def evaluate(self, scope: Scope) -> Json:
        text = self.template.fill(scope.read)
        if len(text) > LONGEST_TEXT:
            raise RunError(f"a text grew beyond {LONGEST_TEXT:,} characters; is a stage doubling its own result?")
        return text


@record
class Listed:
    """`[a, b]`: the values of its items."""

    items: tuple[Expression, ...]
    paths: tuple[Segments, ...]

    def evaluate(self, scope: Scope) -> Json:
        return [item.evaluate(scope) for item in self.items]


@record
class Flowing:
    """What an argument is that is left out and `flows`: a field of the flowing value, else that value itself."""

    name: str
    paths: tuple[Segments, ...] = (("context", "current"),)

    def evaluate(self, scope: Scope) -> Json:
        value = scope.current
        if not is_object(value):
            return value
        if self.name not in value:
            raise RunError(f"`{self.name}` is left out, and what flows in has no field of that name; write it")
        return value[self.name]


def compile_value(node: nodes.ArgumentValue, declared: frozenset[str]) -> Expression:
    """The expression of a value; `declared` are the names of the program's declarations."""
    match node:
        case nodes.String():
            return compile_text(node.value)
        case nodes.Number() | nodes.Boolean():
            return Constant(node.value)
        case nodes.Duration() | nodes.ModelRef():
            return Constant(node.text)
        case nodes.Null():
            return Constant(None)
        case nodes.Path():
            bare = len(node.parts) == 1 and node.root in declared
            return Read(node.segments, node.root if bare else None)
        case nodes.ListValue():
            return _compile_list([compile_value(item, declared) for item in node.items])
        case nodes.Rule():
            raise AssertionError("rules are arguments of policies only")


def compile_text(text: str) -> Expression:
    """The expression of a string literal's text: a constant unless it has placeholders."""
    if "{{" not in text:
        return Constant(text)
    template = compile_template(text)
    return Constant(text) if template.is_constant else Filled(template)


def _compile_list(items: Sequence[Expression]) -> Expression:
    if all(isinstance(item, Constant) for item in items):
        return Constant([item.value for item in items if isinstance(item, Constant)])
    return Listed(tuple(items), tuple(path for item in items for path in item.paths))


def evaluate_written(expression: Expression, scope: Scope) -> Json:
    """The value of an argument that is run as code: a text knows what of it the program wrote."""
    value = expression.evaluate(scope)
    if not isinstance(value, str):
        return value
    match expression:
        case Constant():
            return WrittenText((value,))
        case Filled(template):
            return template.fill_apart(scope.read)
        case _:
            return WrittenText(("", ""), (value,))


def all_paths(expressions: Sequence[Expression]) -> tuple[Segments, ...]:
    """Every path that any of the expressions reads, once."""
    return tuple(dict.fromkeys(path for expression in expressions for path in expression.paths))
