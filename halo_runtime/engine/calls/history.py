"""The conversations of equipped `File` stores: what is remembered goes into the prompt, what is said is kept (spec 5).

Both are effects of the run: a replay reads nothing again and keeps nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from halo_lang import catalog, nodes
from halo_lang.records import record
from halo_runtime.engine.calls.tool import call_tool
from halo_runtime.engine.effects import Origins
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import BoundRule
from halo_runtime.engine.needs import tokens_of_text
from halo_runtime.engine.plan import Plan
from halo_runtime.json_types import JsonObject
from halo_runtime.models.base import Message


@record
class History:
    """A store that remembers for an agent. None leaves a limit out."""

    store: str
    max_turns: int | None = None
    max_tokens: int | None = None


def histories(plan: Plan, equipped: Sequence[str]) -> Iterator[History]:
    """The conversation stores among what an agent equips."""
    for name in equipped:
        declaration = plan.declaration(name, nodes.Provider)
        spec = catalog.provider(declaration.provider.text)
        if spec is None or spec.name != "File":
            continue
        positional = [argument.value for argument in declaration.args if argument.name is None]
        named = {argument.name.text: argument.value for argument in declaration.args if argument.name is not None}
        settings = spec.config.bind(positional, named).arguments
        yield History(name, _number(settings.get("maxTurns")), _number(settings.get("maxTokens")))


def remembered(turns: Sequence[JsonObject], history: History) -> tuple[Message, ...]:
    """The last turns that the limits leave room for, each whole; an answer without its question is left out."""
    kept: list[JsonObject] = []
    tokens = 0
    for turn in reversed(turns):
        tokens += tokens_of_text(turn["text"])
        too_many = history.max_turns is not None and len(kept) == history.max_turns
        if too_many or (history.max_tokens is not None and tokens > history.max_tokens):
            break
        kept.append(turn)
    while kept and kept[-1]["role"] == "assistant":
        kept.pop()
    return tuple(Message(turn["role"], turn["text"]) for turn in reversed(kept))


async def recall(
    frame: Frame, path: str, stores: Sequence[History], rules: Sequence[BoundRule]
) -> tuple[tuple[Message, ...], Origins]:
    """The turns that go before the user's message, and the effects that they came from. Raises ToolError.

    Placeholders that other runs have put into them become ones of this run (see `Vault.adopted`).
    """
    messages: tuple[Message, ...] = ()
    origins: Origins = frozenset()
    for number, history in enumerate(stores):
        arguments: JsonObject = {"ids": True}
        if history.max_turns is not None:
            arguments["limit"] = history.max_turns
        turns, place = await call_tool(
            frame, f"{path}/recalled{number}", history.store, "read", arguments, origins=frozenset()
        )
        messages += remembered(_adopted(frame, turns, rules), history)
        origins |= {place}
    return messages, origins


def _adopted(frame: Frame, turns: Sequence[JsonObject], rules: Sequence[BoundRule]) -> list[JsonObject]:
    """Turns with no placeholders but this run's.

    Its own turns are known by their places and texts and not by its id, so that a run that continues another one takes
    the turns of that for its own, as far as it takes what came of them.
    """
    if not any("[" in turn["text"] for turn in turns):
        return list(turns)
    from halo_runtime.policies.redact import redacted_by  # only such turns pay for it

    kinds = redacted_by(bound.rule for bound in rules)
    own = set(frame.run.kept)
    adopted: list[JsonObject] = []
    for turn in reversed(turns):  # of two alike the later one is this run's
        run_id, _, place = str(turn.get("id", "")).partition(":")
        said = (place, turn["text"])
        if said in own:
            own.discard(said)
            adopted.append(turn)
        else:
            adopted.append({**turn, "source": run_id})
    return [_renamed(frame, turn, kinds) if "source" in turn else turn for turn in reversed(adopted)]


def _renamed(frame: Frame, turn: JsonObject, kinds: frozenset[str]) -> JsonObject:
    return {**turn, "text": frame.run.vault.adopted(turn["text"], turn["source"], kinds)}


async def keep(frame: Frame, path: str, stores: Sequence[History], said: str, reply: str, origins: Origins) -> None:
    """Add an exchange to each store, in one piece and once, however often the run is broken off. Raises ToolError."""
    exchange = frame.run.secrets.json({"text": said, "reply": reply})
    for number, history in enumerate(stores):
        place = f"{path}/kept{number}"
        key = f"{frame.run.run_id}:{place}"
        frame.run.kept |= {(place, exchange["text"]), (place, exchange["reply"])}
        await call_tool(frame, place, history.store, "append", exchange, origins=origins, key=key)


def _number(node: nodes.ArgumentValue | None) -> int | None:
    return int(node.value) if isinstance(node, nodes.Number) else None
