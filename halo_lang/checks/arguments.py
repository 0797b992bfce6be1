"""Arguments fit their signatures: all there and none too many (HL302), of the right type and in range (HL303),
no unknown config key (HL304), positional ones first (HL305), each name once (HL205)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from halo_lang import nodes
from halo_lang.catalog.signature import Bound, Signature, required
from halo_lang.checks.groups import Group, groups
from halo_lang.checks.literals import flaw
from halo_lang.diagnostics import Diagnostic, Fix, Related, error
from halo_lang.nodes import Argument, Declaration, Name
from halo_lang.source import Span
from halo_lang.spelling import nearest
from halo_lang.symbols import Scope

_LIST: Final = required("list", "list")
"""What an `each` goes through."""


def check(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """Everything about the arguments in a declaration."""
    for group in groups(declaration, scope):
        if group.args or group.signature is not None:
            yield from _check(group, scope)
    if isinstance(declaration, nodes.Pipeline):
        for stage in declaration.stages:
            if isinstance(stage, nodes.EachStage) and (found := flaw(_LIST, stage.source, fixed=False)) is not None:
                yield error("HL303", f"each {found.text}", found.span, hint="name a list, or write one: `[1, 2]`")


def _check(group: Group, scope: Scope) -> Iterator[Diagnostic]:
    named: dict[str, Argument] = {}
    for argument in group.args:
        if argument.name is not None:
            named.setdefault(argument.name.text, argument)
    positional = [argument for argument in group.args if argument.name is None]
    yield from _repeated(group.args, named)
    late = _late(group.args)
    order = _in_order(group, late, scope) if late else None
    yield from (_misplaced(group, argument, order) for argument in late)
    if group.signature is None:
        return
    bound = group.signature.bind(positional, named)
    # What a positional argument in the wrong place means is anybody's guess, so it is not judged twice.
    if not late:
        yield from _unbound(group, bound, positional, named)
    yield from _ill_typed(group, bound)


def _repeated(args: Sequence[Argument], named: dict[str, Argument]) -> Iterator[Diagnostic]:
    for argument in args:
        if argument.name is not None and named[argument.name.text] is not argument:
            yield _twice(argument.name, named[argument.name.text].span)


def _late(args: Sequence[Argument]) -> list[Argument]:
    first = next((index for index, argument in enumerate(args) if argument.name is not None), len(args))
    return [argument for argument in args[first:] if argument.name is None]


def _misplaced(group: Group, argument: Argument, order: Fix | None) -> Diagnostic:
    message = f"{group.what}: a positional argument stands behind a named one"
    hint = "put it before the named arguments, or give it a name"
    return error("HL305", message, argument.span, hint=hint, fix=order)


def _in_order(group: Group, late: Sequence[Argument], scope: Scope) -> Fix | None:
    """The edit that puts the positional arguments first, where any number of them may stand and no comment is lost."""
    if group.signature is None or group.signature.rest is None:
        return None
    first = next(index for index, argument in enumerate(group.args) if argument.name is not None)
    moved = [argument for argument in group.args[first:] if argument.span.start <= late[-1].span.start]
    gaps = (Span(one.span.end, other.span.start) for one, other in pairwise(moved))
    if any(scope.source(gap).strip() != "," for gap in gaps):
        return None
    ordered = sorted(moved, key=lambda argument: argument.name is not None)
    text = ", ".join(scope.source(argument.span) for argument in ordered)
    return Fix(Span(moved[0].span.start, moved[-1].span.end), text)


def _unbound(
    group: Group, bound: Bound[Argument], positional: list[Argument], named: dict[str, Argument]
) -> Iterator[Diagnostic]:
    signature = bound.signature
    unknown = any(problem.kind == "unknown" for problem in bound.problems)
    nameless = _nameless(bound, positional)
    for problem in bound.problems:
        name = named[problem.name].name if problem.name in named else None
        match problem.kind:
            case "surplus" if problem.index in nameless:
                yield _without_name(group, nameless[problem.index], positional[problem.index])
            case "surplus":
                yield _surplus(group, signature, positional[problem.index])
            case "missing" if problem.name in nameless.values():
                pass
            case "unknown" if name is not None:
                yield _unknown(group, signature, named[problem.name], name)
            case "duplicate" if name is not None:
                yield _twice(name, bound.arguments[signature.by_name[name.text].name].span)
            case "missing" if not unknown:
                # A misspelt name leaves its parameter without a value; that is one mistake, not two.
                hint = f"write {_usage(group, signature)}"
                yield error("HL302", f"{group.what} needs `{problem.name}`", group.close, hint=hint)
            case _:
                pass


def _nameless(bound: Bound[Argument], positional: list[Argument]) -> dict[int, str]:
    """The surplus arguments, by index, that lack no more than the name of a parameter which nothing else gives."""
    surplus = [problem.index for problem in bound.problems if problem.kind == "surplus"]
    known = bound.signature.by_name
    missing = [p.name for p in bound.problems if p.kind == "missing" and p.name in known and known[p.name].named_only]
    if len(surplus) != len(missing):
        return {}
    fitting = zip(surplus, missing, strict=True)
    return {at: name for at, name in fitting if flaw(known[name], positional[at].value, fixed=True) is None}


def _without_name(group: Group, name: str, argument: Argument) -> Diagnostic:
    message, place = f"{group.what} takes this argument by its name, `{name}`", argument.span
    return error("HL302", message, place, hint=f"write `{name}:` in front of it", fix=Fix(_before(place), f"{name}: "))


def _before(place: Span) -> Span:
    return Span(place.start, place.start)


def _surplus(group: Group, signature: Signature, argument: Argument) -> Diagnostic:
    count = sum(not parameter.named_only for parameter in signature.parameters)
    takes = f"{count} positional argument{'' if count == 1 else 's'}" if count else "no positional arguments"
    return error("HL302", f"{group.what} takes {takes}", argument.span, hint=f"write {_usage(group, signature)}")


def _unknown(group: Group, signature: Signature, argument: Argument, name: Name) -> Diagnostic:
    guess = nearest(name.text, signature.names)
    hint = f"did you mean `{guess.name}`?" if guess else f"write {_usage(group, signature)}"
    if group.unknown == "HL304" and guess is None:
        hint = f"there are {', '.join(signature.names)}" if signature.names else "it takes none"
    meant = guess is not None and flaw(signature.by_name[guess.name], argument.value, group.fixed) is None
    fix = Fix.of(guess, name.span) if meant else None
    place = name.span if group.unknown == "HL304" else argument.span
    what = "setting" if group.unknown == "HL304" else "argument"
    return error(group.unknown, f"{group.what} has no {what} `{name.text}`", place, hint=hint, fix=fix)


def _ill_typed(group: Group, bound: Bound[Argument]) -> Iterator[Diagnostic]:
    signature = bound.signature
    pairs = [(signature.by_name[name], argument) for name, argument in bound.arguments.items()]
    if signature.rest is not None:
        pairs += [(signature.rest, argument) for argument in bound.rest]
    for parameter, argument in sorted(pairs, key=lambda pair: pair[1].span):
        found = flaw(parameter, argument.value, group.fixed)
        if found is not None:
            name = argument.name.text if argument.name is not None else parameter.name
            fix = Fix(found.span, found.meant) if found.meant is not None else None
            yield error("HL303", f"{group.what}: `{name}` {found.text}", found.span, hint=found.hint, fix=fix)


def _twice(name: Name, first: Span) -> Diagnostic:
    related = (Related("first given here", first),)
    return error("HL205", f"`{name.text}` is given twice", name.span, hint="remove one", related=related)


def _usage(group: Group, signature: Signature) -> str:
    return f"`{group.what}{signature}`"
