"""A policy rule that programs can use once this package is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from halo_lang.catalog import RuleSpec, Signature
from halo_lang.catalog.signature import optional
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Finding, Point


class NoCodenames:
    """`NoCodenames("Phoenix", "Blue Sky")`: names of projects do not leave the house.

    Made once a run, from the arguments of the rule. Texts are looked at in every view, so that a name is found however
    it is disguised; `raw_span` says where it stands in the text as it came.
    """

    spec = RuleSpec(
        "NoCodenames",
        Signature(
            (optional("block", "boolean", "Refuse the text instead.", default=False, named_only=True),),
            rest=optional("names", "string", "The names."),
            any_of=("names",),
        ),
        ("input", "output", "tool", "result"),
        "Replace the names of projects.",
        'NoCodenames("Phoenix")',
    )
    points: frozenset[Point] = frozenset({"input", "output", "tool", "result"})

    def __init__(self, args: JsonObject) -> None:
        names: list[str] = args["names"]
        if not all(names):
            raise ConfigError("NoCodenames: a name is empty; take it out")
        self._names = re.compile("|".join(map(re.escape, names)), re.IGNORECASE)
        self._block: bool = args.get("block", False)

    def evaluate(self, examined: Examined) -> Decision:
        """Decide about one text. The reason is shown to people and models: it never repeats what was found."""
        findings = tuple(self._found(examined))
        if not findings:
            return ALLOW
        if self._block:
            return Decision("block", "the text names a project")
        return Decision("redact", f"{len(findings)} names replaced", findings)

    def _found(self, examined: Examined) -> Iterator[Finding]:
        for view in examined.views:
            for name in self._names.finditer(view.text):
                start, end = view.raw_span(*name.span())
                yield Finding("PROJECT", start, end, value=name[0].lower())
