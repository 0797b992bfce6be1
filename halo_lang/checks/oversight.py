"""Agents that nothing watches (HL509), and budgets that cannot be counted (HL511)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from halo_lang import catalog, nodes
from halo_lang.checks.whole import AUTO, Finding, Whole, spending_rules
from halo_lang.diagnostics import Diagnostic, Related, Severity
from halo_lang.nodes import Agent
from halo_lang.spelling import listed
from halo_lang.symbols import Kind

_SHOWN = 5
"""Agents that one finding points at."""


def unguarded_agents(whole: Whole) -> Iterator[Finding]:
    """HL509 at the name of an agent that may change something by calls of its own choice, with no policy to stop it."""
    offers: defaultdict[str, set[str]] = defaultdict(set)
    for known in whole.known:
        for agent, tool in known.summary.offers:
            offers[agent].add(tool)
    for name, tools in offers.items():
        found = whole.symbols.interfaces.get(name)
        if found is None or found.kind is not Kind.AGENT or found.requires:
            continue
        chosen = found.equips if AUTO in tools else found.equips & tools
        changing = sorted(tool for tool in chosen if _changes(tool, whole, auto=tool not in tools))
        if changing:
            yield partial(_unguarded, name, changing)


def unpriced_budgets(whole: Whole) -> Iterator[Finding]:
    """HL511 at a MaxSpend that agents are held to whose models have no known price."""
    spending = {known.declaration.name.text for known in whole.known if known.summary.spends}
    if not spending or whole.is_priced is None:
        return
    unpriced: defaultdict[str, list[str]] = defaultdict(list)
    for known in whole.known:
        held_to = spending & known.interface.requires
        if held_to and not whole.is_priced(known.summary.model):
            for policy in held_to:
                unpriced[policy].append(known.declaration.name.text)
    yield from (partial(_uncounted, policy, agents) for policy, agents in unpriced.items())


def _changes(tool: str, whole: Whole, *, auto: bool) -> bool:
    """Whether an agent that is offered a tool may change something with it."""
    found = whole.symbols.interfaces.get(tool)
    if found is None or not found.changes:
        return False
    spec = catalog.provider(found.provider)
    return not auto or spec is None or spec.changes_unasked


def _unguarded(name: str, tools: Sequence[str], whole: Whole) -> Iterator[Diagnostic]:
    agent = whole.program.find(name)
    if agent is not None:
        message = f"`{name}` may change things with {listed(tools)} as it likes: no policy limits it"
        hint = "let it require a policy, for example `Approve(…)`, `AllowTools(…)` or `MaxToolCalls(…)`"
        place = whole.program.span(agent, agent.name.span)
        yield Diagnostic("HL509", Severity.WARNING, message, place, hint)


def _uncounted(policy: str, agents: Sequence[str], whole: Whole) -> Iterator[Diagnostic]:
    program = whole.program
    declared = program.find(policy)
    held = [agent for agent in map(program.find, agents) if isinstance(agent, Agent)]
    if not isinstance(declared, nodes.Policy):
        return
    models = listed(dict.fromkeys(f"`{agent.model.text}`" for agent in held), limit=4)
    related = tuple(
        Related(f"the model of {agent.name.text}", program.span(agent, agent.model.span)) for agent in held[:_SHOWN]
    )
    for rule in spending_rules(declared.rules):
        message = f"MaxSpend cannot count what {models} costs: no price is known, so calls will be refused"
        hint = "use a model whose price is known, set its price in halo.toml, or limit the run by MaxTokens or MaxCalls"
        yield Diagnostic("HL511", Severity.WARNING, message, program.span(declared, rule.span), hint, related)
