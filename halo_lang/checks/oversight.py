"""Agents that nothing watches (HL509), and budgets that cannot be counted (HL511)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set

from halo_lang import nodes
from halo_lang.checks.whole import AUTO, PriceLookup, Whole, spending_rules
from halo_lang.diagnostics import Diagnostic, Related, Severity
from halo_lang.nodes import Agent, Declaration
from halo_lang.spelling import listed
from halo_lang.symbols import Kind

_SHOWN = 5
"""Agents that one finding points at."""


def unguarded_agents(whole: Whole) -> Iterator[Diagnostic]:
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
        changing = sorted(tool for tool in chosen if _changes(tool, whole))
        if changing:
            yield from _unguarded(name, changing, whole)


def unpriced_budgets(whole: Whole) -> Iterator[Diagnostic]:
    """HL511 at a MaxSpend that agents are held to whose models have no known price."""
    if whole.is_priced is None:
        return
    spending = {known.declaration.name.text: known.declaration for known in whole.known if known.summary.spends}
    if spending:
        for name, agents in _unpriced(spending.keys(), whole.is_priced, whole).items():
            yield from _uncounted(spending[name], agents, whole)


def _changes(tool: str, whole: Whole) -> bool:
    found = whole.symbols.interfaces.get(tool)
    return found is not None and found.changes


def _unguarded(name: str, tools: Sequence[str], whole: Whole) -> Iterator[Diagnostic]:
    agent = whole.program.find(name)
    if agent is not None:
        message = f"`{name}` may change things with {listed(tools)} as it likes: no policy limits it"
        hint = "let it require a policy, for example `Approve(…)`, `AllowTools(…)` or `MaxToolCalls(…)`"
        place = whole.program.span(agent, agent.name.span)
        yield Diagnostic("HL509", Severity.WARNING, message, place, hint)


def _unpriced(policies: Set[str], is_priced: PriceLookup, whole: Whole) -> dict[str, list[Agent]]:
    """For each of the policies the agents held to it that run on models without a price."""
    found: defaultdict[str, list[Agent]] = defaultdict(list)
    for known in whole.known:
        held_to = policies & known.interface.requires
        agent = known.declaration
        if held_to and isinstance(agent, Agent) and not is_priced(agent.model.text):
            for policy in held_to:
                found[policy].append(agent)
    return found


def _uncounted(policy: Declaration, agents: Sequence[Agent], whole: Whole) -> Iterator[Diagnostic]:
    assert isinstance(policy, nodes.Policy)
    names = listed(dict.fromkeys(f"`{agent.model.text}`" for agent in agents))
    related = tuple(
        Related(f"{agent.name.text} runs on it", whole.program.span(agent, agent.model.span))
        for agent in agents[:_SHOWN]
    )
    for rule in spending_rules(policy.rules):
        message = f"MaxSpend cannot count what {names} costs: no price is known, so calls will be refused"
        hint = "use a model whose price is known, or limit the run by MaxTokens or MaxCalls"
        place = whole.program.span(policy, rule.span)
        yield Diagnostic("HL511", Severity.WARNING, message, place, hint, related)
