"""`AllowModels(…)` and `DenyModels(…)`: which models an agent's calls may go to (spec 6)."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Final

from halo_lang import catalog
from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule

_POINTS: Final[frozenset[Point]] = frozenset({"input"})
_VERSION: Final = re.compile(r"(?:[-@](?:v?\d{3,8}(?:-\d\d-\d\d)?|\d{4}-\d\d|latest))?(?::[\w.-]+)?", re.IGNORECASE)
"""What may follow the name of a model where a version of it is told: `-2024-07-18`, `-0613`, `@20250514`, `:latest`."""


@record
class ModelRule:
    """Models by their ids in any letter case, `*` for any part; with `allowed` none but these, else none of these.

    It looks at the call and at no text: at the id that is asked for, once what the command line or `halo.toml` says is
    in it, and at the one that the service says has answered.
    """

    patterns: tuple[str, ...]
    allowed: bool
    points: frozenset[Point] = _POINTS

    def evaluate(self, examined: Examined) -> Decision:
        """Block a call of a model that may not be used."""
        model = examined.call.model
        listed = any(fnmatchcase(one, pattern) for one in _spellings(model) for pattern in self.patterns)
        return ALLOW if listed == self.allowed else Decision("block", f"the model {model} may not be used")


def allow_models(args: JsonObject) -> PolicyRule:
    """`AllowModels("openai/*", "local/smollm2")`."""
    return ModelRule(_patterns(args), allowed=True)


def deny_models(args: JsonObject) -> PolicyRule:
    """`DenyModels("openrouter/*")`."""
    return ModelRule(_patterns(args), allowed=False)


def answering_id(asked: str, answered: str | None) -> str | None:
    """The id of the model that a service says has answered, as a program would write it; None where it is the one that
    was asked, or a version of it (`gpt-4o-mini-2024-07-18` is `gpt-4o-mini`)."""
    route = catalog.model_route(asked)
    name = asked if route is None else route.model
    if answered is None or _is_version(name, answered) or _is_version(name, answered.partition("/")[2]):
        return None
    return answered if route is None else f"{route.entry.name}/{answered}"


def _is_version(name: str, answered: str) -> bool:
    """Whether a model is the one of that name in some version: `gpt-4o-mini` is none of `gpt-4o`."""
    plain = name.partition(":")[0].lower().removesuffix("-latest")
    return answered.lower().startswith(plain) and _VERSION.fullmatch(answered, len(plain)) is not None


def _patterns(args: JsonObject) -> tuple[str, ...]:
    return tuple(spelling for written in args["models"] for spelling in _spellings(written))


def _spellings(model: str) -> set[str]:
    """An id in lower case, also with its service's own prefix: `gpt-4o` is `openai/gpt-4o`, `gemini/x` `google/x`."""
    model = model.lower()
    route = catalog.model_route(model)
    return {model} if route is None else {model, f"{route.entry.name}/{route.model}"}
