"""The closest entries of equipped `VectorStore`s, which go into the prompt by themselves (spec 5).

Looking for them is an effect of the run: a replay looks for nothing, and what was found then stands in the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from halo_lang import catalog, nodes
from halo_lang.records import record
from halo_runtime.engine.calls.tool import call_tool
from halo_runtime.engine.effects import NO_ORIGINS, Origins
from halo_runtime.engine.expressions import Scope
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import examine
from halo_runtime.engine.plan import Plan
from halo_runtime.json_types import Json, is_list, is_object
from halo_runtime.policies.base import Examined, PolicyCall
from halo_runtime.prompts import StoreMatches
from halo_runtime.values import compact, text_of

if TYPE_CHECKING:
    from halo_runtime.engine.calls.agent import AgentCall

SEARCH = "search"


@record
class Library:
    """A store that adds to an agent's prompt. `asks`: a model service embeds the query, so that leaves the machine."""

    store: str
    asks: bool

    @property
    def label(self) -> str:
        """What its matches are called where they are given ahead: `Docs.search`."""
        return f"{self.store}.{SEARCH}"


def libraries(plan: Plan, equipped: Sequence[str]) -> Iterator[Library]:
    """The vector stores among what an agent equips."""
    for name in equipped:
        declaration = plan.declaration(name, nodes.Provider)
        spec = catalog.provider(declaration.provider.text)
        if spec is not None and spec.name == "VectorStore":
            positional = [argument.value for argument in declaration.args if argument.name is None]
            named = {argument.name.text: argument.value for argument in declaration.args if argument.name is not None}
            yield Library(name, "model" in spec.config.bind(positional, named).arguments)


def query_of(call: AgentCall, scope: Scope) -> str:
    """What a call is about: its input, else the instructions and parameters that say it."""
    values: list[Json] = [expression.evaluate(scope) for expression in call.inputs]
    if not values and not call.had_placeholders:
        values = [scope.current]
    if not values:
        said = (*call.instructions, *call.parameters.values())
        values = [expression.evaluate(scope) for expression in said]
    return "\n".join(text_of(value) for value in values).strip()


async def find_matches(
    frame: Frame, path: str, call: AgentCall, guarded: PolicyCall, origins: Origins
) -> tuple[tuple[StoreMatches, ...], Origins]:
    """The matches of each store, and the effects that they came from. Raises ToolError.

    `origins` is what the call's input came from. A query that goes to a model service has gone through the rules for
    what is sent, as the prompt will; where they block it nothing is looked for, and the prompt is blocked next.
    """
    found: list[StoreMatches] = []
    came_from = NO_ORIGINS
    query = frame.run.secrets.text(query_of(call, frame)) if call.libraries else ""
    for number, library in enumerate(call.libraries):
        place = f"{path}/context{number}"
        asked = await _allowed(frame, place, call, guarded, query) if library.asks else query
        if asked:
            entries, place = await call_tool(frame, place, library.store, SEARCH, {"query": asked}, origins=origins)
            found.append(shown_matches(library, entries))
            came_from |= {place}
    return tuple(found), came_from


def shown_matches(library: Library, entries: Json) -> StoreMatches:
    """Matches as the prompt has them, with the ids that an answer can cite; how close they are says a model nothing."""
    items = entries if is_list(entries) else [entries]
    return StoreMatches(library.store, tuple(_shown(item) for item in items))


def _shown(entry: Json) -> Json:
    """`[id] {metadata}` on a line, then the text as it is: escaped, as JSON has it, models read it badly.

    What is no entry stays as it is: it was given ahead, to see the prompt.
    """
    if not is_object(entry) or not isinstance(entry.get("id"), str) or not isinstance(entry.get("text"), str):
        return entry
    metadata = entry.get("metadata")
    about = f" {compact(metadata)}" if metadata else ""
    return f"[{' '.join(entry['id'].split())}]{about}\n{entry['text']}"


async def _allowed(frame: Frame, path: str, call: AgentCall, guarded: PolicyCall, query: str) -> str:
    """The query as it may leave the run; empty where it may not."""
    rules = frame.run.rules(call.agent)
    verdict = await examine(frame, path, rules, Examined("input", query, guarded, role="user"))
    return "" if verdict.reasons else verdict.text
